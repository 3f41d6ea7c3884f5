"""Sessions of the reference on both stores, without any harness."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.answers import Accepted, Answer, Ok
from holdfast.reference_impl.rs4a_replay.launch import launch
from holdfast.reference_impl.session import Session
from holdfast.servers.serving import Launched, Stores

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = "ab" * 32
WINDOW = {"not_before": "2026-01-01T00:00:00Z", "not_after": "2026-01-01T01:00:00Z"}


def submission(
    nonce: str, *, target: str = "dot://acme/thing", attempt: str = "try-1", **changed: str
) -> dict[str, Any]:
    """A valid submission with that nonce."""
    request = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": target,
        "owner_or_approval_binding": "owner-1",
        "principal": "agent-1",
        "run_id": "run-1",
        "deployed_artifact_hash": HASH,
        "authorization_nonce": nonce,
        "attempt_id": attempt,
        "issued_at": "2026-01-01T00:00:00Z",
        **changed,
    }
    return {"request": request, "trusted_attested": {"artifact_hash": HASH}}


@dataclass(slots=True)
class Desk:
    """A session with short words for what tests do most."""

    session: Session

    def call(self, method: str, args: Any = None) -> Answer:
        return self.session.call(method, {} if args is None else args)

    def nonce(self, **binding: str) -> str:
        answer = self.call("issue_nonce", {"binding": binding or {"principal": "agent-1"}, "window": WINDOW})
        assert isinstance(answer, Accepted), answer
        return str(answer.value["nonce"])

    def accepted(self, method: str, args: Any) -> Accepted:
        answer = self.call(method, args)
        assert isinstance(answer, Accepted), answer
        return answer

    def observe(self, method: str, args: Any = None) -> dict[str, Any]:
        answer = self.call(method, args)
        assert isinstance(answer, Ok), answer
        return dict(answer.value or {})

    def counts(self) -> tuple[int, int]:
        """How many registrations and consumed nonces there are."""
        state = self.observe("state")
        return len(state["registration"]), len(state["nonce_consume"])


def opening(workdir: Path, config: Any) -> dict[str, Any]:
    """The members of a request that opens a fresh session."""
    return {
        "contract": "rs4a-replay",
        "state": "fresh",
        "surface": "ready",
        "workdir": str(workdir),
        "clock": "2026-01-01T00:00:00Z",
        "seed": "s",
        "config": dict(config),
    }


class Pipe:
    """One adapter process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.count = 0

    def send(self, op: str, **members: Any) -> None:
        self.count += 1
        self.send_line(json.dumps({"id": str(self.count), "op": op, **members}).encode() + b"\n")

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, op: str, **members: Any) -> dict[str, Any]:
        self.send(op, **members)
        answer = self.answer()
        assert answer.pop("id") == str(self.count)
        return answer

    def open(self, workdir: Path, config: Any) -> dict[str, Any]:
        return self.ask("open", **opening(workdir, config))


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    launched = launch({}, parent=tmp_path_factory.mktemp("pg"))
    ended = threading.Event()

    def sweep() -> None:
        while not ended.wait(0.05):
            launched.sweep()

    # What the launcher process does while it waits.
    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    yield launched
    ended.set()
    sweeper.join()
    launched.stop()


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    launched = launch({"store": "sqlite"}, parent=tmp_path_factory.mktemp("sqlite"))
    yield launched
    launched.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    """PostgreSQL confined to the workdirs of its sessions."""
    launched = launch({}, parent=tmp_path_factory.mktemp("cluster"), stores=Stores.CONFINED)
    yield launched
    launched.stop()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account can get to, as the kit makes workdirs; pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
