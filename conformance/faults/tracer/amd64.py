"""What the tracer must know of x86-64: numbers of system calls, and registers. Another machine is one more module."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from holdfast.conformance.faults.tracer import ptrace

# AUDIT_ARCH_X86_64, as seccomp and PTRACE_GET_SYSCALL_INFO name it.
ARCH = 0xC000003E
# Calls of the x32 ABI have this bit; they come under the same name of architecture.
FOREIGN_BIT = 0x40000000

NUMBERS: Mapping[str, int] = {
    "write": 1,
    "open": 2,
    "mmap": 9,
    "ioctl": 16,
    "pwrite64": 18,
    "writev": 20,
    "msync": 26,
    "sendfile": 40,
    "connect": 42,
    "sendto": 44,
    "sendmsg": 46,
    "bind": 49,
    "clone": 56,
    "fcntl": 72,
    "fsync": 74,
    "fdatasync": 75,
    "truncate": 76,
    "ftruncate": 77,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "creat": 85,
    "link": 86,
    "unlink": 87,
    "symlink": 88,
    "chmod": 90,
    "fchmod": 91,
    "chown": 92,
    "fchown": 93,
    "lchown": 94,
    "utime": 132,
    "mknod": 133,
    "pivot_root": 155,
    "chroot": 161,
    "sync": 162,
    "mount": 165,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "lremovexattr": 198,
    "fremovexattr": 199,
    "io_setup": 206,
    "utimes": 235,
    "mq_open": 240,
    "openat": 257,
    "mkdirat": 258,
    "mknodat": 259,
    "fchownat": 260,
    "futimesat": 261,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "symlinkat": 266,
    "fchmodat": 268,
    "splice": 275,
    "tee": 276,
    "sync_file_range": 277,
    "vmsplice": 278,
    "utimensat": 280,
    "fallocate": 285,
    "pwritev": 296,
    "open_by_handle_at": 304,
    "syncfs": 306,
    "sendmmsg": 307,
    "setns": 308,
    "renameat2": 316,
    "copy_file_range": 326,
    "pwritev2": 328,
    "io_uring_setup": 425,
    "move_mount": 429,
    "clone3": 435,
    "openat2": 437,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
}


class _Registers(ctypes.Structure):
    """`struct user_regs_struct`."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
            "ds es fs gs"
        ).split()
    ]


_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
_MASK = 2**64 - 1


def refuse(task: int, error: int) -> None:
    """Make a call that stands at its entry not happen and return `error`. Raises OSError."""
    registers = _Registers()
    ptrace.get_registers(task, registers)
    registers.orig_rax = _MASK
    registers.rax = -error & _MASK
    ptrace.set_registers(task, registers)


def set_argument(task: int, index: int, value: int) -> None:
    """Put `value` in place of an argument, counted from 0; at the exit of a call, what the program finds there after.

    Raises OSError.
    """
    registers = _Registers()
    ptrace.get_registers(task, registers)
    setattr(registers, _ARGUMENTS[index], value & _MASK)
    ptrace.set_registers(task, registers)
