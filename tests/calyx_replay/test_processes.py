"""Several processes on one mailbox: adapters over real pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from holdfast.servers.serving import Launched
from tests.calyx_replay.conftest import NOW, b64, envelope, key_of, text

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, ENVELOPES = 8, 25


class Worker:
    """One adapter process with a session."""

    def __init__(self, template: Launched, workdir: Path, *, state: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        opened = self.ask(
            op="open",
            contract="calyx-replay",
            state=state,
            surface="ready",
            workdir=str(workdir),
            clock=text(NOW),
            config=dict(template.ready.config),
        )
        assert opened["outcome"] == "ok", opened

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": "1", **request}).encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, method: str, **args: Any) -> dict[str, Any]:
        return self.ask(op="call", method=method, args=args)

    def accept(self, raw: bytes) -> str:
        """`new`, or the reason. A sender that finds the store busy tries again, as a mailbox does."""
        while True:
            answer = self.call("accept", envelope=b64(raw))
            told = str(answer.get("effect") or answer.get("reason") or answer)
            if told != "STORE_UNAVAILABLE":
                return told


@contextmanager
def workers(template: Launched, workdir: Path, count: int) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        made: list[Worker] = []
        for _ in range(count):
            worker = Worker(template, workdir, state="existing" if made else "fresh")
            stack.enter_context(worker.process)
            assert worker.process.stdin is not None
            stack.callback(worker.process.stdin.close)
            made.append(worker)
        yield made


def at_once(crew: list[Worker], raws: list[bytes]) -> list[list[str]]:
    """Every worker sends every envelope, all at once. Returns the answers of each worker, by envelope."""
    told: list[list[str]] = [[] for _ in crew]
    barrier = threading.Barrier(len(crew))

    def run(number: int) -> None:
        for raw in raws:
            barrier.wait()
            told[number].append(crew[number].accept(raw))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(crew))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_of_eight_processes_one_delivers_each_envelope(template: Launched, tmp_path: Path) -> None:
    raws = [envelope() for _ in range(ENVELOPES)]
    with workers(template, tmp_path, PROCESSES) as crew:
        told = at_once(crew, raws)
        for answers in zip(*told, strict=True):
            assert sorted(answers) == sorted(["new", *["REPLAY_DUPLICATE"] * (PROCESSES - 1)])
        delivered = crew[-1].call("deliveries")["value"]["delivered"]
        assert sorted(entry["replay_key"] for entry in delivered) == sorted(map(key_of, raws))


def test_a_killed_process_has_delivered_what_it_said_and_nothing_else(template: Launched, tmp_path: Path) -> None:
    first, second = envelope(), envelope()
    with workers(template, tmp_path, 1) as (worker,):
        assert worker.accept(first) == "new"
        worker.call("hold_at", point="before_commit", fault="hold")
        assert worker.process.stdin is not None
        line = {"id": "2", "op": "call", "method": "accept", "args": {"envelope": b64(second)}}
        worker.process.stdin.write(json.dumps(line).encode() + b"\n")
        worker.process.stdin.flush()
        reached = threading.Event()
        while not (tmp_path / "hold/before_commit.reached").exists():
            reached.wait(0.01)
        worker.process.kill()
        worker.process.wait()
    other = Worker(template, tmp_path, state="existing")
    with other.process:
        assert other.accept(first) == "REPLAY_DUPLICATE"
        assert other.accept(second) == "new"
        assert len(other.call("deliveries")["value"]["delivered"]) == 2
        assert other.ask(op="bye")["outcome"] == "ok"
