"""The entry of every command: signals, streams, files of an older run, and the exit status.

Signals that end the kit act as Ctrl-C, so that running children are ended in order and cleaned up.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_interrupted = False


def catch() -> None:
    """Let each of these signals interrupt this process."""
    for number in ENDING:
        # Ignored signals stay ignored: nohup, and jobs in the background of a shell.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def was_interrupted() -> bool:
    """Whether such a signal came. Errors that were raised since then are a consequence of it."""
    return _interrupted


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt
