"""Deals with each call of a traced program: on names, bytes, syncs, events, and what a file has beside its bytes."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from holdfast.conformance.faults.recording import Action, Changed, Event, Sync, SyncAll, Truncate, Write
from holdfast.conformance.faults.tracer import FAILED, Injection, amd64, bpf, ptrace
from holdfast.conformance.faults.tracer.calls import (
    ATTRIBUTES,
    DATA,
    MOVES,
    NEED,
    OPENS,
    PATHS,
    REFUSED,
    RIGHTS,
    SENDS,
    SYNCS,
    TIMES,
    TOLD,
    Call,
    UnseenError,
    addresses,
    asked,
    gone,
    handle_of,
    leaves,
    opened,
    place_of,
    position,
    signed,
    stat_fd,
    stat_path,
)
from holdfast.conformance.faults.tracer.command import Program, end_as
from holdfast.conformance.faults.tracer.locks import FLOCK_SIZE, SETS
from holdfast.conformance.faults.tracer.maps import memory_map, read
from holdfast.conformance.faults.tracer.tasks import Files
from holdfast.conformance.faults.tracer.tree import rights

_ACCESS = os.O_ACCMODE
_MS_SYNC = 4
_SYNC_ALL_FLAGS = 7
_KEEP_SIZE, _COLLAPSE, _INSERT, _UNSHARE = 0x1, 0x8, 0x20, 0x40


_TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY
# AT_SYMLINK_NOFOLLOW.
_NOFOLLOW = 0x100
# openat2(2): the directory is the root of the path, and of all links in it.
_IN_ROOT = 0x10
# renameat2(2): each of the two names gets the file of the other.
_EXCHANGE = 0x2


class Tracer(Files):
    """One run of one command, and what each of its calls means. Not to be used twice."""

    def _called(self, call: Call) -> bool:
        """Deal with a call. Returns whether its task runs on already, or is gone."""
        name = call.name
        if name in DATA:
            return self._data(call)
        if name in SENDS:
            return self._send(call)
        if name in SYNCS:
            return self._sync(call)
        if name in PATHS or name == "bind":
            return self._names(call)
        if name in OPENS:
            return self._open(call)
        if name in ATTRIBUTES:
            return self._attribute(call)
        if name in RIGHTS or name in TIMES:
            return self._changed(call)
        if name == "fcntl":
            return self._lock(call)
        if name == "connect":
            # It may wait for who is to accept it.
            return self._await(call)
        if name in REFUSED:
            self._refused[name] = None
            amd64.refuse(call.task, REFUSED[name])
            return False
        if name in TOLD:
            # The flags of clone3 are the first thing that its argument points to.
            if name != "clone3" or struct.unpack("<Q", ptrace.peek(call.task, call.args[0], 8))[0] & bpf.CLONE_UNTRACED:
                self._untraced[f"a process {TOLD[name]}"] = None
            return False
        rest = {
            "mmap": self._map,
            "mq_open": self._queue,
            "msync": self._msync,
            "sync": self._sync_all,
            "syncfs": self._sync_all,
            "truncate": self._cut,
            "ftruncate": self._cut,
            "fallocate": self._allocate,
        }
        return rest[name](call)

    # Events.

    def _is_event(self, call: Call) -> bool:
        if call.name in SENDS:
            return True
        found = stat_fd(call, signed(call.args[DATA[call.name][0]])) if call.name in DATA else None
        return found is not None and leaves(found)

    def _waits_for_none(self, call: Call) -> bool:
        # Neither makes anything in the tree.
        if call.name in ("open", "openat"):
            return not call.args[1 if call.name == "open" else 2] & bpf.MAKES
        return call.name in ("connect", "fcntl") or call.name in TOLD or self._is_event(call)

    def _returned(self, call: Call, result: int) -> None:
        try:
            if call.name in OPENS and result >= 0:
                self._opened_outside(call, result)
            elif call.name == "connect" and not result:
                fd = signed(call.args[0])
                channel = os.readlink(handle_of(call, fd))
                with self._seen_of_sockets(call):
                    self._outside.connected(call.task, fd, channel, self._live, self._family)
        except OSError as error:
            # Another thread may have closed it already.
            if error.errno != errno.ENOENT and not gone(call.task):
                self._untraced[f"what {call.name} did: {error}"] = None

    @contextlib.contextmanager
    def _seen_of_sockets(self, call: Call) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What points to nowhere makes the call fail by itself; a task that is gone sends no more.
            if error.errno == errno.EFAULT or gone(call.task):
                return
            unseen = isinstance(error, UnseenError)
            why = "this machine does not let the tracer see it" if unseen else str(error)
            self._untraced[f"whom it talks to by sockets: {why}"] = None

    def _lock(self, call: Call) -> bool:
        """A lock is no operation. Where another process is to have it, the call fails as it does then."""
        fd, command, address = signed(call.args[0]), call.args[1], call.args[2]
        if self._overtaking is not None and command in SETS:
            name = os.readlink(handle_of(call, fd))
            if self._overtaking.fails(command, name, ptrace.peek(call.task, address, FLOCK_SIZE)):
                self._fired = True
                amd64.refuse(call.task, errno.EAGAIN)
        return False

    def _queue(self, call: Call) -> bool:
        self._outside.queue(os.fsdecode(ptrace.text(call.task, call.args[0])))
        return False

    def _send(self, call: Call) -> bool:
        return self._event(call, signed(call.args[1 if call.name == "tee" else 0]))

    def _event(self, call: Call, fd: int) -> bool:
        try:
            channel = os.readlink(handle_of(call, fd))
        except FileNotFoundError:
            return False
        size = asked(call)
        if call.name in SENDS or not self._outside.knows(channel):
            with self._seen_of_sockets(call):
                self._outside.talked(call.task, fd, channel, self._live, self._family)
                for address in addresses(call):
                    self._outside.sent_to(call.task, address, self._live)
        self._look_at_maps(call.task)
        if self._fault.kill is not None and self._count + 1 >= self._fault.kill:
            self._fired = True
            self.kill()
            return True
        self._record(call, Event(channel, size), time.monotonic_ns())
        return False

    # Bytes.

    def _data(self, call: Call) -> bool:
        index, length_index = DATA[call.name]
        fd = signed(call.args[index])
        found = stat_fd(call, fd)
        if found is None:
            return False
        if leaves(found):
            return self._event(call, fd)
        number = self._ours(call, fd, found)
        if number is None or not call.args[abs(length_index)]:
            return False
        path = handle_of(call, fd)
        if not self._begin(call, halves=True):
            return self._killed
        # Only a splice may wait, for what another task puts into its pipe.
        result = self._finish(call, alone=call.name != "splice")
        if result is None:
            # The descriptor may be gone with the task, the file's names are not.
            return self._in_doubt(call, number, self._any_path(number) or path)
        if result <= 0:
            return self._done(call, ())
        try:
            with opened(path) as handle:
                offset, durable = place_of(call, fd, result, os.fstat(handle).st_size)
                write = Write(number, offset, read(handle, offset, result), durable)
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, [write])

    def _cut(self, call: Call) -> bool:
        if call.name == "ftruncate":
            fd = signed(call.args[0])
            found, path = stat_fd(call, fd), handle_of(call, fd)
            number = self._ours(call, fd, found) if found else None
        else:
            inside = self._path(call, (None, 0), follow=True)
            path = os.fsdecode(self._tree.absolute(inside)) if inside is not None else ""
            found = stat_path(path)
            number = self._tree.number(found) if found else None
        if found is None or number is None or found.st_size == call.args[1]:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call, number, self._any_path(number) or path)
        return self._done(call, [] if result else [Truncate(number, call.args[1])])

    def _allocate(self, call: Call) -> bool:
        fd, mode, offset, length = (signed(call.args[0]), *call.args[1:4])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found) if found else None
        if found is None or number is None:
            return False
        # What is not known to leave the bytes alone may change them.
        changes = mode & ~(_KEEP_SIZE | _UNSHARE)
        grows = not mode & _KEEP_SIZE and offset + length > found.st_size
        if not changes and not grows:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call, number, self._any_path(number))
        if result:
            return self._done(call, ())
        actions: list[Action] = []
        try:
            with opened(handle_of(call, fd)) as handle:
                size = os.fstat(handle).st_size
                if size != found.st_size:
                    actions.append(Truncate(number, size))
                end = size if mode & (_COLLAPSE | _INSERT) else min(offset + length, size)
                if changes and end > offset:
                    actions.append(Write(number, offset, read(handle, offset, end - offset)))
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, actions)

    # Syncs.

    def _sync(self, call: Call) -> bool:
        fd = signed(call.args[0])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found, wrote=False) if found else None
        if call.name == "sync_file_range":
            if call.args[3] & _SYNC_ALL_FLAGS != _SYNC_ALL_FLAGS:
                return False
            begin, length = call.args[1:3]
            return self._synced(call, number, data_only=True, begin=begin, end=begin + length if length else None)
        if number is None and found is not None:
            self._synced_outside.add((found.st_dev, found.st_ino))
        return self._synced(call, number, data_only=call.name == "fdatasync")

    def _msync(self, call: Call) -> bool:
        address, length, flags = call.args[:3]
        if not flags & _MS_SYNC:
            return False
        span = next((each for each in memory_map(call.task) if each.begin <= address < each.end), None)
        if span is None or (number := self._maps.file(span.inode)) is None:
            return False
        begin = address - span.begin + span.offset
        return self._synced(call, number, data_only=True, begin=begin, end=begin + length)

    def _synced(
        self, call: Call, number: int | None, *, data_only: bool, begin: int = 0, end: int | None = None
    ) -> bool:
        if number is None:
            return False

        def action(error: int) -> Sync:
            return Sync(number, data_only, error, begin, end)

        if not self._begin(call, failed=action):
            return self._killed
        result = self._finish(call)
        # It is not known whether the operation was done, and the program has no answer either.
        return True if result is None else self._done(call, [action(-result)])

    def _sync_all(self, call: Call) -> bool:
        if call.name == "syncfs":
            found = stat_fd(call, signed(call.args[0]))
            if found is None or found.st_dev != os.lstat(self._tree.root).st_dev:
                return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        return True if result is None else self._done(call, [] if result else [SyncAll()])

    def _map(self, call: Call) -> bool:
        fd = signed(call.args[4])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found, wrote=False) if found else None
        try:
            # A file that was opened for reading cannot be mapped for writing, not even later.
            if number is not None and position(call, fd)[1] & _ACCESS != os.O_RDONLY:
                self._maps.add(number, handle_of(call, fd))
        except OSError:
            if not gone(call.task):
                self._untraced["files that the tracer has no right to read"] = None
        return False

    # Directory entries, and rights, owners, times and extended attributes.

    def _names(self, call: Call) -> bool:
        places = PATHS.get(call.name, ())
        paths = [self._path(call, place) for place in places] if places else [self._bound(call)]
        inside = [path for path in paths if path is not None]
        # The names that are made and lie outside; an exchange makes both.
        swaps = call.name == "renameat2" and bool(call.args[4] & _EXCHANGE)
        news = [*zip(places, paths, strict=False)][0 if swaps else -1 :]
        made = [self._whole(call, place) for place, path in news if path is None]
        if not inside:
            return self._names_outside(call, made)
        # What cannot succeed is left to fail by itself. The source of a rename is the first of its paths.
        if call.name in NEED:
            if paths[0] is not None and not os.path.lexists(self._tree.absolute(paths[0])):
                return False
        elif os.path.lexists(self._tree.absolute(inside[0])):
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call)
        for name in made if result >= 0 else ():
            self._outside.was_written(name)
        linked = call.name in ("link", "linkat")
        return self._done(call, self._look(self._tree.look(inside, linked=linked)) if result >= 0 else ())

    def _names_outside(self, call: Call, made: Sequence[bytes]) -> bool:
        """A call that changes names outside only: files may get there by it, and pipes."""
        if not (call.name in MOVES or call.name.startswith("mknod")):
            return False
        result = self._finish(call)
        for name in made if result == 0 else ():
            if call.name in MOVES:
                self._outside.was_written(name)
            else:
                self._outside.made_pipe(name)
        return result is None or self._killed

    def _open(self, call: Call) -> bool:
        base, path_index, flags_index = OPENS[call.name]
        if call.name == "creat":
            flags = os.O_CREAT | os.O_TRUNC
        elif flags_index is not None:
            flags = call.args[flags_index]
        else:
            flags, _, resolve = struct.unpack("<QQQ", ptrace.peek(call.task, call.args[2], 24))
            if not flags & bpf.CHANGES and not self._outside.watches:
                return False
            if resolve & _IN_ROOT:
                self._untraced["a process has opened files by paths of a root of its own"] = None
                return False
        if flags & _TMPFILE:
            return self._open_nameless(call)
        path = self._path(call, (base, path_index), follow=not flags & (os.O_EXCL | os.O_NOFOLLOW))
        if path is None:
            # It may wait for who opens the other end of a pipe.
            return self._await(call)
        found = stat_path(os.fsdecode(self._tree.absolute(path)))
        makes = found is None and bool(flags & os.O_CREAT)
        cuts = found is not None and flags & os.O_TRUNC and stat.S_ISREG(found.st_mode) and found.st_size
        if not makes and not cuts:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call)
        if result < 0:
            return self._done(call, ())
        if makes:
            return self._done(call, self._look(self._tree.look([path])))
        assert found is not None
        number = self._tree.number(found)
        return self._done(call, [] if number is None else [Truncate(number, 0)])

    def _open_nameless(self, call: Call) -> bool:
        result = self._finish(call)
        if result is None:
            return True
        if result >= 0 and (found := stat_fd(call, result)) is not None:
            path = os.readlink(os.fsencode(handle_of(call, result)))
            if self._tree.holds(os.path.dirname(path)):
                self._tree.add_nameless(found)
        return self._killed

    def _opened_outside(self, call: Call, fd: int) -> None:
        """A file outside the tree was opened: so that it can be written to, or one that is watched to be read."""
        flags = position(call, fd)[1]
        found = stat_fd(call, fd)
        if found is None or flags & os.O_PATH:
            return
        if flags & _ACCESS:
            self._outside.was_written(handle_of(call, fd))
        if flags & _ACCESS != os.O_WRONLY:
            self._outside.was_read(found)

    def _attribute(self, call: Call) -> bool:
        where, name_index = ATTRIBUTES[call.name]
        if isinstance(where, int):
            found = stat_fd(call, signed(call.args[where]))
        else:
            try:
                found = os.stat(self._whole(call, where), follow_symlinks=not call.name.startswith("l"))
            except OSError:
                return False
        # Lists of rights are rights, which are not inspected.
        if (
            found is None
            or self._tree.number(found) is None
            or ptrace.text(call.task, call.args[name_index]).startswith(b"system.")
        ):
            return False
        result = self._finish(call)
        if result == 0:
            self._untraced["a process has changed extended attributes in the work directory"] = None
        return result is None or self._killed

    def _changed(self, call: Call) -> bool:
        """A mode, an owner or a time is set: what a power loss leaves of it is not modelled."""
        where, flags_index = {**RIGHTS, **TIMES}[call.name]
        flags = call.args[flags_index] if flags_index is not None else 0
        follow = call.name != "lchown" and not flags & _NOFOLLOW
        if isinstance(where, tuple) and not call.args[where[1]]:
            # utimensat(2) without a path is about the descriptor.
            where = 0
        try:
            path = handle_of(call, signed(call.args[where])) if isinstance(where, int) else self._whole(call, where)
            number = self._tree.number(os.stat(path, follow_symlinks=follow))
        except OSError:
            return False
        if number is None:
            return False
        result = self._finish(call)
        if result is None:
            return True
        if result:
            return self._killed
        try:
            found = os.stat(path, follow_symlinks=follow)
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, [Changed(number, rights(found), found.st_mtime_ns if call.name in TIMES else None)])


def run_within(arguments: Sequence[str], program: Program) -> NoReturn:
    """Trace a program that this process has imported already; `arguments` as for `main`. Does not return."""
    # As in `__main__`.
    gc.disable()
    end_as(main(arguments, program))


def main(arguments: Sequence[str], program: Program | None = None) -> int:
    """Trace what the command line says. Returns how the command ended: its status, or a signal as a negative number."""
    split = list(arguments).index("--")
    (path, workdir, *words), command = arguments[:split], arguments[split + 1 :]
    said = dict(word.split("=", 1) for word in words)
    fault = Injection(**{name: json.loads(value) for name, value in said.items()})
    # Held back until there is something to end.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        tracer = Tracer(Path(workdir), out, fault)
        for number in ends:
            # A shell lets what it runs in the background ignore SIGINT.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: tracer.kill())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        return tracer.run(command, program)
    except OSError as error:
        print(f"tracer: {error}", file=sys.stderr)
        return FAILED
