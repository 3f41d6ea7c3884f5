"""The kit's own reading of hx-sync: what a device must show that has imported a set of objects, and every operation.

    model     the state of a device, computed from the whole set at once, blind to order
    State     what lies in the store, and what each device has imported
    Outcome   what may be answered to an operation, with its value, and the state behind it

Nothing here knows how an implementation keeps anything.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
class Model:
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


def model(objects: Sequence[Object], forgotten_before: Iterable[Triple] = ()) -> Model:
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
    return Model(
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


# Every operation as a pure function: what a state answers to it, and which state comes of it


NEW, PRIOR = "new", "prior"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects that a node lists, by key with the digests of their bytes."""

    listed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """Bytes that no device can import, and the reasons that may be given for it."""

    reasons: frozenset[str]


Said = Segment | Tombstone | Blob | Manifest | Bad


@dataclass(frozen=True, slots=True)
class Lies:
    """What lies at a key: what it says, the digest of its bytes if it is known yet, and when it was made."""

    says: Said
    sha256: str = ""
    made: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What the last import reported."""

    rejected: Mapping[str, frozenset[str]]
    foreign: frozenset[str]
    withheld: frozenset[str]


NOTHING_TOLD = Told({}, frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Device:
    """One device: what it has imported, by key, and what it has forgotten. `told` is None where that is open."""

    node_id: str
    imported: Mapping[str, Lies] = field(default_factory=dict)
    forgotten: frozenset[Triple] = frozenset()
    told: Told | None = NOTHING_TOLD
    # What follows from these, once it was asked for.
    view: Model | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> Model:
        """What it has to show."""
        if self.view is not None:
            return self.view
        says = [each.says for each in self.imported.values()]
        return model([each for each in says if isinstance(each, Segment | Tombstone | Blob)], self.forgotten)

    def having(self, imported: Mapping[str, Lies], told: Told | None) -> Device:
        """The device with these objects, and what they make it forget."""
        after = replace(self, imported=imported, told=told, view=None)
        view = after.shown
        return replace(after, forgotten=frozenset(view.forgotten), view=view)

    def objects(self, kind: type[Said]) -> dict[str, Lies]:
        """Those of one kind that it has imported."""
        return {key: lies for key, lies in self.imported.items() if isinstance(lies.says, kind)}


@dataclass(frozen=True, slots=True)
class State:
    """The store by key, what lies in it at no place of the layout, and the devices by name."""

    devices: Mapping[str, Device]
    store: Mapping[str, Lies] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()

    def at(self, name: str, device: Device) -> State:
        """With this device."""
        return replace(self, devices={**self.devices, name: device})

    def lying(self, key: str, lies: Lies) -> State:
        """With this object."""
        return replace(self, store={**self.store, key: lies})

    def without(self, key: str) -> State:
        """Without what lies at a key."""
        return replace(self, store={each: lies for each, lies in self.store.items() if each != key})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What may be answered, effects or reasons, and the state behind it. A value of `counts` is a pair of bounds."""

    said: frozenset[str]
    state: State
    value: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rejected: Mapping[str, frozenset[str]] | None = None

    def __str__(self) -> str:
        bounds = [f"{name} from {least} to {most}" for name, (least, most) in self.counts.items()]
        return " ".join([" or ".join(sorted(self.said)), *bounds])


Operation = Callable[[State], Outcome]


def _refused(state: State, *reasons: str) -> Outcome:
    return Outcome(frozenset(reasons), state)


# Devices


def enroll(state: State, name: str, node_id: str) -> Outcome:
    """One that is there keeps its id."""
    if name not in state.devices:
        return Outcome(frozenset({NEW}), state.at(name, Device(node_id)), {"node_id": node_id})
    if state.devices[name].node_id != node_id:
        return _refused(state, "NODE_EXISTS")
    return Outcome(frozenset({PRIOR}), state, {"node_id": node_id})


# Publishing


