"""The command line. `commands` finds each command; the common entry point is here.

The command is imported late. Before that, signals and streams are set up, and files of an older run are set aside.
Exit statuses are those of `holdfast.conformance.verdict.Exit`.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

import holdfast
from holdfast.conformance.cli.outermost import ENDING, catch, was_interrupted

# As `holdfast.conformance.verdict.Exit` has them, which is not imported yet.
_INCOMPLETE, _KIT, _USAGE = 12, 20, 64
_DISTRIBUTION = "holdfast-conformance"
# Made beforehand, because there may be no memory for it later.
_NO_MEMORY = b"holdfast: there is not enough memory; nothing was proven\n"


def main() -> NoReturn:
    """Entry point of the console script."""
    catch()
    # Modules and contracts stay in use, and few objects refer to each other. A collection after each 700 new ones
    # would take a tenth of the time.
    gc.set_threshold(100_000)
    try:
        status = _run()
    except KeyboardInterrupt:
        # Before the command started, or while it printed its result.
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
    if getattr(holdfast, "DISTRIBUTION", "") != _DISTRIBUTION:
        where = next(iter(holdfast.__path__))
        _say(
            f"another project named holdfast is installed over this one in {where}: `pip uninstall holdfast "
            f"{_DISTRIBUTION}`, and install {_DISTRIBUTION} again"
        )
        return _KIT
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
        # An error during the compilation of a module can hide an interruption.
        if was_interrupted():
            raise KeyboardInterrupt from error
        # With little memory this fails first: a library of the kit cannot be mapped.
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


def _set_aside_earlier(ended: int | None = None) -> str:
    """Why files of an older run at the output places cannot be set aside; empty if there is no problem."""
    from holdfast.conformance.cli.outermost.older_runs import set_aside_earlier

    try:
        return set_aside_earlier(sys.argv[1:], ended=ended)
    except OSError as error:
        return str(error)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """An interruption in a finaliser counts, which Python would only print and forget."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_behind, (sys._getframe(), _thread.get_ident()))
    elif not isinstance(unraisable.exc_value, MemoryError):
        sys.__unraisablehook__(unraisable)


def _interrupt_behind(hook: FrameType, thread: int) -> None:
    """Interrupt a thread once it has left the hook: in it the interruption would be forgotten again."""
    from traceback import walk_stack

    while any(frame is hook for frame, _ in walk_stack(sys._current_frames()[thread])):
        time.sleep(0.001)
    # One that is caught: SIGINT may be ignored.
    caught = [number for number in ENDING if callable(signal.getsignal(number))]
    signal.pthread_kill(thread, caught[0])


def _leave(status: int) -> NoReturn:
    """End the process. The command is over, and an interruption now would only add a traceback to the result."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(MemoryError):
        if problem := _set_aside_earlier(status):
            _say(problem)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # Not by Python's own shutdown: it can be interrupted, and libraries without memory crash in it. All children are
    # already ended and removed.
    os._exit(status)


def _say(text: str) -> None:
    from holdfast.conformance.cli.outermost.streams import say

    say(text)
