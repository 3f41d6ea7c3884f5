"""Who is at the other end of a task's sockets: one of the program's own family, the system, or a stranger."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from holdfast.conformance.faults.tracer.calls import UnseenError, channels
from holdfast.conformance.faults.tracer.tree import Tree

_Address: TypeAlias = "tuple[str, int]"

_PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None, use_errno=True)
_LISTENS = "0A"
_DNS = 53
# Services with which every program may speak without a store there: logs, and lookups of users and hosts.
_SYSTEM = (
    "/dev/log",
    "/run/systemd/journal/",
    "/run/systemd/userdb/",
    "/run/systemd/resolve/",
    "/run/nscd/",
    "/run/nslcd/",
    "/var/lib/sss/pipes/",
)


def is_stream(task: int, fd: int) -> bool:
    """Whether a descriptor is a socket with a peer before anything is sent. Raises UnseenError."""
    with _borrowed(task, fd) as one:
        return one is not None and one.type != socket.SOCK_DGRAM


def other_end(task: int, fd: int, tasks: Collection[int], family: Collection[int]) -> str:
    """Who is at the other end of a socket, in words; empty if it needs no report.

    It needs none for a process of the program, for a socket without a peer, and for a service that every program uses.

    `tasks` are those that live, `family` all that ever did. Raises UnseenError.
    """
    with _borrowed(task, fd) as one:
        return "" if one is None else _peer(one, task, tasks, family)


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


def _peer(one: socket.socket, task: int, tasks: Collection[int], family: Collection[int]) -> str:
    try:
        peer = one.getpeername()
    except OSError:
        return ""
    if one.family == socket.AF_UNIX:
        # Of a stream, who has listened there; of the other kinds this is not known.
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


def addressed(address: bytes, task: int, tasks: Collection[int], tree: Tree) -> str:
    """Who is at an address (`struct sockaddr`), in words; empty as for `other_end`."""
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
    # Not accepted yet, or closed by who was there; only in the first case a process listens.
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
    return bool(wanted) and any(channel in wanted for task in tasks for channel in channels(task))
