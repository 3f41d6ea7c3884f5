"""The command line. What every command has in common at its outermost: signals, streams, and the exit status.

The commands are imported late: before that, which takes a third of a second, this is in place, and what an older run
left is set aside. Exit statuses are those of `holdfast.conformance.verdict.Exit`.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import holdfast

# As Ctrl-C: what is running is ended in order, and cleaned up.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As `holdfast.conformance.verdict.Exit` has them, which is not there yet.
_INCOMPLETE, _KIT, _USAGE = 12, 20, 64
# Made beforehand: when it is needed there is no room for it.
_NO_MEMORY = b"holdfast: there is not enough memory; nothing was proven\n"

_interrupted = False


def main() -> NoReturn:
    """Entry point of the console script."""
    for number in _ENDING:
        # What is ignored stays so: nohup, and jobs in the background of a shell.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        status = _run()
    except KeyboardInterrupt:
        # Before there was a command, or while it said what it had found.
        _say("interrupted; nothing was proven")
        status = _INCOMPLETE
    except MemoryError:
        status = _KIT
        with contextlib.suppress(OSError):
            os.write(2, _NO_MEMORY)
    _leave(status)


def was_interrupted() -> bool:
    """Whether a signal was to end this process: whatever was raised since then is what became of that."""
    return _interrupted


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


def _run() -> int:
    from holdfast.conformance.cli.streams import take_over

    take_over()
    # Nothing is ever imported from the folder the user happens to stand in.
    here = current_folder()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", here) or _holds_kit(entry or here)]
    sys.unraisablehook = _unraisable
    problem = _set_aside_earlier()
    if problem:
        _say(problem)
        return _USAGE
    try:
        from holdfast.conformance.cli.outermost import run

        return run()
    except Exception as error:
        # What is raised while a module is compiled can hide an interruption.
        if _interrupted:
            raise KeyboardInterrupt from error
        # Where there is hardly any memory this is the first to fail: a library of the kit that cannot be mapped.
        _say(f"the kit cannot be loaded ({type(error).__name__}: {error}); is there memory enough, and is it whole?")
        return _KIT


def _set_aside_earlier() -> str:
    """Why an older run stands where this one is to write, and cannot be set aside; empty if none does."""
    from holdfast.conformance.cli.before import set_aside_earlier

    try:
        return set_aside_earlier(sys.argv[1:])
    except OSError as error:
        return str(error)


def current_folder() -> str:
    """The folder that the user stands in, if it is still there; else nothing."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _holds_kit(entry: str) -> bool:
    """Whether the kit itself runs from that folder (a checkout installed in place)."""
    return bool(entry) and os.path.dirname(os.path.dirname(os.path.abspath(holdfast.__file__))) == os.path.abspath(
        entry
    )


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """An interruption in a finaliser counts, which Python would only print and forget."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _thread.interrupt_main()
    elif not isinstance(unraisable.exc_value, MemoryError):
        sys.__unraisablehook__(unraisable)


def _leave(status: int) -> NoReturn:
    """End the process. It is over: what interrupts it now would only put a traceback behind the result."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # Not by way of Python's own end, in which libraries that found no memory crash, and which can be interrupted. All
    # that was started has been ended and removed by then.
    os._exit(status)


def _say(text: str) -> None:
    from holdfast.reports.plain import plain

    print("holdfast:", plain(text), file=sys.stderr)
