"""The payloads of segments, tombstones and manifests (source sections 3.1, 3.3, 3.4), read into rows.

A payload is taken whole or not at all: one wrong record refuses all of it, before the first write. Rows that the
database would refuse or ignore never reach it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.instants import InstantError, Instants
from holdfast.reference_impl.hx_sync.layout import HASH, MAX_KEY, UUID
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import MAX_SAFE_INTEGER

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


@dataclass(frozen=True, slots=True)
class Inventory:
    """The keys that a manifest lists."""

    keys: Sequence[str]


class Contents:
    """The digest of a content: it decides whether two contents are equal, and which comes first."""

    def __init__(self) -> None:
        self._write = canonical.write

    def of(self, payload: bytes) -> None:
        """Set the payload of the following records. One check decides for all of them on the fast path."""
        self._write = canonical.write_easy if canonical.is_easy(payload) else canonical.write

    def write(self, value: Any) -> bytes:
        """The RFC 8785 form of what is in the payload."""
        return self._write(value)

    def digest(self, record: Mapping[str, Any]) -> str:
        """SHA-256 over the RFC 8785 form of the record as it came."""
        return hashlib.sha256(self.write(record)).hexdigest()


class Records:
    """Reads payloads. Each check is one method and raises MalformedError."""

    def __init__(self, instants: Instants, contents: Contents) -> None:
        self._instants = instants
        self._contents = contents

    # Payloads

    def parse(self, payload: bytes) -> dict[str, Any]:
        """The JSON object in a payload."""
        try:
            value = canonical.read(payload)
        except StrictJsonError as error:
            raise MalformedError(f"expected I-JSON as payload: {error}") from error
        if not isinstance(value, dict):
            raise MalformedError(f"expected an object as payload, got {type(value).__name__}")
        return value

    def batch(self, payload: bytes, header: Header) -> Batch:
        """The records of a segment."""
        value = self.parse(payload)
        self._contents.of(payload)
        return self.rows(value, header)

    def rows(self, value: Mapping[str, Any], header: Header) -> Batch:
        """The records of a batch as rows."""
        lists = self.lists(value)
        self.check_count(lists["events"])
        events = [self.event(record, header) for record in lists["events"]]
        self.check_unique(events)
        return Batch(
            events=events,
            sessions=[self.session(record, header) for record in lists["sessions"]],
            artifacts=[self.artifact(record, header) for record in lists["artifacts"]],
            pins=[row for record in lists["pins"] if (row := self.pin(record)) is not None],
            ignored=sorted(value.keys() - lists.keys()),
        )

    def lists(self, value: Mapping[str, Any]) -> Mapping[str, list[Any]]:
        """The four lists; optional ones are empty where they are left out."""
        if "events" not in value:
            raise MalformedError("expected a list of events, got none")
        for name, found in value.items():
            if not isinstance(found, list):
                raise MalformedError(f"{name}: expected a list, got {type(found).__name__}")
        return {"events": value["events"], **{name: value.get(name, []) for name in ("sessions", "artifacts", "pins")}}

    def check_count(self, events: Sequence[Any]) -> None:
        """Not more than one segment may hold."""
        if len(events) > MOST_EVENTS:
            raise MalformedError(f"expected at most {MOST_EVENTS} events, got {len(events)}")

    # Records

    def event(self, record: Any, header: Header) -> EventRow:
        """One event."""
        self.check_members("event", record, _EVENT)
        self.check_event_node(record["node_id"], header)
        kind, data = record["kind"], record["data"]
        if type(kind) is not str or not 0 < len(kind) <= _MOST_KIND:
            raise MalformedError("event.kind: expected text of 1 to 64 characters")
        if type(data) is not dict:
            raise MalformedError("event.data: expected an object")
        return (
            record["node_id"],
            self.uuid("event.session_id", record["session_id"]),
            self.seq(record["seq"]),
            self._contents.digest(record),
            self.event_time(record["ts"]),
            kind,
            self._contents.write(data).decode(),
        )

    def check_event_node(self, node_id: Any, header: Header) -> None:
        """A node publishes only its own events. Otherwise it could publish before their owner."""
        if node_id != header.node_id:
            raise MalformedError(f"event.node_id: expected that of the segment, got {str(node_id)[:64]!r}")

    def check_unique(self, events: Sequence[EventRow]) -> None:
        """No event occurs twice."""
        if len({row[:3] for row in events}) != len(events):
            raise MalformedError("expected every event once, got one twice")

    def event_time(self, text: Any) -> int:
        """When it was."""
        return self.instant("event.ts", text)

    def session(self, record: Any, header: Header) -> SessionRow:
        """One session."""
        self.check_members("session", record, _SESSION)
        return (
            header.node_id,
            self.uuid("session.session_id", record["session_id"]),
            self._contents.digest(record),
            self.instant("session.started_at", record["started_at"]),
            self.text("session.title", record["title"]),
        )

    def artifact(self, record: Any, header: Header) -> ArtifactRow:
        """One artifact."""
        self.check_members("artifact", record, _ARTIFACT)
        blob_hash = record["blob_hash"]
        if type(blob_hash) is not str or HASH.fullmatch(blob_hash) is None:
            raise MalformedError("artifact.blob_hash: expected 64 lower-case hexadecimal digits")
        return (
            header.node_id,
            self.uuid("artifact.artifact_id", record["artifact_id"]),
            self._contents.digest(record),
            self.uuid("artifact.session_id", record["session_id"]),
            self.seq(record["seq"]),
            blob_hash,
            self.text("artifact.name", record["name"]),
        )

    def pin(self, record: Any) -> EventKey | None:
        """One pin; None for an unpin, which has no effect (source section 8)."""
        self.check_members("pin", record, _PIN)
        if type(record["pinned"]) is not bool:
            raise MalformedError("pin.pinned: expected true or false")
        key = (
            self.uuid("pin.node_id", record["node_id"]),
            self.uuid("pin.session_id", record["session_id"]),
            self.seq(record["seq"]),
        )
        return key if record["pinned"] else None

    # Tombstones and manifests

    def window(self, payload: bytes) -> Window:
        """What a tombstone covers."""
        value = self.parse(payload)
        if not {"start_ts", "end_ts"} <= value.keys() <= {"start_ts", "end_ts", "node_id"}:
            raise MalformedError("expected start_ts, end_ts and at most node_id besides")
        node_id = self.uuid("node_id", value["node_id"]) if "node_id" in value else None
        return self.ordered(
            Window(self.instant("start_ts", value["start_ts"]), self.instant("end_ts", value["end_ts"]), node_id)
        )

    def ordered(self, window: Window) -> Window:
        """A window that does not end before it starts."""
        if window.start > window.end:
            raise MalformedError("expected a window that does not end before it starts")
        return window

    def inventory(self, payload: bytes) -> Inventory:
        """What a manifest lists."""
        value = self.parse(payload)
        if value.keys() != {"objects"} or not isinstance(value["objects"], list):
            raise MalformedError("expected a list of objects and nothing else")
        return Inventory([self._listed(each) for each in value["objects"]])

    def _listed(self, record: Any) -> str:
        self.check_members("object", record, frozenset({"key", "sha256"}))
        key, sha256 = record["key"], record["sha256"]
        if type(key) is not str or not 0 < len(key) <= MAX_KEY:
            raise MalformedError("object.key: expected a key")
        if type(sha256) is not str or HASH.fullmatch(sha256) is None:
            raise MalformedError("object.sha256: expected 64 lower-case hexadecimal digits")
        return key

    # Values

    def check_members(self, what: str, record: Any, expected: frozenset[str]) -> None:
        """Exactly these."""
        if not isinstance(record, dict) or record.keys() != expected:
            raise MalformedError(f"{what}: expected an object of {', '.join(sorted(expected))}")

    def uuid(self, name: str, value: Any) -> str:
        """An id in its one spelling."""
        if type(value) is not str or UUID.fullmatch(value) is None:
            raise MalformedError(f"{name}: expected a UUID in lower case")
        return value

    def seq(self, value: Any) -> int:
        """A number in the order of a session; `true` and 1.5 are no such numbers."""
        if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
            raise MalformedError("seq: expected an integer from 0 to 2^53 - 1")
        return value

    def text(self, name: str, value: Any) -> str:
        """Text that is not too long."""
        if type(value) is not str or len(value) > _MOST_TEXT:
            raise MalformedError(f"{name}: expected text of at most {_MOST_TEXT} characters")
        return value

    def instant(self, name: str, value: Any) -> int:
        """Microseconds since 1970."""
        try:
            return self._instants.read(value)
        except InstantError as error:
            raise MalformedError(f"{name}: {error}") from error
