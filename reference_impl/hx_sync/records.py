"""The payloads of segments, tombstones and manifests (source sections 3.1, 3.3, 3.4), read into rows.

A payload is taken whole or not at all: one wrong record refuses all of it, before the first write. Rows that the
database would refuse or ignore never reach it. Every function raises MalformedError.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.reference_impl.hx_sync import instants
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.layout import HASH, MAX_KEY, UUID
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import MAX_SAFE_INTEGER, canonical, loads

# node_id, session_id, seq
EventKey: TypeAlias = tuple[str, str, int]
# The columns of the tables in their order; times in microseconds.
EventRow: TypeAlias = tuple[str, str, int, str, int, str, str]
SessionRow: TypeAlias = tuple[str, str, str, int, str]
ArtifactRow: TypeAlias = tuple[str, str, str, str, int, str, str]

MOST_EVENTS = 10_000
_EVENT = frozenset({"node_id", "session_id", "seq", "ts", "kind", "data"})
_SESSION = frozenset({"session_id", "started_at", "title"})
_ARTIFACT = frozenset({"artifact_id", "session_id", "seq", "blob_hash", "name"})
_PIN = frozenset({"node_id", "session_id", "seq", "pinned"})
_OBJECT = frozenset({"key", "sha256"})
_MOST_KIND, _MOST_TEXT = 64, 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A segment's records as rows. `ignored` names the lists that this version does not know."""

    events: Sequence[EventRow] = ()
    sessions: Sequence[SessionRow] = ()
    artifacts: Sequence[ArtifactRow] = ()
    pins: Sequence[EventKey] = ()
    ignored: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """What a tombstone covers: from `start` to `end` in microseconds, both included; of one node, or of all (None)."""

    start: int
    end: int
    node_id: str | None = None


def _parsed(payload: bytes) -> dict[str, Any]:
    try:
        value = loads(payload)
    except StrictJsonError as error:
        raise MalformedError(f"expected I-JSON as payload: {error}") from error
    if not isinstance(value, dict):
        raise MalformedError(f"expected an object as payload, got {type(value).__name__}")
    return value


def batch(payload: bytes, header: Header) -> Batch:
    """The records of a segment."""
    value = _parsed(payload)
    lists = _lists(value)
    if len(lists["events"]) > MOST_EVENTS:
        raise MalformedError(f"expected at most {MOST_EVENTS} events, got {len(lists['events'])}")
    events = [_event(record, header) for record in lists["events"]]
    if len({row[:3] for row in events}) != len(events):
        raise MalformedError("expected every event once, got one twice")
    return Batch(
        events=events,
        sessions=[_session(record, header) for record in lists["sessions"]],
        artifacts=[_artifact(record, header) for record in lists["artifacts"]],
        pins=[row for record in lists["pins"] if (row := _pin(record)) is not None],
        ignored=sorted(value.keys() - lists.keys()),
    )


def _lists(value: Mapping[str, Any]) -> Mapping[str, list[Any]]:
    """The four lists; optional ones are empty where they are left out."""
    if "events" not in value:
        raise MalformedError("expected a list of events, got none")
    for name, found in value.items():
        if not isinstance(found, list):
            raise MalformedError(f"{name}: expected a list, got {type(found).__name__}")
    return {"events": value["events"], **{name: value.get(name, []) for name in ("sessions", "artifacts", "pins")}}


# Records


def _digest(record: Mapping[str, Any]) -> str:
    """SHA-256 over the record as it came: whether two contents are equal, and which of them comes first."""
    return hashlib.sha256(canonical(record)).hexdigest()


def _event(record: Any, header: Header) -> EventRow:
    _check_members("event", record, _EVENT)
    node_id, kind, data = record["node_id"], record["kind"], record["data"]
    # A node publishes only its own events. Otherwise it could publish before their owner.
    if node_id != header.node_id:
        raise MalformedError(f"event.node_id: expected that of the segment, got {str(node_id)[:64]!r}")
    if type(kind) is not str or not 0 < len(kind) <= _MOST_KIND:
        raise MalformedError("event.kind: expected text of 1 to 64 characters")
    if type(data) is not dict:
        raise MalformedError("event.data: expected an object")
    return (
        node_id,
        _uuid("event.session_id", record["session_id"]),
        _seq(record["seq"]),
        _digest(record),
        _instant("event.ts", record["ts"]),
        kind,
        canonical(data).decode(),
    )


