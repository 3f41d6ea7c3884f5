"""Sessions of the reference on both stores, without any harness."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.answers import Accepted, Answer, Fault, Ok, Refused
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.rs4a_replay.launch import launch
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.servers.lines import Stores
from holdfast.servers.serving import Launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = "ab" * 32
RECOVERY_S = 60.0
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

    def reason(self, method: str, args: Any) -> str:
        answer = self.call(method, args)
        assert isinstance(answer, Refused), answer
        return answer.reason

    def observe(self, method: str, args: Any = None) -> dict[str, Any]:
        answer = self.call(method, args)
        assert isinstance(answer, Ok), answer
        return dict(answer.value or {})

    def counts(self) -> tuple[int, int]:
        """How many registrations and consumed nonces there are."""
        state = self.observe("state")
        return len(state["registration"]), len(state["nonce_consume"])

    def recovered(self) -> None:
        """Wait for a server that lost a backend; on a busy machine that takes longer than an operation may wait."""
        ends = time.monotonic() + RECOVERY_S
        while isinstance(self.call("state"), Fault):
            assert time.monotonic() < ends, "the server is not back"

    def codes(self) -> list[str]:
        return [record["code"] for record in self.observe("audit")["records"]]


Opener = Callable[..., Desk]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    launched = launch({}, parent=tmp_path_factory.mktemp("pg"), mutant=None)
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
    launched = launch({"store": "sqlite"}, parent=tmp_path_factory.mktemp("sqlite"), mutant=None)
    yield launched
    launched.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    """PostgreSQL confined to the workdirs of its sessions."""
    launched = launch({}, parent=tmp_path_factory.mktemp("cluster"), stores=Stores.CONFINED, mutant=None)
    yield launched
    launched.stop()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account can get to, as the kit makes workdirs; pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["postgres", "sqlite"])
def store(request: pytest.FixtureRequest) -> Launched:
    launched: Launched = request.getfixturevalue(request.param)
    return launched


@contextlib.contextmanager
def opening(launched: Launched, workdir: Path) -> Iterator[Opener]:
    """Opens sessions on one workdir; the first is fresh, the others find what is there."""
    implementation = Rs4aReplay()
    opened: list[Session] = []

    def open_one(*, surface: SurfaceWanted = SurfaceWanted.READY, **config: str) -> Desk:
        state = StateWanted.EXISTING if opened else StateWanted.FRESH
        request = OpenRequest(state, surface, workdir, NOW, {**launched.ready.config, **config})
        opened.append(implementation.open(request))
        return Desk(opened[-1])

    try:
        yield open_one
    finally:
        for session in opened:
            session.close()
        implementation.shut_down()


@pytest.fixture
def opener(store: Launched, tmp_path: Path) -> Iterator[Opener]:
    """Opens sessions on either store."""
    with opening(store, tmp_path) as open_one:
        yield open_one


@pytest.fixture
def desk(opener: Opener) -> Desk:
    """One fresh session on either store."""
    return opener()
