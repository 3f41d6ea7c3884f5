"""What the harness costs: calls through a `Worker` against a bare pipe, in the same run, as ratios.

    python bench/harness.py [--ops N] [--rounds N] [--window N] [--json]

Three ways to ask a child the same thing take turns, so that other work of the machine slows all of them alike:

    echo      a raw pipe to a child that sends each line back
    answerer  a raw pipe to the smallest adapter; what it costs to read and write JSON there is in it
    worker    `conformance.adapter.worker.Worker` to the same adapter: numbering, schemas both ways, matching, deadlines

Each is done lock-step (a request, then its answer) and pipelined (a window of requests, then their answers). Printed
are the medians over the rounds, in microseconds for one call, and their ratios. Ratios travel between machines, the
microseconds do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from contextlib import closing
from typing import Any

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


def asked(subject: RawPipe | ThroughWorker, ops: int, window: int) -> float:
    """Microseconds that a call takes while `window` of them are under way."""
    started = time.perf_counter()
    for _ in range(ops // window):
        for _ in range(window):
            subject.send()
        for _ in range(window):
            subject.take()
    return (time.perf_counter() - started) / ops * 1e6


def measure(ops: int, rounds: int, window: int) -> dict[str, Any]:
    """Medians in microseconds for one call, and the ratios between them, by manner and subject."""
    ops = max(window, ops - ops % window)
    taken: dict[str, dict[str, list[float]]] = {"lock_step": {}, "pipelined": {}}
    with (
        Janitor() as janitor,
        closing(RawPipe(ECHO)) as echo,
        closing(RawPipe(ANSWERER)) as answerer,
        closing(ThroughWorker(janitor)) as worker,
    ):
        subjects: dict[str, RawPipe | ThroughWorker] = {"echo": echo, "answerer": answerer, "worker": worker}
        for subject in subjects.values():
            asked(subject, window, 1)
        for _ in range(rounds):
            for manner, together in (("lock_step", 1), ("pipelined", window)):
                for name, subject in subjects.items():
                    taken[manner].setdefault(name, []).append(asked(subject, ops, together))
    medians = {
        manner: {name: statistics.median(times) for name, times in by_name.items()} for manner, by_name in taken.items()
    }
    return {
        "ops": ops,
        "rounds": rounds,
        "window": window,
        "line_bytes": len(LINE),
        "microseconds": {m: {n: round(v, 2) for n, v in row.items()} for m, row in medians.items()},
        "ratios": {
            manner: {
                "worker/echo": round(row["worker"] / row["echo"], 2),
                "worker/answerer": round(row["worker"] / row["answerer"], 2),
            }
            for manner, row in medians.items()
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ops", type=int, default=640, help="calls in a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--window", type=int, default=32, help="requests under way at once when pipelined")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(max(1, options.ops), max(1, options.rounds), max(1, options.window))
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['rounds']} rounds of {found['ops']} calls, a line of {found['line_bytes']} bytes, medians")
    for manner, row in found["microseconds"].items():
        ratios = found["ratios"][manner]
        each = ", ".join(f"{name} {value:.1f} us" for name, value in row.items())
        print(f"{manner:<10} {each}; " + ", ".join(f"{name} = {value:.2f}" for name, value in ratios.items()))


if __name__ == "__main__":
    main()
