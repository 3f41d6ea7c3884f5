"""The command line. Each command is found in `commands`; what all of them share at the outermost is here.

The command is imported late. Signals and streams are in place before, and what an older run left is set aside.
Exit statuses are those of `holdfast.conformance.verdict.Exit`.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
from typing import NoReturn

import holdfast
from holdfast.conformance.cli.outermost.interruption import ENDING, catch, was_interrupted

# As `holdfast.conformance.verdict.Exit` has them, which is not imported yet.
_INCOMPLETE, _KIT, _USAGE = 12, 20, 64
# Made beforehand: when it is needed there is no room for it.
_NO_MEMORY = b"holdfast: there is not enough memory; nothing was proven\n"


def main() -> NoReturn:
    """Entry point of the console script."""
    catch()
    try:
        status = _run()
    except KeyboardInterrupt:
        # Before there was a command, or while it printed its result.
        _say("interrupted; nothing was proven")
        status = _INCOMPLETE
    except MemoryError:
        status = _KIT
        with contextlib.suppress(OSError):
            os.write(2, _NO_MEMORY)
    _leave(status)


def _run() -> int:
    from holdfast.conformance.cli.outermost.streams import take_over

    take_over()
    _import_nothing_from_here()
    sys.unraisablehook = _unraisable
    problem = _set_aside_earlier()
    if problem:
        _say(problem)
        return _USAGE
    try:
        from holdfast.conformance.cli.outermost.run import run

        return run()
    except Exception as error:
        # What is raised while a module is compiled can hide an interruption.
        if was_interrupted():
            raise KeyboardInterrupt from error
        # Where there is hardly any memory this is the first to fail: a library of the kit that cannot be mapped.
        _say(f"the kit cannot be loaded ({type(error).__name__}: {error}); is there memory enough, and is it whole?")
        return _KIT


def _import_nothing_from_here() -> None:
    """Take the working directory off the path of imports, unless the kit itself runs from it."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    home = os.path.dirname(os.path.dirname(os.path.abspath(holdfast.__file__)))
    sys.path[:] = [
        entry for entry in sys.path if entry not in ("", here) or (here and os.path.abspath(entry or here) == home)
    ]


def _set_aside_earlier() -> str:
    """Why an older run stands where this one is to write, and cannot be set aside; empty if none does."""
    from holdfast.conformance.cli.outermost.older_runs import set_aside_earlier

    try:
        return set_aside_earlier(sys.argv[1:])
    except OSError as error:
        return str(error)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """An interruption in a finaliser counts, which Python would only print and forget."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _thread.interrupt_main()
    elif not isinstance(unraisable.exc_value, MemoryError):
        sys.__unraisablehook__(unraisable)


def _leave(status: int) -> NoReturn:
    """End the process. It is over: what interrupts it now would only put a traceback behind the result."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # Not by way of Python's own end, in which libraries that found no memory crash, and which can be interrupted. All
    # that was started has been ended and removed by then.
    os._exit(status)


def _say(text: str) -> None:
    from holdfast.conformance.cli.outermost.streams import say

    say(text)
