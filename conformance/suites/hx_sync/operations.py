"""Every operation of hx-sync as a pure function: what a state answers to it, and which state comes of it.

    State     what lies in the store, and what each device has imported
    Outcome   what may be answered, with its value, and the state behind it

What a device shows follows from the set of objects that it has imported (`holdfast.conformance.suites.hx_sync.model`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.conformance.suites.hx_sync.model import Blob, Model, Segment, Tombstone, Triple, instant, model, normal
from holdfast.vectors.derive import derive

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
    known = device.imported.get(key)
    effect = NEW if known is None or (known.sha256 != lies.sha256 and isinstance(lies.says, Manifest)) else PRIOR
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
    listed = {key for lies in device.objects(Manifest).values() for key, _ in _listed(lies)}
    applied = {key for key, lies in device.imported.items() if not isinstance(lies.says, Manifest)}
    return frozenset((listed | applied) - state.store.keys())


def _listed(lies: Lies) -> Iterable[tuple[str, str]]:
    return lies.says.listed if isinstance(lies.says, Manifest) else ()


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
