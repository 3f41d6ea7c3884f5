"""What a program keeps where no power loss of the model reaches it: files outside its work directory, and strangers.

A file outside counts once something was written to it, and only if a later start reads it (`Outside.reads`): a log that
is only ever appended to holds no facts. A stranger is a process at the other end of a socket or a named pipe and was
not started by the program: what it keeps is not lost when the program's disk is.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from holdfast.conformance.faults.recording import OutsideFile
from holdfast.conformance.faults.tracer.calls import channels
from holdfast.conformance.faults.tracer.tree import Tree

# A file, by device and inode.
Key: TypeAlias = "tuple[int, int]"

# How many files are held open, that their inodes are not used again; of older ones the path is kept.
_MOST_HELD = 300
_NO_FILES = ("/proc/", "/sys/")


class Outside:
    """What was observed of it. `tree` is the work directory; `watched` are the files whose reading is noted."""

    def __init__(self, tree: Tree, watched: Iterable[Sequence[int]] = ()) -> None:
        self._tree = tree
        self._watched = {(device, inode) for device, inode in watched}
        self._held: dict[Key, int] = {}
        self._dropped: dict[Key, str] = {}
        self._reads: dict[Key, None] = {}
        self._strangers: dict[str, None] = {}
        self._own_pipes: set[Key] = set()
        # What was there before the program is its client's. What was inspected once is not inspected again.
        self._known: set[str] = set(channels(os.getpid()))

    @property
    def watches(self) -> bool:
        """Whether reading is of interest."""
        return bool(self._watched)

    # Files.

    def was_read(self, found: os.stat_result) -> None:
        """A file was opened so that it can be read, was executed, or came into the work directory."""
        key = (found.st_dev, found.st_ino)
        if key in self._watched:
            self._reads[key] = None

    def was_written(self, path: str | bytes) -> None:
        """What lies at `path`, and all below it, was opened for writing or came there from the work directory."""
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            # Gone already.
            return
        found = os.fstat(handle)
        key = (found.st_dev, found.st_ino)
        if stat.S_ISDIR(found.st_mode):
            for folder, _, names in os.walk(f"/proc/self/fd/{handle}"):
                for name in names:
                    self.was_written(os.path.join(folder, name))
        keeps = stat.S_ISREG(found.st_mode) or stat.S_ISBLK(found.st_mode)
        # One with a second name in the work directory counts as well: by this one it outlives all that is lost there.
        if not keeps or key in self._held:
            os.close(handle)
            return
        self._held[key] = handle
        if len(self._held) > _MOST_HELD:
            self._drop()

    def made_pipe(self, path: str | bytes) -> None:
        """The program has made something at `path` that is neither a file nor a directory."""
        with contextlib.suppress(OSError):
            found = os.stat(path)
            self._own_pipes.add((found.st_dev, found.st_ino))

    def files(self) -> tuple[OutsideFile, ...]:
        """The files that were written, have a name outside of the work directory now, and any bytes."""
        places = [(key, path) for key, path in self._dropped.items()]
        for key, handle in self._held.items():
            if os.fstat(handle).st_nlink:
                places.append((key, os.readlink(f"/proc/self/fd/{handle}")))
        return tuple(OutsideFile(*key, path) for key, path in places if self._counts(key, path))

    def reads(self) -> tuple[OutsideFile, ...]:
        """Those of the watched files that were opened so that they can be read."""
        return tuple(OutsideFile(*key, "") for key in self._reads)

    def close(self) -> None:
        """Let go of all files."""
        for handle in self._held.values():
            os.close(handle)
        self._held.clear()

    def _drop(self) -> None:
        key, handle = next(iter(self._held.items()))
        if os.fstat(handle).st_nlink:
            self._dropped[key] = os.readlink(f"/proc/self/fd/{handle}")
        os.close(self._held.pop(key))

    def _counts(self, key: Key, path: str) -> bool:
        if path.startswith(_NO_FILES) or "/__pycache__/" in path or path.endswith(".pyc"):
            return False
        try:
            found = os.stat(f"/proc/self/fd/{self._held[key]}" if key in self._held else path)
        except OSError:
            return False
        if (found.st_dev, found.st_ino) != key or self._tree.holds(os.fsencode(path)):
            return False
        # What has no bytes, as the file of a lock, has none to lose.
        return bool(found.st_size) or stat.S_ISBLK(found.st_mode)

    # Strangers.

    def strangers(self, family: Collection[int]) -> tuple[str, ...]:
        """In words, whom the program has talked to; and memory and queues of System V that are still there."""
        return (*self._strangers, *_system_v(family))

    def queue(self, name: str) -> None:
        """A POSIX message queue was opened; it outlives all programs."""
        self._strangers[f"the message queue {name}"] = None

    def knows(self, channel: str) -> bool:
        """Whether the other end was inspected."""
        return channel in self._known

    def connected(self, task: int, fd: int, channel: str, tasks: Collection[int], family: Collection[int]) -> None:
        """A socket was connected: the other end of a stream counts before anything is sent. Raises OSError."""
        self._known.discard(channel)
        # To connect one of the others sends nothing, and is how the resolver asks for routes.
        if _sockets().is_stream(task, fd):
            self.talked(task, fd, channel, tasks, family)

    def talked(self, task: int, fd: int, channel: str, tasks: Collection[int], family: Collection[int]) -> None:
        """Something was sent by a descriptor. `tasks` are those that live, `family` all that ever did. Raises OSError.

        UnseenError if the other end cannot be observed.
        """
        if channel in self._known:
            return
        self._known.add(channel)
        if channel.startswith("/"):
            self._through_pipe(task, fd, channel)
        elif channel.startswith("socket:"):
            words = _sockets().other_end(task, fd, tasks, family)
            if words:
                self._strangers[words] = None

    def sent_to(self, task: int, address: bytes, tasks: Collection[int]) -> None:
        """Something was sent to this address (`struct sockaddr`), which need not be connected to."""
        words = _sockets().addressed(address, task, tasks, self._tree)
        if words:
            self._strangers[words] = None

    def _through_pipe(self, task: int, fd: int, path: str) -> None:
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{task}/fd/{fd}")
            own = (found.st_dev, found.st_ino) in self._own_pipes or self._tree.holds(os.fsencode(path))
            if stat.S_ISFIFO(found.st_mode) and not own:
                self._strangers[f"the pipe {path}"] = None


def _sockets() -> ModuleType:
    # Most stores have none, and each point of a sweep starts a tracer of its own, which would have to load it.
    from holdfast.conformance.faults.tracer import sockets

    return sockets


def _system_v(family: Collection[int]) -> Iterator[str]:
    """What one of these processes has made or used last, and no process has removed."""
    # Where the numbers of the processes stand that made it and used it last, or that sent and took last.
    for kind, first, words in (("shm", 4, "shared memory"), ("msg", 5, "message queue")):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/sysvipc/{kind}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if {int(fields[first]), int(fields[first + 1])} & set(family):
                    yield f"the {words} {fields[1]} of System V"
