"""Sessions of the reference in a folder of the test's own, and records to publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.reference_impl.answers import Accepted, Answer, Ok, to_message
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

    def state(self, node: str) -> Mapping[str, Any]:
        """What a device has."""
        return self.seen("state", node=node)

    def digest(self, node: str) -> str:
        """The digest of what a device has."""
        return str(self.state(node)["digests"][0]["digest"])
