"""What the harness costs: calls through a `Worker` against a bare pipe, in the same run, as ratios.

Three ways to ask a child the same thing take turns, so that other work of the machine slows all of them alike:

    echo      a raw pipe to a child that sends each line back
    answerer  a raw pipe to the smallest adapter; what it costs to read and write JSON there is in it
    worker    `conformance.adapter.worker.Worker` to the same adapter: numbering, schemas both ways, matching, deadlines

Each is done lock-step (a request, then its answer) and pipelined (a window of requests, then their answers). Ratios
travel between machines, the rates do not.

Run: `python -m bench.harness [--batches N] [--batch N] [--window N]`
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from bench.turns import arguments, in_turns, show
from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.worker import AdapterCommand, Worker
from holdfast.servers.environment import scrubbed_environment
from holdfast.servers.janitor import Janitor
from holdfast.specs.strictjson import canonical

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()\n"
ANSWERER = """
import json, sys
for line in sys.stdin.buffer:
    request = json.loads(line)
    answer = {"id": request["id"], "outcome": "accepted", "effect": "new", "value": request.get("args")}
    if request["op"] == "hello":
        answer = {"id": request["id"], "ok": {
            "protocol": 1, "challenge": request["challenge"],
            "implementation": {"name": "answerer", "version": "1.0.0", "language": "python"},
            "claims": [], "limits": {"workers": 1}}}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""
# About the size of a registration of rs4a-replay.
CALL: dict[str, Any] = {
    "op": "call",
    "method": "register",
    "args": {
        "request": {
            "operation": "register_dot",
            "canonical_target": "dot://acme/0123456789abcdef",
            "attempt_id": "try-0123456789abcdef",
            "principal": "did:example:registrar-1",
            "issued_at": "2026-01-01T00:00:00Z",
            "authorization_nonce": "A" * 43,
        },
        "trusted_attested": {"artifact_hash": "0" * 64},
    },
}
LINE = canonical({"id": "1", **CALL}) + b"\n"
WARM_UP = 10


class RawPipe:
    """A child on pipes and nothing else."""

    def __init__(self, program: str) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, bufsize=0)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._in = self._child.stdin
        self._out = open(self._child.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115 - closed in `close`

    def send(self) -> None:
        """One line out."""
        self._in.write(LINE)

    def take(self) -> None:
        """One line back."""
        self._out.readline()

    def close(self) -> None:
        """End of file, and wait."""
        with self._child, self._out:
            self._in.close()


class ThroughWorker:
    """The same through the harness."""

    def __init__(self, janitor: Janitor) -> None:
        command = AdapterCommand((sys.executable, "-c", ANSWERER), scrubbed_environment(), Deadlines())
        self._worker = Worker(command, janitor=janitor, number=0, epoch_ns=time.monotonic_ns())
        self._worker.await_greeting()
        self.close = self._worker.kill

    def send(self) -> None:
        """One request."""
        self._worker.send(CALL)

    def take(self) -> None:
        """One answer."""
        reply = self._worker.receive(timeout=5.0)
        if reply.answer is None:
            raise RuntimeError(f"the answerer did not answer: {reply.event}")


def asked(subject: RawPipe | ThroughWorker, window: int) -> Callable[[int], None]:
    """What has `window` calls under way at once."""

    def one(_: int) -> None:
        for _ in range(window):
            subject.send()
        for _ in range(window):
            subject.take()

    return one


def main() -> None:
    """Print the rates and ratios of each manner."""
    options = arguments(__doc__, batches=90, batch=5, window=32)
    with (
        Janitor() as janitor,
        closing(ThroughWorker(janitor)) as worker,
        closing(RawPipe(ECHO)) as echo,
        closing(RawPipe(ANSWERER)) as answerer,
    ):
        for manner, window in (("lock-step", 1), ("pipelined", options.window)):
            sides = [asked(subject, window) for subject in (worker, echo, answerer)]
            taken = in_turns(sides, warm_up=WARM_UP, batches=options.batches, batch=options.batch)
            show(dict(zip(("worker", "echo", "answerer"), taken, strict=True)), manner, each=window)


if __name__ == "__main__":
    main()