def _session(record: Any, header: Header) -> SessionRow:
    _check_members("session", record, _SESSION)
    return (
        header.node_id,
        _uuid("session.session_id", record["session_id"]),
        _digest(record),
        _instant("session.started_at", record["started_at"]),
        _text("session.title", record["title"]),
    )


def _artifact(record: Any, header: Header) -> ArtifactRow:
    _check_members("artifact", record, _ARTIFACT)
    return (
        header.node_id,
        _uuid("artifact.artifact_id", record["artifact_id"]),
        _digest(record),
        _uuid("artifact.session_id", record["session_id"]),
        _seq(record["seq"]),
        _hash("artifact.blob_hash", record["blob_hash"]),
        _text("artifact.name", record["name"]),
    )


def _pin(record: Any) -> EventKey | None:
    """One pin; None for an unpin, which has no effect (source section 8)."""
    _check_members("pin", record, _PIN)
    if type(record["pinned"]) is not bool:
        raise MalformedError("pin.pinned: expected true or false")
    key = (
        _uuid("pin.node_id", record["node_id"]),
        _uuid("pin.session_id", record["session_id"]),
        _seq(record["seq"]),
    )
    return key if record["pinned"] else None


# Tombstones and manifests


def window(payload: bytes) -> Window:
    """What a tombstone covers."""
    value = _parsed(payload)
    if not {"start_ts", "end_ts"} <= value.keys() <= {"start_ts", "end_ts", "node_id"}:
        raise MalformedError("expected start_ts, end_ts and at most node_id besides")
    node_id = _uuid("node_id", value["node_id"]) if "node_id" in value else None
    start, end = _instant("start_ts", value["start_ts"]), _instant("end_ts", value["end_ts"])
    if start > end:
        raise MalformedError("expected a window that does not end before it starts")
    return Window(start, end, node_id)


def inventory(payload: bytes) -> list[str]:
    """The keys that a manifest lists."""
    value = _parsed(payload)
    if value.keys() != {"objects"} or not isinstance(value["objects"], list):
        raise MalformedError("expected a list of objects and nothing else")
    return [_listed(each) for each in value["objects"]]


def _listed(record: Any) -> str:
    _check_members("object", record, _OBJECT)
    key: Any = record["key"]
    if type(key) is not str or not 0 < len(key) <= MAX_KEY:
        raise MalformedError("object.key: expected a key")
    _hash("object.sha256", record["sha256"])
    return key


# Values


def _check_members(what: str, record: Any, expected: frozenset[str]) -> None:
    """Exactly these."""
    if not isinstance(record, dict) or record.keys() != expected:
        raise MalformedError(f"{what}: expected an object of {', '.join(sorted(expected))}")


def _uuid(name: str, value: Any) -> str:
    if type(value) is not str or UUID.fullmatch(value) is None:
        raise MalformedError(f"{name}: expected a UUID in lower case")
    return value


def _hash(name: str, value: Any) -> str:
    if type(value) is not str or HASH.fullmatch(value) is None:
        raise MalformedError(f"{name}: expected 64 lower-case hexadecimal digits")
    return value


def _seq(value: Any) -> int:
    """A number in the order of a session; `true` and 1.5 are no such numbers."""
    if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
        raise MalformedError("seq: expected an integer from 0 to 2^53 - 1")
    return value


def _text(name: str, value: Any) -> str:
    if type(value) is not str or len(value) > _MOST_TEXT:
        raise MalformedError(f"{name}: expected text of at most {_MOST_TEXT} characters")
    return value


def _instant(name: str, value: Any) -> int:
    try:
        return instants.read(value)
    except instants.InstantError as error:
        raise MalformedError(f"{name}: {error}") from error
