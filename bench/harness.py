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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: calls in a round, rounds, requests under way at once when pipelined."""

    ops: int
    rounds: int
    window: int


class RawPipe:
    """A child on pipes and nothing else."""

    def __init__(self, program: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._child.stdout is not None
        self._out = open(self._child.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115 - closed in `close`

    def lock_step(self, ops: int) -> None:
        """One line out, one line back."""
        assert self._child.stdin is not None
        for _ in range(ops):
            self._child.stdin.write(LINE)
            self._out.readline()

    def pipelined(self, ops: int, window: int) -> None:
        """A window of lines out, then as many back."""
        assert self._child.stdin is not None
        for _ in range(ops // window):
            for _ in range(window):
                self._child.stdin.write(LINE)
            for _ in range(window):
                self._out.readline()

    def close(self) -> None:
        """End of file, and wait."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._out.close()
        self._child.stdout.close()


class ThroughWorker:
    """The same through the harness."""

    def __init__(self, janitor: Janitor) -> None:
        command = AdapterCommand((sys.executable, "-c", ANSWERER), scrubbed_environment(), Deadlines())
        self._worker = Worker(command, janitor=janitor, number=0, epoch_ns=time.monotonic_ns())
        self._worker.await_greeting()

    def _take(self) -> None:
        reply = self._worker.receive(timeout=5.0)
        if reply.answer is None:
            raise RuntimeError(f"the answerer did not answer: {reply.event}")

    def lock_step(self, ops: int) -> None:
        """One request, one answer."""
        for _ in range(ops):
            self._worker.send(CALL)
            self._take()

    def pipelined(self, ops: int, window: int) -> None:
        """A window of requests, then their answers."""
        for _ in range(ops // window):
            for _ in range(window):
                self._worker.send(CALL)
            for _ in range(window):
                self._take()

    def close(self) -> None:
        """End it."""
        self._worker.kill()


@contextmanager
def _subjects() -> Iterator[dict[str, RawPipe | ThroughWorker]]:
    with ExitStack() as stack:
        janitor = stack.enter_context(Janitor())
        subjects: dict[str, RawPipe | ThroughWorker] = {}
        for name, make in (
            ("echo", lambda: RawPipe(ECHO)),
            ("answerer", lambda: RawPipe(ANSWERER)),
            ("worker", lambda: ThroughWorker(janitor)),
        ):
            subjects[name] = make()
            stack.callback(subjects[name].close)
        yield subjects


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(sizes: Sizes) -> dict[str, Any]:
    """Medians in microseconds for one call, and the ratios between them, by manner and subject."""
    ops = max(sizes.window, sizes.ops - sizes.ops % sizes.window)
    taken: dict[str, dict[str, list[float]]] = {"lock_step": {}, "pipelined": {}}
    with _subjects() as subjects:
        for subject in subjects.values():
            subject.lock_step(sizes.window)
        for _ in range(sizes.rounds):
            for name, subject in subjects.items():
                once = _seconds(partial(subject.lock_step, ops))
                taken["lock_step"].setdefault(name, []).append(once / ops * 1e6)
            for name, subject in subjects.items():
                once = _seconds(partial(subject.pipelined, ops, sizes.window))
                taken["pipelined"].setdefault(name, []).append(once / ops * 1e6)
    medians = {
        manner: {name: statistics.median(times) for name, times in by_name.items()} for manner, by_name in taken.items()
    }
    return {
        "ops": ops,
        "rounds": sizes.rounds,
        "window": sizes.window,
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
    found = measure(Sizes(max(1, options.ops), max(1, options.rounds), max(1, options.window)))
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
