"""What a program keeps where no power loss of the model reaches it: files outside its work directory, and strangers.

A file outside counts once something was written to it, and only if a later start reads it (`Outside.reads`): a log that
is only ever appended to holds no facts. A stranger is whoever is at the other end of a socket or a named pipe and was
not started by the program: what it keeps is not lost when the program's disk is.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from conformance.faults.recording import Place
from conformance.faults.tracer.tree import Tree

# A file, by device and inode.
Key: TypeAlias = "tuple[int, int]"
_Address: TypeAlias = "tuple[str, int]"

_PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None, use_errno=True)
# So many files are held open, that their inodes are not used again; of older ones the path is kept.
_MOST_HELD = 300
_NO_FILES = ("/proc/", "/sys/")
_LISTENS = "0A"
_DNS = 53
# Whom every program may talk to without keeping anything there: logs, and who looks up names of users and hosts.
_SYSTEM = (
    "/dev/log",
    "/run/systemd/journal/",
    "/run/systemd/userdb/",
    "/run/systemd/resolve/",
    "/run/nscd/",
    "/run/nslcd/",
    "/var/lib/sss/pipes/",
)


class UnseenError(OSError):
    """The machine does not let the tracer look at what a socket is connected to."""


class Outside:
    """What was seen of it. `tree` is the work directory; `watched` are the files whose reading is noted."""

    def __init__(self, tree: Tree, watched: Iterable[Key] = ()) -> None:
        self._tree = tree
        self._watched = frozenset(watched)
        self._held: dict[Key, int] = {}
        self._dropped: dict[Key, str] = {}
        self._reads: dict[Key, None] = {}
        self._strangers: dict[str, None] = {}
        self._own_pipes: set[Key] = set()
        # What was there before the program is its client's; what was looked at is not looked at again.
        self._known: set[str] = set(_channels(os.getpid()))

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
        """Whatever lies at `path` was opened for writing, or came there from the work directory, and all below it."""
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

    def files(self) -> tuple[Place, ...]:
        """The files that were written, have a name outside of the work directory now, and any bytes."""
        places = [(key, path) for key, path in self._dropped.items()]
        for key, handle in self._held.items():
            if os.fstat(handle).st_nlink:
                places.append((key, os.readlink(f"/proc/self/fd/{handle}")))
        return tuple(Place(*key, path) for key, path in places if self._counts(key, path))

    def reads(self) -> tuple[Place, ...]:
        """Those of the watched files that were opened so that they can be read."""
        return tuple(Place(*key, "") for key in self._reads)

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
        """Whether it was looked at who is there."""
        return channel in self._known

    def connected(self, task: int, fd: int, channel: str, tasks: Collection[int], family: Collection[int]) -> None:
        """A socket was connected: the other end of a stream counts before anything is sent. Raises OSError."""
        self._known.discard(channel)
        with _borrowed(task, fd) as one:
            if one is None or one.type == socket.SOCK_DGRAM:
                # To connect one of these sends nothing, and is how the resolver asks for routes.
                return
        self.talked(task, fd, channel, tasks, family)

    def talked(self, task: int, fd: int, channel: str, tasks: Collection[int], family: Collection[int]) -> None:
        """Something was sent by a descriptor. `tasks` are those that live, `family` all that ever did. Raises OSError.

        UnseenError if whom it went to cannot be seen.
        """
        if channel in self._known:
            return
        self._known.add(channel)
        if channel.startswith("/"):
            self._through_pipe(task, fd, channel)
        elif channel.startswith("socket:"):
            with _borrowed(task, fd) as one:
                words = _other_end(one, task, tasks, family) if one is not None else ""
            if words:
                self._strangers[words] = None

    def sent_to(self, task: int, address: bytes, tasks: Collection[int]) -> None:
        """Something was sent to this address (`struct sockaddr`), which need not be connected to."""
        words = _addressed(address, task, tasks, self._tree)
        if words:
            self._strangers[words] = None

    def _through_pipe(self, task: int, fd: int, path: str) -> None:
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{task}/fd/{fd}")
            own = (found.st_dev, found.st_ino) in self._own_pipes or self._tree.holds(os.fsencode(path))
            if stat.S_ISFIFO(found.st_mode) and not own:
                self._strangers[f"the pipe {path}"] = None


@contextlib.contextmanager
def _borrowed(task: int, fd: int) -> Iterator[socket.socket | None]:
    """A task's socket, to be asked; None if it is gone, or none. Raises UnseenError."""
    try:
        process = os.pidfd_open(_process(task))
    except OSError:
        yield None
        return
    try:
        handle = _LIBC.syscall(_PIDFD_GETFD, process, fd, 0)
        number = ctypes.get_errno()
    finally:
        os.close(process)
    if handle < 0:
        if number in (errno.EPERM, errno.ENOSYS):
            raise UnseenError(number, os.strerror(number))
        yield None
        return
    try:
        one = socket.socket(fileno=handle)
    except OSError:
        os.close(handle)
        yield None
        return
    with one:
        yield one


def _process(task: int) -> int:
    """The process that a thread belongs to. Raises OSError."""
    text = Path(f"/proc/{task}/status").read_text(encoding="ascii", errors="replace")
    return int((text.partition("\nTgid:")[2].split(maxsplit=1) or ["0"])[0])


