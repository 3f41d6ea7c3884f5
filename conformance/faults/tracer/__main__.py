"""The tracer as a process of its own: `python -m holdfast.conformance.faults.tracer`. The package describes it."""

from __future__ import annotations

import json
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
    split = list(arguments).index("--")
    (path, workdir, *words), command = arguments[:split], arguments[split + 1 :]
    said = dict(word.split("=", 1) for word in words)
    fault = Injection(**{name: json.loads(value) for name, value in said.items()})
    # Held back until there is something to end.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        tracer = Tracer(Path(workdir), out, fault)
        for number in ends:
            # A shell lets what it runs in the background ignore SIGINT.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: tracer.kill())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        return tracer.run(command)
    except OSError as error:
        print(f"tracer: {error}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    end_as(main(sys.argv[1:]))
