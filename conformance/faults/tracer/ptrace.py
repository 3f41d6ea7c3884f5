"""ptrace(2), prctl(2) and the memory of another process, through the C library."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

# Options and events of ptrace(2).
SYSGOOD, FORK, VFORK, CLONE, EXEC, SECCOMP, EXITKILL = 0x1, 0x2, 0x4, 0x8, 0x10, 0x80, 0x100000
OPTIONS = SYSGOOD | FORK | VFORK | CLONE | EXEC | SECCOMP | EXITKILL
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC, EVENT_SECCOMP, EVENT_STOP = 1, 2, 3, 4, 7, 128
# waitpid(2): children of every kind, threads too.
ALL_KINDS = 0x40000000

_CONT, _GETREGS, _SETREGS, _SYSCALL = 7, 12, 13, 24
_GETEVENTMSG, _SEIZE, _LISTEN, _GET_SYSCALL_INFO = 0x4201, 0x4206, 0x4208, 0x420E
_SET_SECCOMP, _FILTER_MODE, _SUBREAPER, _NO_NEW_PRIVS = 22, 2, 36, 38
_INFO_EXIT, _INFO_SECCOMP = 2, 3
_PAGE = 4096
_LONGEST_PATH = 4096

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE = _LIBC.ptrace
_PTRACE.restype = ctypes.c_long
_PTRACE.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_INFO = ctypes.create_string_buffer(128)


class _Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


for _move in (_LIBC.process_vm_readv, _LIBC.process_vm_writev):
    _move.restype = ctypes.c_ssize_t
    _move.argtypes = [
        ctypes.c_int,
        ctypes.POINTER(_Vector),
        ctypes.c_ulong,
        ctypes.POINTER(_Vector),
        ctypes.c_ulong,
        ctypes.c_ulong,
    ]


class Entry(NamedTuple):
    """A call that stands at its entry: the architecture, the call's number and its six arguments, unsigned."""

    arch: int
    number: int
    args: tuple[int, ...]


def _ptrace(request: int, task: int, address: object, data: object) -> int:
    result = _PTRACE(request, task, address, data)
    if result == -1:
        raise _error()
    return int(result)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def seize(task: int) -> None:
    """Trace a task and all that it will start, without stopping it. Raises OSError."""
    _ptrace(_SEIZE, task, None, OPTIONS)


def go(task: int, signal: int = 0) -> None:
    """Let a stopped task run on, with a signal if one is to be delivered. Raises OSError."""
    _ptrace(_CONT, task, None, signal or None)


def go_to_exit(task: int) -> None:
    """Let a stopped task run to the end of its system call. Raises OSError."""
    _ptrace(_SYSCALL, task, None, None)


def stay_stopped(task: int) -> None:
    """Leave a task that a job control signal stopped as it is, but observe what comes of it. Raises OSError."""
    _ptrace(_LISTEN, task, None, None)


def message(task: int) -> int:
    """The number that belongs to an event: of a new task, of the thread that called exec. Raises OSError."""
    value = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, task, None, ctypes.byref(value))
    return value.value


def entry(task: int) -> Entry:
    """The call at whose entry the filter stopped a task. Raises OSError."""
    _ptrace(_GET_SYSCALL_INFO, task, len(_INFO), _INFO)
    kind, arch, number, *args = struct.unpack_from("<B3xI16x7Q", _INFO)
    if kind != _INFO_SECCOMP:
        raise OSError(0, f"expected a stop of the filter, got {kind}")
    return Entry(arch, number, tuple(args))


def result(task: int) -> int:
    """What the call returned at whose exit a task stands; an error is negative. Raises OSError."""
    _ptrace(_GET_SYSCALL_INFO, task, len(_INFO), _INFO)
    kind, value = struct.unpack_from("<B23xq", _INFO)
    if kind != _INFO_EXIT:
        raise OSError(0, f"expected the exit of a call, got {kind}")
    return int(value)


def get_registers(task: int, registers: ctypes.Structure) -> None:
    """Fill in the registers of a stopped task. Raises OSError."""
    _ptrace(_GETREGS, task, None, ctypes.byref(registers))


def set_registers(task: int, registers: ctypes.Structure) -> None:
    """Set the registers of a stopped task. Raises OSError."""
    _ptrace(_SETREGS, task, None, ctypes.byref(registers))


def peek(task: int, address: int, size: int) -> bytes:
    """`size` bytes of a task's memory. Raises OSError, EFAULT if they are not all there."""
    if not size:
        return b""
    buffer = ctypes.create_string_buffer(size)
    moved = _move_memory(_LIBC.process_vm_readv, task, address, buffer, size)
    if moved < size:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    return buffer.raw


def poke(task: int, address: int, data: bytes) -> None:
    """Put bytes into a task's memory. Raises OSError."""
    _move_memory(_LIBC.process_vm_writev, task, address, ctypes.create_string_buffer(data, len(data)), len(data))


def _move_memory(
    move: ctypes._NamedFuncPointer, task: int, address: int, buffer: ctypes.Array[ctypes.c_char], size: int
) -> int:
    here, there = _Vector(ctypes.addressof(buffer), size), _Vector(address, size)
    moved = move(task, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if moved < 0:
        raise _error()
    return int(moved)


def text(task: int, address: int) -> bytes:
    """A C string of a task's memory, without its end. Raises OSError."""
    found = b""
    while len(found) < _LONGEST_PATH:
        # A string may end where its page does, and the memory with it.
        part = peek(task, address + len(found), _PAGE - (address + len(found)) % _PAGE)
        end = part.find(b"\0")
        found += part if end < 0 else part[:end]
        if end >= 0:
            break
    return found


def adopt_orphans() -> None:
    """From now on, descendants whose parent ends become children of this process. Raises OSError."""
    _prctl(_SUBREAPER, 1, 0)


def install(program: Sequence[bytes]) -> None:
    """Put a filter on this process and all that it will start; it gives up the right to gain rights. Raises OSError."""
    code = ctypes.create_string_buffer(b"".join(program))
    _prctl(_NO_NEW_PRIVS, 1, 0)
    # The addresses alone would keep neither alive.
    whole = _Program(len(program), ctypes.addressof(code))
    _prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(whole))


def _prctl(option: int, first: int, second: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise _error()
