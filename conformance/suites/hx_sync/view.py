"""What a device of hx-sync must show that has imported a set of objects: computed from all at once, blind to order."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive

Row = Mapping[str, Any]
Triple = tuple[str, str, int]
LISTS = ("events", "sessions", "artifacts", "pins", "blobs", "tombstones")


def instant(text: str) -> datetime:
    """RFC 3339 with an offset."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def normal(text: str) -> str:
    """The instant in UTC with six digits and the letter Z."""
    return instant(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lowest(contents: Iterable[Row]) -> Row:
    """Of several contents the one with the lowest SHA-256 of its RFC 8785 form."""
    return min(contents, key=lambda row: hashlib.sha256(canonical(row)).digest())


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of `node_id`."""

    node_id: str
    batch: Row


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A window of time; `scope` is whose events are forgotten, None those of all nodes."""

    tombstone_id: str
    start_ts: str
    end_ts: str
    scope: str | None = None

    def covers(self, node_id: str, ts: str) -> bool:
        """Whether it forgets what that node says of that time. Both ends belong to the window."""
        within = instant(self.start_ts) <= instant(ts) <= instant(self.end_ts)
        return within and self.scope in (None, node_id)


def told_window(key: str, payload: Row) -> Tombstone:
    """What the payload of the tombstone at a key says."""
    ends = normal(payload["start_ts"]), normal(payload["end_ts"])
    return Tombstone(key.rpartition("/")[2].partition(".")[0], *ends, payload.get("node_id"))


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob by its hash."""

    blob_hash: str


Object = Segment | Tombstone | Blob


@dataclass(slots=True)
class View:
    """What follows from a set of objects."""

    state: dict[str, list[dict[str, Any]]]
    forgotten: set[Triple]
    conflicts: dict[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest that a device must show."""
        made: str = derive("hx.digest", {"state": self.state})
        return made


def _triple(node_id: str, row: Row) -> Triple:
    return node_id, row["session_id"], row["seq"]


def _key(triple: Triple) -> str:
    return "/".join(map(str, triple))


def view_of(objects: Sequence[Object], forgotten_before: Iterable[Triple] = ()) -> View:
    """The state of a device that has these, and had forgotten some events before. Repeated objects count once."""
    segments = [each for each in objects if isinstance(each, Segment)]
    tombstones = {each.tombstone_id: each for each in objects if isinstance(each, Tombstone)}
    windows = list(tombstones.values())

    contents: dict[Triple, dict[bytes, Row]] = {}
    for segment in segments:
        for event in segment.batch["events"]:
            contents.setdefault(_triple(event["node_id"], event), {})[canonical(event)] = event
    forgotten = {
        triple
        for triple, variants in contents.items()
        if any(window.covers(triple[0], event["ts"]) for event in variants.values() for window in windows)
    } | set(forgotten_before)
    live = {triple: lowest(variants.values()) for triple, variants in contents.items() if triple not in forgotten}
    # To unpin has no effect.
    pinned = {
        _triple(row["node_id"], row) for segment in segments for row in segment.batch.get("pins", ()) if row["pinned"]
    }
    shown = {
        "events": [{**event, "event_key": _key(triple), "ts": normal(event["ts"])} for triple, event in live.items()],
        "sessions": _sessions(segments, windows, {triple[:2] for triple in live}),
        "pins": [{"node_id": node, "session_id": session, "seq": seq} for node, session, seq in pinned & live.keys()],
        "tombstones": [
            {
                "tombstone_id": each.tombstone_id,
                "node_id": each.scope,
                "start_ts": normal(each.start_ts),
                "end_ts": normal(each.end_ts),
            }
            for each in windows
        ],
    }
    artifacts = [(segment.node_id, row) for segment in segments for row in segment.batch.get("artifacts", ())]
    shown["artifacts"] = _artifacts(artifacts, live)
    lost = {row["blob_hash"] for node, row in artifacts if _triple(node, row) in forgotten}
    held = {row["blob_hash"] for node, row in artifacts if _triple(node, row) in live}
    hashes = {each.blob_hash for each in objects if isinstance(each, Blob)}
    shown["blobs"] = [{"blob_hash": each} for each in hashes if each in held or each not in lost]
    return View(
        {name: sorted(shown[name], key=canonical) for name in LISTS},
        forgotten,
        {
            _key(triple): len(variants)
            for triple, variants in contents.items()
            if len(variants) > 1 and triple not in forgotten
        },
    )


def _sessions(
    segments: Sequence[Segment], windows: Sequence[Tombstone], with_events: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Of each session the content that is shown; none of which no event is left, none that began in a window."""
    contents: dict[tuple[str, str], list[Row]] = {}
    for segment in segments:
        for row in segment.batch.get("sessions", ()):
            if not any(window.covers(segment.node_id, row["started_at"]) for window in windows):
                contents.setdefault((segment.node_id, row["session_id"]), []).append(row)
    found = [
        (node, lowest(variants)) for (node, session), variants in contents.items() if (node, session) in with_events
    ]
    return [{**row, "node_id": node, "started_at": normal(row["started_at"])} for node, row in found]


def _artifacts(artifacts: Sequence[tuple[str, Row]], live: Container[Triple]) -> list[dict[str, Any]]:
    """Of each artifact, the content that is shown among those whose event is there."""
    contents: dict[tuple[str, str], list[Row]] = {}
    for node, row in artifacts:
        if _triple(node, row) in live:
            contents.setdefault((node, row["artifact_id"]), []).append(row)
    return [{**lowest(variants), "node_id": node} for (node, _), variants in contents.items()]
