"""The traced command as a process: becoming it, letting go of its pipes, ending all of it, ending like it."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import signal
from collections.abc import Callable, Sequence
from typing import NoReturn

from holdfast.conformance.faults.tracer import FAILED, NO_COMMAND, bpf, ptrace

# A command that this process can run by itself, because it has imported it; returns the exit status.
Program = Callable[[], int]


def become(
    command: Sequence[str], ready: int, out: int, *, reads: bool, locks: bool, program: Program | None = None
) -> None:
    """In the new process: wait for the tracer, then become the command, or its `program`. Does not return."""
    status = FAILED
    try:
        os.close(out)
        if not os.read(ready, 1):
            raise OSError(errno.EPERM, "the tracer could not follow it")
        os.close(ready)
        if program is not None:
            # As a new interpreter has them.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            gc.enable()
            ptrace.install(bpf.program(reads=reads, locks=locks))
            status = program()
            return
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        ptrace.install(bpf.program(reads=reads, locks=locks))
        status = NO_COMMAND
        os.execvp(command[0], list(command))  # noqa: S606 - it is what the tracer is for
    except BaseException as error:
        os.write(2, f"tracer: {command[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(status)


def let_go_of_inherited(own: set[int]) -> None:
    """Close the pipes of the command, so that a reader of one finds its end when the command ends, not the tracer."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        with contextlib.suppress(OSError):
            if fd > 2 and fd not in own and os.get_inheritable(fd):
                os.close(fd)


def end_as(status: int) -> NoReturn:
    """End this process as another ended: with its status, or by its signal if negative. Does not return."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


def kill(task: int) -> None:
    """SIGKILL, to a task that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(task, signal.SIGKILL)


def children() -> list[int]:
    """The processes whose parent is this process."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as stream:
            return [int(each) for each in stream.read().split()]
    except OSError:
        return []
