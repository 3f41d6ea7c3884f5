"""The tracer as a process of its own: `python -m holdfast.conformance.faults.tracer`. The package describes it."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.conformance.faults.tracer import FAILED, Injection
from holdfast.conformance.faults.tracer.command import end_as
from holdfast.conformance.faults.tracer.trace import Tracer


def main(arguments: Sequence[str]) -> int:
    """Trace what the command line says. Returns how the command ended: its status, or a signal as a negative number."""
    split = list(arguments).index("--") if "--" in arguments else len(arguments)
    options, command = _parser().parse_args(arguments[:split]), list(arguments[split + 1 :])
    if not command:
        _parser().error("expected a command behind --")
    watch = tuple(options.watch)
    fault = Injection(options.kill, options.torn, options.error, options.at, options.once, options.short, watch)
    if options.overtake is not None and options.armed is not None:
        fault = fault._replace(overtake=(options.overtake, options.armed))
    # Held back until there is something to end.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        out = os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        tracer = Tracer(options.workdir, out, fault)
        for number in ends:
            # A shell lets what it runs in the background ignore SIGINT.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: tracer.kill())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        return tracer.run(command)
    except OSError as error:
        print(f"tracer: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tracer", description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="where the recording goes")
    parser.add_argument("--kill", type=_number, metavar="N", help="SIGKILL all before operation N")
    parser.add_argument("--torn", action="store_true", help="if operation N is a write, do half of it before the kill")
    parser.add_argument("--error", type=_error, default=0, metavar="E", help="fail with this error, as ENOSPC or 28")
    parser.add_argument("--at", type=_number, default=1, metavar="N", help="from which operation on")
    parser.add_argument("--once", action="store_true", help="only the first of them")
    parser.add_argument("--short", type=_number, metavar="N", help="let the first write at N or later do half")
    parser.add_argument("--overtake", type=Path, metavar="DATABASE", help="fail its lock behind the first transaction")
    parser.add_argument("--armed", type=Path, metavar="FILE", help="from when on, by this file")
    parser.add_argument("--watch", type=_file, action="append", default=[], help="note that this file is read")
    parser.add_argument("workdir", type=Path)
    return parser


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of 1 or more, got {text}")
    return number


def _file(text: str) -> tuple[int, int]:
    device, _, inode = text.partition(":")
    return int(device), int(inode)


def _error(text: str) -> int:
    number = getattr(errno, text, None) if text.isupper() else int(text)
    if not isinstance(number, int) or number < 1:
        raise argparse.ArgumentTypeError(f"expected the name or the number of an error, got {text}")
    return number


if __name__ == "__main__":
    end_as(main(sys.argv[1:]))
