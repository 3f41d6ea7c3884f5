"""What the traced calls mean: where they have descriptors, paths and lengths, and what those stand for in a task."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from holdfast.conformance.faults.tracer import amd64, ptrace

NAME_OF = {number: name for name, number in amd64.NUMBERS.items()}
# A directory descriptor that stands for the current directory.
CWD = -100
_TTY_MAJORS = {4, 5, *range(136, 144)}
_APPEND, _DSYNC = os.O_APPEND, os.O_DSYNC
_RWF_DSYNC, _RWF_SYNC, _RWF_APPEND, _RWF_NOAPPEND = 0x2, 0x4, 0x10, 0x20
_MASK = 2**64 - 1
# The flag of a task that has begun to end, and can no longer be inspected.
_EXITING = 0x4
# A list of more buffers than this is refused by the kernel.
_MOST_BUFFERS = 1024

# The argument that names a path, after the one that holds the directory it starts from (None: where the task is).
Place: TypeAlias = "tuple[int | None, int]"

# Where the calls that can put bytes into a file have its descriptor, and the number of bytes to move or (negative) the
# length of a list of buffers.
DATA = {
    "write": (0, 2),
    "pwrite64": (0, 2),
    "writev": (0, -2),
    "pwritev": (0, -2),
    "pwritev2": (0, -2),
    "sendfile": (0, 3),
    "copy_file_range": (2, 4),
    "splice": (2, 4),
}
SENDS = frozenset("sendto sendmsg sendmmsg tee vmsplice".split())
SYNCS = frozenset("fsync fdatasync sync_file_range".split())
_FROM_HERE: Sequence[Place] = ((None, 0),)
PATHS: dict[str, Sequence[Place]] = {
    "mkdir": _FROM_HERE,
    "rmdir": _FROM_HERE,
    "unlink": _FROM_HERE,
    "mknod": _FROM_HERE,
    "mkdirat": ((0, 1),),
    "mknodat": ((0, 1),),
    "unlinkat": ((0, 1),),
    "link": ((None, 1),),
    "linkat": ((2, 3),),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    "rename": ((None, 0), (None, 1)),
    "renameat": ((0, 1), (2, 3)),
    "renameat2": ((0, 1), (2, 3)),
}
# These need what they name first; the others make it.
NEED = frozenset("rmdir unlink unlinkat rename renameat renameat2".split())
OPENS = {"open": (None, 0, 1), "creat": (None, 0, None), "openat": (0, 1, 2), "openat2": (0, 1, None)}
# Where the calls that set or remove an extended attribute have the file, by descriptor or by place, and the name.
ATTRIBUTES: dict[str, tuple[int | Place, int]] = {
    "setxattr": ((None, 0), 1),
    "lsetxattr": ((None, 0), 1),
    "fsetxattr": (0, 1),
    "setxattrat": ((0, 1), 3),
    "removexattr": ((None, 0), 1),
    "lremovexattr": ((None, 0), 1),
    "fremovexattr": (0, 1),
    "removexattrat": ((0, 1), 3),
}
# Where the calls that set a mode, an owner or a time have the file, and their flags, if they have any.
RIGHTS: dict[str, tuple[int | Place, int | None]] = {
    "chmod": ((None, 0), None),
    "fchmod": (0, None),
    "fchmodat": ((0, 1), None),
    "fchmodat2": ((0, 1), 3),
    "chown": ((None, 0), None),
    "lchown": ((None, 0), None),
    "fchown": (0, None),
    "fchownat": ((0, 1), 4),
}
TIMES: dict[str, tuple[int | Place, int | None]] = {
    "utime": ((None, 0), None),
    "utimes": ((None, 0), None),
    "futimesat": ((0, 1), None),
    "utimensat": ((0, 1), 3),
}
MOVES = frozenset("link linkat rename renameat renameat2".split())
REFUSED = {
    "io_uring_setup": errno.ENOSYS,
    "io_setup": errno.ENOSYS,
    # File systems that cannot share or free blocks answer so, and programs copy or write instead.
    "ioctl": errno.EOPNOTSUPP,
}
TOLD = {
    "chroot": "has changed its root directory",
    "pivot_root": "has changed its root directory",
    "mount": "has mounted a file system",
    "move_mount": "has mounted a file system",
    "open_by_handle_at": "has opened a file by its handle",
    "setns": "has moved to another namespace",
    "clone": "has started another that is not to be traced",
    "clone3": "has started another that is not to be traced",
}


class Call:
    """A call at its entry. `restore` puts right at its exit what was changed to make it do less.

    `ran`: it was let go, so that what it did has to be observed.
    """

    __slots__ = ("args", "name", "ran", "restore", "task")

    def __init__(self, task: int, name: str, args: tuple[int, ...]) -> None:
        """Not let go yet."""
        self.task = task
        self.name = name
        self.args = args
        self.restore: list[Callable[[], None]] = []
        self.ran = False


def gone(task: int) -> bool:
    """Whether a task was killed where it stood."""
    try:
        # The state follows the name, which stands in parentheses and may hold anything; the flags come six later.
        fields = Path(f"/proc/{task}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return True
    return fields[0] in (b"Z", b"X") or bool(int(fields[6]) & _EXITING)


def signed(value: int) -> int:
    """A descriptor, which is an int."""
    value &= 0xFFFFFFFF
    return value - 2**32 if value & 0x80000000 else value


def handle_of(call: Call, fd: int) -> str:
    """A path at which the file that a descriptor of the task stands for can be opened anew."""
    return f"/proc/{call.task}/fd/{fd}"


def stat_fd(call: Call, fd: int) -> os.stat_result | None:
    """What a descriptor of the task stands for, or None: nothing. Raises PermissionError if that cannot be observed."""
    try:
        return os.stat(handle_of(call, fd)) if fd >= 0 else None
    except PermissionError:
        raise
    except OSError:
        return None


def stat_path(path: str) -> os.stat_result | None:
    """What stands at a path, or None."""
    try:
        return os.stat(path)
    except OSError:
        return None


def leaves(found: os.stat_result) -> bool:
    """Whether what is written there leaves for the outside: a pipe, a socket, a terminal."""
    mode = found.st_mode
    if stat.S_ISCHR(mode):
        return os.major(found.st_rdev) in _TTY_MAJORS
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor to read a file by, for as long as the context lasts. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield handle
    finally:
        os.close(handle)


def position(call: Call, fd: int) -> tuple[int, int]:
    """Where an open file stands, and its flags. Raises OSError."""
    with opened(f"/proc/{call.task}/fdinfo/{fd}") as handle:
        # Two lines, a name and a number each: the position, and the flags in octal.
        fields = os.read(handle, 256).split(maxsplit=4)
    return int(fields[1]), int(fields[3], 8)


def place_of(call: Call, fd: int, result: int, size: int) -> tuple[int, bool]:
    """Where in its file a call that has returned put its bytes, and whether it synced them."""
    stands, flags = position(call, fd)
    name, args = call.name, call.args
    durable, append = bool(flags & _DSYNC), bool(flags & _APPEND)
    offset = stands - result
    if name in ("pwrite64", "pwritev", "pwritev2"):
        offset = args[3] if args[3] != _MASK else offset
        if name == "pwritev2":
            durable = durable or bool(args[5] & (_RWF_DSYNC | _RWF_SYNC))
            append = not args[5] & _RWF_NOAPPEND and (append or bool(args[5] & _RWF_APPEND))
    elif name in ("copy_file_range", "splice") and args[3]:
        offset = struct.unpack("<Q", ptrace.peek(call.task, args[3], 8))[0] - result
    return (size - result if append else offset), durable


def asked(call: Call) -> int:
    """How many bytes a call asks to send."""
    name, args, task = call.name, call.args, call.task
    if name in ("sendto", "tee"):
        return args[2]
    if name == "vmsplice":
        return sum(buffers(task, args[1], args[2]))
    if name == "sendmsg":
        return _message(task, args[1])
    if name == "sendmmsg":
        # Each `struct mmsghdr` is a `struct msghdr` and a length.
        return sum(_message(task, args[1] + 64 * index) for index in range(args[2]))
    index = DATA[name][1]
    return args[index] if index >= 0 else sum(buffers(task, args[1], args[2]))


def addresses(call: Call) -> list[bytes]:
    """The addresses (`struct sockaddr`) that a call sends to; none for what is connected. Raises OSError."""
    args = call.args
    if call.name == "sendto":
        named = [(args[4], args[5])]
    elif call.name == "sendmsg":
        named = [_named(call.task, args[1])]
    elif call.name == "sendmmsg":
        named = [_named(call.task, args[1] + 64 * index) for index in range(min(args[2], _MOST_BUFFERS))]
    else:
        named = []
    return [ptrace.peek(call.task, start, min(size, 128)) for start, size in named if start and size]


def _named(task: int, address: int) -> tuple[int, int]:
    start, size = struct.unpack("<QI", ptrace.peek(task, address, 12))
    return start, size


def _message(task: int, address: int) -> int:
    start, count = struct.unpack("<QQ", ptrace.peek(task, address + 16, 16))
    return sum(buffers(task, start, count))


def buffers(task: int, address: int, count: int) -> list[int]:
    """The lengths of a list of buffers (`struct iovec`). Raises OSError."""
    if count > _MOST_BUFFERS:
        return []
    return [length for _, length in struct.iter_unpack("<QQ", ptrace.peek(task, address, 16 * count))]


class UnseenError(OSError):
    """The machine does not let the tracer look at what a socket is connected to."""


def channels(task: int) -> Iterator[str]:
    """What a task has open, each as the kernel names it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{task}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{task}/fd/{name}")
