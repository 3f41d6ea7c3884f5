"""The filter that the kernel asks at every system call: which stop for the tracer. All others run at full speed."""

from __future__ import annotations

import os
import struct

from holdfast.conformance.faults.tracer import amd64

# What opens a file so that it can be made or cut: O_CREAT, O_TRUNC, O_TMPFILE without O_DIRECTORY.
MAKES = os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)
# What opens a file so that it can be changed in any way.
CHANGES = MAKES | os.O_WRONLY | os.O_RDWR
# ioctl(2) requests that give a file the blocks of another (FICLONE, FICLONERANGE), or zeros (FS_IOC_UNRESVSP,
# FS_IOC_UNRESVSP64, FS_IOC_ZERO_RANGE).
_CHANGES = (0x40049409, 0x4020940D, 0x40305829, 0x4030582B, 0x40305839)
CLONE_UNTRACED = 0x00800000

_MAP_SHARED, _MAP_ANONYMOUS = 0x1, 0x20
_TRACE, _ALLOW = 0x7FF00000, 0x7FFF0000
_LOAD, _EQUAL, _ATLEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
# Stop only for some arguments: the index of the argument, and the bits of which one must be set.
_BY_BITS = {"open": (1, CHANGES), "openat": (2, CHANGES), "clone": (0, CLONE_UNTRACED)}


def program(*, reads: bool = False, locks: bool = False) -> list[bytes]:
    """The filter's instructions (`struct sock_filter`).

    `reads`: to stop at what opens a file for reading as well; `locks`: at locks.
    """
    code = [
        _step(_LOAD, _ARCH_AT),
        _step(_EQUAL, amd64.ARCH, 1, 0),
        _step(_RETURN, _TRACE),
        _step(_LOAD, _NUMBER_AT),
        _step(_ATLEAST, amd64.FOREIGN_BIT, 0, 1),
        _step(_RETURN, _TRACE),
    ]
    for name, number in amd64.NUMBERS.items():
        if name == "fcntl" and not locks:
            continue
        test = [_step(_RETURN, _TRACE)] if reads and name in ("open", "openat") else _test(name)
        code += [_step(_EQUAL, number, 0, len(test)), *test]
    return [*code, _step(_RETURN, _ALLOW)]


def _test(name: str) -> list[bytes]:
    if name in _BY_BITS:
        index, bits = _BY_BITS[name]
        return [_argument(index), _step(_BITS, bits, 0, 1), _step(_RETURN, _TRACE), _step(_RETURN, _ALLOW)]
    if name == "ioctl":
        # From the first that is equal to the end, past all that follow and what lets the others go.
        equal = [_step(_EQUAL, each, left, 0) for left, each in zip(range(len(_CHANGES), 0, -1), _CHANGES, strict=True)]
        return [_argument(1), *equal, _step(_RETURN, _ALLOW), _step(_RETURN, _TRACE)]
    if name == "mmap":
        # Whether it may be written to is not asked: mprotect(2) can change that later.
        anonymous, shared = _step(_BITS, _MAP_ANONYMOUS, 2, 0), _step(_BITS, _MAP_SHARED, 0, 1)
        return [_argument(3), anonymous, shared, _step(_RETURN, _TRACE), _step(_RETURN, _ALLOW)]
    return [_step(_RETURN, _TRACE)]


def _argument(index: int) -> bytes:
    # The lower half of it: all that is asked of arguments here fits in 32 bits.
    return _step(_LOAD, _ARGUMENTS_AT + 8 * index)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)
