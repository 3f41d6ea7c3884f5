"""Mailboxes of the reference in folders of their own, and envelopes to send to them."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from holdfast.reference_impl.answers import Accepted, Answer, Indeterminate, Ok, Refused
from holdfast.reference_impl.calyx_replay.entry import CalyxReplay
from holdfast.reference_impl.calyx_replay.factory import REFERENCE, Factory
from holdfast.reference_impl.calyx_replay.launch import launch
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from holdfast.specs.strictjson import canonical

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATABASE = "runtime/mailbox/replay_state.db"
ROW = {"msg_id": "m", "sender_fp": "s", "recipient_fp": "r", "envelope_timestamp": "t"}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def signed(value: dict[str, Any], key: SigningKey) -> bytes:
    """The canonical bytes of `value` with its signature, for every content."""
    unsigned = {name: part for name, part in value.items() if name != "signature"}
    return canonical({**unsigned, "signature": b64(key.sign(canonical(unsigned)).signature)})


def content(key: SigningKey, *, at: datetime | str = NOW, msg_id: str | None = None, **header: Any) -> dict[str, Any]:
    """An envelope without its signature."""
    public = bytes(key.verify_key)
    return {
        "protocol_version": "calyx-mail/0.1",
        "header": {
            "msg_id": msg_id or str(uuid.uuid4()),
            "sender_key": b64(public),
            "sender_fp": hashlib.sha256(public).hexdigest(),
            "recipient_fp": "ab" * 32,
            "timestamp": at if isinstance(at, str) else text(at),
            **header,
        },
        "ciphertext": b64(b"secret"),
    }


def sender(label: str = "alice") -> SigningKey:
    return SigningKey(hashlib.sha256(label.encode()).digest())


def envelope(*, label: str = "alice", **members: Any) -> bytes:
    """The bytes of one valid envelope, a new one each time."""
    key = sender(label)
    return signed(content(key, **members), key)


@dataclass(slots=True)
class Box:
    """A session with short words for what tests do most."""

    session: Session
    workdir: Path

    @property
    def database(self) -> Path:
        return self.workdir / DATABASE

    def call(self, method: str, **args: Any) -> Answer:
        return self.session.call(method, args)

    def send(self, raw: bytes) -> Answer:
        return self.call("accept", envelope=b64(raw))

    def outcome(self, raw: bytes) -> str:
        """`new`, the reason of the refusal, or `indeterminate`."""
        return outcome(self.send(raw))

    def value(self, method: str, **args: Any) -> dict[str, Any]:
        answer = self.call(method, **args)
        assert isinstance(answer, Accepted | Ok), answer
        return dict(answer.value or {})

    def keys(self) -> set[str]:
        return {row["replay_key"] for row in self.value("state")["replay_state"]}

    def delivered(self) -> list[str]:
        return [entry["replay_key"] for entry in self.value("deliveries")["delivered"]]

    def put(self, seen_at: object, *, label: str | None = None, **row: Any) -> str:
        """Insert a row past the mailbox; its key."""
        key = hashlib.sha256((label or str(uuid.uuid4())).encode()).hexdigest()
        values = {"replay_key": key, **ROW, "seen_at": seen_at, **row}
        with sqlite3.connect(self.database) as connection:
            names = ", ".join(values)
            connection.execute(
                f"INSERT INTO replay_state ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values())
            )
        connection.close()
        return str(values["replay_key"])


def outcome(answer: Answer) -> str:
    if isinstance(answer, Accepted):
        return answer.effect.value
    if isinstance(answer, Indeterminate):
        return "indeterminate"
    assert isinstance(answer, Refused), answer
    return answer.reason


Opener = Callable[..., Box]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    launched = launch({}, parent=tmp_path_factory.mktemp("calyx"), mutant=None)
    yield launched
    launched.stop()


@pytest.fixture
def opener(template: Launched, tmp_path: Path) -> Iterator[Opener]:
    """Opens sessions on one workdir; the first is fresh, the others find what is there."""
    opened: list[Session] = []

    def open_one(
        *,
        surface: SurfaceWanted = SurfaceWanted.READY,
        now: datetime = NOW,
        parts: dict[str, Any] | None = None,
        fresh: bool = False,
        **config: str,
    ) -> Box:
        factory: Factory = replace(REFERENCE, **(parts or {}))
        state = StateWanted.EXISTING if opened and not fresh else StateWanted.FRESH
        request = OpenRequest(state, surface, tmp_path, now, {**template.ready.config, **config})
        opened.append(CalyxReplay(factory).open(request))
        return Box(opened[-1], tmp_path)

    yield open_one
    for session in reversed(opened):
        session.close()


@pytest.fixture
def box(opener: Opener) -> Box:
    """One fresh session."""
    return opener()


def later(**span: float) -> datetime:
    return NOW + timedelta(**span)
