"""The command line. Each command is a module; exit statuses are those of `conformance.verdict.Exit`.

The commands are imported late: before that, which takes a third of a second, what an older run left is set aside.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from conformance.verdict import Exit

# What click exits with on a usage error; holdfast's own table says 64, and no command of it uses 2.
_CLICK_USAGE = 2


def main() -> None:
    """Entry point of the console script."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What is ignored stays so: nohup, and jobs in the background of a shell.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    # Nothing is ever imported from the folder the user happens to stand in.
    here = _here()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", here) or (here and _holds_kit(here))]
    try:
        _set_aside_earlier()
        from conformance.cli.commands import app

        app()
    except SystemExit as stop:
        raise SystemExit(int(Exit.USAGE) if stop.code == _CLICK_USAGE else stop.code) from None
    except KeyboardInterrupt:
        print("holdfast: interrupted; nothing was proven", file=sys.stderr)
        raise SystemExit(int(Exit.INCOMPLETE)) from None
    except Exception:
        import traceback

        # A defect of the kit must not look like a result about the adapter.
        traceback.print_exc()
        print("holdfast: this is a fault of the kit itself, please report it", file=sys.stderr)
        raise SystemExit(int(Exit.KIT)) from None


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """As Ctrl-C: what is running is ended in order, and cleaned up."""
    raise KeyboardInterrupt


def _set_aside_earlier() -> None:
    from conformance.cli.before import set_aside_earlier

    problem = set_aside_earlier(sys.argv[1:])
    if problem:
        print(f"holdfast: {problem}", file=sys.stderr)
        raise SystemExit(int(Exit.USAGE))


def _here() -> str:
    """The current folder; nothing if it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _holds_kit(entry: str) -> bool:
    """Whether the kit itself runs from that folder (a checkout installed in place)."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) == os.path.abspath(entry)
