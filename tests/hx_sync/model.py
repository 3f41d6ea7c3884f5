"""What a device has to show of a set of objects, said as plainly as possible: no order, no database, no memory."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.specs.strictjson import canonical
from tests.hx_sync.devices import NODES

Record = dict[str, Any]
Triple = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a node published in one go."""

    node: str
    batch: dict[str, list[Record]]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A window from `start` to `end`, of one node or of all."""

    start: str
    end: str
    of: str | None = None


@dataclass(slots=True)
class Model:
    """The state of a device that has imported all of these."""

    segments: Sequence[Segment]
    tombstones: Sequence[Tombstone]
    blobs: Sequence[bytes]
    events: dict[Triple, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def shown(self) -> dict[str, set[tuple[Any, ...]]]:
        """The rows of each list, those of events with the number that distinguishes their contents."""
        for segment in self.segments:
            for event in segment.batch.get("events", ()):
                self.events[event["node_id"], event["session_id"], event["seq"]].append(event)
        gone = {key for key, events in self.events.items() if any(map(self._event_is_covered, events))}
        live = {key: min(events, key=_digest) for key, events in self.events.items() if key not in gone}
        artifacts, lost, found = defaultdict(list), set(), set()
        for segment, each in self._records("artifacts"):
            node_id = NODES[segment.node]
            key = (node_id, each["session_id"], each["seq"])
            if key in gone:
                lost.add(each["blob_hash"])
            if key in live:
                found.add(each["blob_hash"])
                artifacts[node_id, each["artifact_id"]].append(each)
        sessions = defaultdict(list)
        for segment, each in self._records("sessions"):
            node_id = NODES[segment.node]
            if not self._is_covered(node_id, each["started_at"]):
                sessions[node_id, each["session_id"]].append(each)
        there = {key[:2] for key in live}
        hashes = {hashlib.sha256(blob).hexdigest() for blob in self.blobs}
        return {
            "events": {(*key, canonical(event["data"])) for key, event in live.items()},
            "artifacts": {(*key, *_values(min(each, key=_digest))) for key, each in artifacts.items()},
            "sessions": {(*key, min(each, key=_digest)["title"]) for key, each in sessions.items() if key in there},
            "pins": {
                key
                for _, each in self._records("pins")
                if each["pinned"] and (key := (each["node_id"], each["session_id"], each["seq"])) in live
            },
            "blobs": {(each,) for each in hashes if each not in lost or each in found},
        }

    def _records(self, name: str) -> list[tuple[Segment, Record]]:
        return [(segment, each) for segment in self.segments for each in segment.batch.get(name, ())]

    def _event_is_covered(self, event: Record) -> bool:
        return self._is_covered(event["node_id"], event["ts"])

    def _is_covered(self, node_id: str, text: str) -> bool:
        at = datetime.fromisoformat(text)
        return any(
            datetime.fromisoformat(each.start) <= at <= datetime.fromisoformat(each.end)
            and (each.of is None or NODES[each.of] == node_id)
            for each in self.tombstones
        )


def shown(state: Any) -> dict[str, set[tuple[Any, ...]]]:
    """The same of what a device shows."""
    return {
        "events": {(*_key(each), canonical(each["data"])) for each in state["events"]},
        "artifacts": {(each["node_id"], each["artifact_id"], *_values(each)) for each in state["artifacts"]},
        "sessions": {(each["node_id"], each["session_id"], each["title"]) for each in state["sessions"]},
        "pins": {_key(each) for each in state["pins"]},
        "blobs": {(each["blob_hash"],) for each in state["blobs"]},
    }


def _key(row: Record) -> Triple:
    return row["node_id"], row["session_id"], row["seq"]


def _values(row: Record) -> tuple[Any, ...]:
    return row["session_id"], row["seq"], row["blob_hash"], row["name"]


def _digest(record: Record) -> bytes:
    return hashlib.sha256(canonical(record)).digest()