def publish(state: State, name: str, segment_id: str, batch: Mapping[str, Any]) -> Outcome:
    """A segment of the device's own events, each once."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    node_id = state.devices[name].node_id
    keys = Counter((event["session_id"], event["seq"]) for event in batch["events"])
    if any(event["node_id"] != node_id for event in batch["events"]) or any(count > 1 for count in keys.values()):
        return _refused(state, "SEGMENT_MALFORMED")
    key = derive("hx.key", {"type": "segment", "id": segment_id, "node_id": node_id})
    return _written(state, key, Segment(node_id, batch), {"key": key})


def publish_blob(state: State, name: str, data: str) -> Outcome:
    """Bytes under their hash."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    blob_hash = derive("hx.sha256", data)
    key = derive("hx.key", {"type": "blob", "id": blob_hash})
    return _written(state, key, Blob(blob_hash), {"key": key, "blob_hash": blob_hash})


def _written(state: State, key: str, says: Said, value: Mapping[str, Any]) -> Outcome:
    there = state.store.get(key)
    if there is None:
        return Outcome(frozenset({NEW}), state.lying(key, Lies(says)), value)
    if there.says == says:
        return Outcome(frozenset({PRIOR}), state, value)
    return _refused(state, "OBJECT_EXISTS")


def publish_manifest(state: State, name: str) -> Outcome:
    """The list of the device's own segments in the store, in place of an older one."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    node_id = state.devices[name].node_id
    key = derive("hx.key", {"type": "manifest", "node_id": node_id})
    folder = derive("hx.key", {"type": "segment", "node_id": node_id, "id": ""}).rpartition("/")[0]
    own = sorted((each, lies.sha256) for each, lies in state.store.items() if each.startswith(f"{folder}/"))
    says = Manifest(tuple(own))
    there = state.store.get(key)
    if there is not None and there.says == says:
        return Outcome(frozenset({PRIOR}), state, {"key": key})
    return Outcome(frozenset({NEW}), state.lying(key, Lies(says)), {"key": key})


def put(state: State, key: str, lies: Lies) -> Outcome:
    """Known bytes at a place of the layout, which a key of a sealed object is."""
    there = state.store.get(key)
    if there is None:
        return Outcome(frozenset({NEW}), state.lying(key, lies))
    return Outcome(frozenset({PRIOR}), state) if there.sha256 == lies.sha256 else _refused(state, "OBJECT_EXISTS")


# Forgetting


def forget(state: State, name: str, asked: Tombstone, now: str) -> Outcome:
    """A window whose end is taken back to now, published and applied to the device's own index."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    window = _clamped(asked, now)
    if instant(window.start_ts) > instant(window.end_ts):
        return _refused(state, "TOMBSTONE_MALFORMED")
    key = derive("hx.key", {"type": "tombstone", "id": asked.tombstone_id})
    there = state.store.get(key)
    if there is not None and there.says != _clamped(asked, there.made or now):
        return _refused(state, "OBJECT_EXISTS")
    lies = Lies(window, made=now) if there is None else there
    device = state.devices[name]
    after = device.having({**device.imported, key: lies}, device.told)
    assert isinstance(lies.says, Tombstone)
    value = {"key": key, "start_ts": lies.says.start_ts, "end_ts": lies.says.end_ts}
    return Outcome(frozenset({NEW if there is None else PRIOR}), state.lying(key, lies).at(name, after), value)


def _clamped(asked: Tombstone, now: str) -> Tombstone:
    end = min(asked.end_ts, now, key=instant)
    return replace(asked, start_ts=normal(asked.start_ts), end_ts=normal(end))


# Importing