def _other_end(one: socket.socket, task: int, tasks: Collection[int], family: Collection[int]) -> str:
    """Who is there, in words; empty for one of the family, for nobody, and for whom anybody may talk to."""
    try:
        peer = one.getpeername()
    except OSError:
        return ""
    if one.family == socket.AF_UNIX:
        # Of a stream, who has listened there; of the other kinds nobody knows.
        pid = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        name = os.fsdecode(peer).replace("\0", "@")
        return "" if pid in family or _of_system(name) else _unix(name, task, () if pid else tasks)
    if one.family in (socket.AF_INET, socket.AF_INET6):
        there, here = _plain(peer), _plain(one.getsockname())
        if _is_resolver(there):
            return ""
        if one.type == socket.SOCK_STREAM:
            return "" if _ours_by_tcp(there, here, task, tasks) else f"the TCP address {_shown(there)}"
        return _datagrams(there, task, tasks)
    return f"the VSOCK address {peer}" if one.family == socket.AF_VSOCK else ""


def _addressed(address: bytes, task: int, tasks: Collection[int], tree: Tree) -> str:
    if len(address) < 3:
        return ""
    kind = struct.unpack_from("<H", address)[0]
    if kind == socket.AF_UNIX:
        raw = address[2:]
        name = os.fsdecode(raw.replace(b"\0", b"@") if raw[:1] == b"\0" else raw.split(b"\0")[0])
        whole = os.path.realpath(name if name.startswith("/") else f"/proc/{task}/cwd/{name}")
        inside = not name.startswith("@") and tree.holds(os.fsencode(whole))
        return "" if inside or _of_system(name) else _unix(name, task, tasks)
    if kind in (socket.AF_INET, socket.AF_INET6) and len(address) >= (16 if kind == socket.AF_INET else 28):
        raw = address[4:8] if kind == socket.AF_INET else address[8:24]
        there = _plain((str(ipaddress.ip_address(raw)), struct.unpack_from(">H", address, 2)[0]))
        return "" if _is_resolver(there) else _datagrams(there, task, tasks)
    return ""


def _unix(name: str, task: int, tasks: Collection[int]) -> str:
    """The words for a socket by its name, unless one of these tasks has it."""
    inodes = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{task}/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            fields = line.split(maxsplit=7)
            if len(fields) == 8 and fields[7] == name:
                inodes.add(fields[6])
    return "" if _have(tasks, inodes) else f"the UNIX socket {name or 'without a name'}"


def _of_system(name: str) -> bool:
    return name.removeprefix("/var").startswith(_SYSTEM) or name.startswith(_SYSTEM)


def _datagrams(there: _Address, task: int, tasks: Collection[int]) -> str:
    inodes = {inode for local, _, _, inode in _table(task, "udp") if _takes(local, there)}
    return "" if _have(tasks, inodes) else f"the UDP address {_shown(there)}"


def _ours_by_tcp(there: _Address, here: _Address, task: int, tasks: Collection[int]) -> bool:
    lines = list(_table(task, "tcp"))
    ends = {inode for local, remote, _, inode in lines if (local, remote) == (there, here)}
    if not ends:
        # On another machine, or in another network of this one.
        return False
    if ends != {"0"}:
        return _have(tasks, ends)
    # Not accepted yet, or closed by who was there; only in the first case somebody listens.
    listen = {inode for local, _, state, inode in lines if state == _LISTENS and _takes(local, there)}
    return not listen or _have(tasks, listen)


def _table(task: int, name: str) -> Iterator[tuple[_Address, _Address, str, str]]:
    """The sockets of a protocol: their own address, the other end's, the state, the inode."""
    for version in ("", "6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{task}/net/{name}{version}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                yield _hexadecimal(fields[1]), _hexadecimal(fields[2]), fields[3], fields[9]


def _hexadecimal(text: str) -> _Address:
    address, _, port = text.partition(":")
    # Words of four bytes, each in the order of the machine.
    raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    return _plain((str(ipaddress.ip_address(raw)), int(port, 16)))


def _plain(address: tuple[str, int] | tuple[str, int, int, int]) -> _Address:
    """An address without its scope, and the one of version 4 that one of version 6 stands for."""
    one = ipaddress.ip_address(address[0].partition("%")[0])
    mapped = one.ipv4_mapped if isinstance(one, ipaddress.IPv6Address) else None
    return str(mapped or one), address[1]


def _takes(local: _Address, there: _Address) -> bool:
    """Whether a socket with this address of its own gets what is sent there."""
    return local[1] == there[1] and local[0] in (there[0], "0.0.0.0", "::")  # noqa: S104  compared, not bound


def _is_resolver(there: _Address) -> bool:
    if there[1] != _DNS:
        return False
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/etc/resolv.conf").read_text(encoding="ascii", errors="replace").splitlines():
            if line.split()[:1] == ["nameserver"] and _plain((line.split()[1], _DNS)) == there:
                return True
    return False


def _shown(address: _Address) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


def _have(tasks: Iterable[int], inodes: Collection[str]) -> bool:
    """Whether one of these tasks has one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes if inode != "0"}
    return bool(wanted) and any(channel in wanted for task in tasks for channel in _channels(task))


def _channels(task: int) -> Iterator[str]:
    """What a task has open, each as the kernel names it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{task}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{task}/fd/{name}")


def _system_v(family: Collection[int]) -> Iterator[str]:
    """What one of these processes has made or used last, and nobody has removed."""
    # Where the numbers of the processes stand that made it and used it last, or that sent and took last.
    for kind, first, words in (("shm", 4, "shared memory"), ("msg", 5, "message queue")):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/sysvipc/{kind}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if {int(fields[first]), int(fields[first + 1])} & set(family):
                    yield f"the {words} {fields[1]} of System V"
