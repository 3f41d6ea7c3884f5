"""Sessions of the reference in a folder of the test's own, and records to publish."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast.reference_impl.answers import Accepted, Answer, Ok, Refused, to_message
from holdfast.reference_impl.hx_sync.factory import REFERENCE, Factory
from holdfast.reference_impl.hx_sync.service import Parts, Service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {
    "a": "a0a0a0a0-0a0a-4a0a-8a0a-a0a0a0a0a0a0",
    "b": "b0b0b0b0-0b0b-4b0b-8b0b-b0b0b0b0b0b0",
    "c": "c0c0c0c0-0c0c-4c0c-8c0c-c0c0c0c0c0c0",
}
VAULT = "HXSync/vaults/6f1d2c3e-0a4b-4c5d-8e6f-7a8b9c0d1e2f"
KEY = bytes(range(32))


def uuid(number: int) -> str:
    """An id of one's own for each number."""
    return str(UUID(int=number, version=4))


def at(seconds: float) -> str:
    """An instant so long after the beginning of a day before NOW."""
    return (NOW - timedelta(days=1) + timedelta(seconds=seconds)).isoformat()


def event(seq: int, *, node: str = "a", session: int = 1, seconds: float | None = None, **data: Any) -> dict[str, Any]:
    """An event; its time is its number, in seconds."""
    return {
        "node_id": NODES[node],
        "session_id": uuid(session),
        "seq": seq,
        "ts": at(seq if seconds is None else seconds),
        "kind": "test",
        "data": data,
    }


def session(number: int, *, seconds: float = 0, title: str = "title") -> dict[str, Any]:
    """A session."""
    return {"session_id": uuid(number), "started_at": at(seconds), "title": title}


def base64url(data: bytes) -> str:
    """Bytes as they travel."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


@dataclass(frozen=True, slots=True)
class Devices:
    """A session with its parts."""

    parts: Parts
    service: Service

    def ask(self, method: str, **args: Any) -> Answer:
        """One call as it is answered."""
        return self.service.call(method, args)

    def accepted(self, method: str, **args: Any) -> Mapping[str, Any]:
        """The value of a call that has to be accepted, with its effect."""
        answer = self.ask(method, **args)
        assert isinstance(answer, Accepted), answer
        return {**answer.value, "effect": answer.effect.value}

    def refused(self, method: str, **args: Any) -> str:
        """The reason of a call that has to be refused."""
        answer = self.ask(method, **args)
        assert isinstance(answer, Refused), answer
        return answer.reason

    def seen(self, method: str, **args: Any) -> Mapping[str, Any]:
        """What an observation shows."""
        answer = self.ask(method, **args)
        assert isinstance(answer, Ok), to_message(answer)
        assert answer.value is not None
        return answer.value

    def publish(self, number: int, *, node: str = "a", **batch: Any) -> str:
        """Publish a segment; its key."""
        value = self.accepted("publish", node=node, segment_id=uuid(number), batch={"events": [], **batch})
        return str(value["key"])

    def blob(self, data: bytes, *, node: str = "a") -> str:
        """Publish a blob; its key."""
        return str(self.accepted("publish_blob", node=node, bytes=base64url(data))["key"])

    def forget(self, number: int, start: float, end: float, *, node: str = "a", of: str | None = None) -> str:
        """Publish a tombstone; its key."""
        scope = {} if of is None else {"node_id": NODES[of]}
        value = self.accepted(
            "forget", node=node, tombstone_id=uuid(number), start_ts=at(start), end_ts=at(end), **scope
        )
        return str(value["key"])

    def state(self, node: str) -> Mapping[str, Any]:
        """What a device has."""
        return self.seen("state", node=node)

    def digest(self, node: str) -> str:
        """The digest of what a device has."""
        return str(self.state(node)["digests"][0]["digest"])


@contextmanager
def opened(root: Path, factory: Factory = REFERENCE, **config: str) -> Iterator[Devices]:
    """A session on a folder; a store and three devices are made where there is nothing."""
    parts = factory.parts(root, config)
    try:
        if not (root / "nodes").exists():
            factory.provisioner(parts.settings, parts.layout).make(root, parts.store, parts.nodes)
        service = factory.service(parts, now=NOW)
        service.begin()
        yield Devices(parts, service)
    finally:
        parts.close()