def import_object(state: State, name: str, key: str) -> Outcome:
    """One object."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    if key in state.foreign:
        return _refused(state, "OBJECT_MISPLACED")
    if key not in state.store:
        return _refused(state, "OBJECT_MISSING")
    device, lies = state.devices[name], state.store[key]
    refused = _reasons(device, key, lies)
    if refused:
        return Outcome(refused, state.at(name, replace(device, told=None)))
    # Of a blob that came before it is open whether it counts again when an event needs it anew.
    effect = NEW if _is_new(device.imported.get(key), lies) else PRIOR
    effects = {NEW, PRIOR} if effect == PRIOR and isinstance(lies.says, Blob) else {effect}
    # What was known changes no report.
    told = device.told if effects == {PRIOR} else None
    after = device.having({**device.imported, key: lies}, told)
    return Outcome(frozenset(effects), state.at(name, after), {"key": key})


def import_all(state: State, name: str) -> Outcome:
    """Every object in the store; what is refused keeps nothing else back."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    device, taken, rejected = state.devices[name], {}, {}
    for key, lies in state.store.items():
        refused = _reasons(device, key, lies)
        if refused:
            rejected[key] = refused
        else:
            taken[key] = lies
    fresh = [key for key, lies in taken.items() if _is_new(device.imported.get(key), lies)]
    blobs = [key for key, lies in taken.items() if key not in fresh and isinstance(lies.says, Blob)]
    after = device.having({**device.imported, **taken}, None)
    after = replace(after, told=Told(rejected, state.foreign, _withheld(state, after)))
    most = len(fresh) + len(blobs) if fresh else 0
    counts = {"imported": (len(fresh), most), "skipped": (len(taken) - most, len(taken) - len(fresh))}
    effect = frozenset({NEW if fresh else PRIOR})
    return Outcome(effect, state.at(name, after), {"foreign": sorted(state.foreign)}, counts, rejected)


def _is_new(known: Lies | None, lies: Lies) -> bool:
    return known is None or (isinstance(lies.says, Manifest) and known.sha256 != lies.sha256)


def rebuild(state: State, name: str) -> Outcome:
    """What was derived is thrown away, and everything is imported again. What was forgotten stays forgotten."""
    if name not in state.devices:
        return _refused(state, "NODE_UNKNOWN")
    bare = emptied(state.devices[name])
    after = import_all(state.at(name, bare), name).state.devices[name]
    # It is open whether what it refuses then is what the last import refused.
    return Outcome(frozenset({NEW}), state.at(name, replace(after, told=None)))


def emptied(device: Device) -> Device:
    """A device whose index holds nothing but what it had forgotten."""
    return replace(device, imported=device.objects(Tombstone), told=None, view=None)


def joined(one: Device, other: Device) -> Device:
    """A device with what both have imported."""
    return one.having({**one.imported, **other.imported}, None)


def is_replaced(device: Device, key: str, lies: Lies) -> bool:
    """Whether another object of this id was imported before."""
    known = device.imported.get(key)
    immutable = isinstance(lies.says, Segment | Tombstone)
    return immutable and known is not None and known.sha256 != lies.sha256


def is_other_anew(state: State, name: str) -> bool:
    """Whether a rebuild takes other bytes for an object than the device has imported."""
    device = state.devices.get(name)
    return device is not None and any(
        is_replaced(device, key, lies) for key, lies in state.store.items() if key in device.imported
    )


def _reasons(device: Device, key: str, lies: Lies) -> frozenset[str]:
    if isinstance(lies.says, Bad):
        return lies.says.reasons
    return frozenset({"OBJECT_REPLACED"} if is_replaced(device, key, lies) else ())


def _withheld(state: State, device: Device) -> frozenset[str]:
    """What was applied or is listed, and does not lie in the store."""
    said = [lies.says for lies in device.imported.values()]
    listed = {key for says in said if isinstance(says, Manifest) for key, _ in says.listed}
    applied = {key for key, lies in device.imported.items() if not isinstance(lies.says, Manifest)}
    return frozenset((listed | applied) - state.store.keys())


# What is learned


def learned(state: State, key: str, sha256: str) -> State:
    """The same with the digest of bytes that an implementation has chosen, wherever that object is."""
    lies = state.store[key]
    if lies.sha256:
        return state
    whole = replace(lies, sha256=sha256)
    state = state.lying(key, whole)
    for name, device in state.devices.items():
        if device.imported.get(key) == lies:
            state = state.at(name, replace(device, imported={**device.imported, key: whole}))
    return state
