"""hx-sync as a pure model: what lies in the store and on each device, what may be answered, and what is shown then.

Which bytes an implementation has sealed the harness reads, once it has to know them. See `attacks.model`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from holdfast.conformance.attacks.model import DONE, FAILED, Call, Model, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.fresh import Published
from holdfast.conformance.suites.hx_sync.view import (
    LISTS,
    Blob,
    Row,
    Segment,
    Tombstone,
    Triple,
    View,
    instant,
    normal,
    told_window,
    view_of,
)
from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

_T = TypeVar("_T")

COMMAND = "command_line"
NEW, PRIOR = "accepted new", "accepted prior"
_MALFORMED, _EXISTS, _UNKNOWN = "refused SEGMENT_MALFORMED", "refused OBJECT_EXISTS", "refused NODE_UNKNOWN"
# What two at once may both do, or each a part of it.
_OVERLAPPING = frozenset({"import", "rebuild", "publish_manifest"})
_STORE, _TMP = "HXSync", "/tmp"  # noqa: S108 - a folder of the store
# The index of this device is inspected by the harness itself.
INSPECTED = "a"
_SHA256 = 64
# The command line may go by the clock of the machine.
_MACHINE = ("2025-01-01T00:00:00Z", "2099-12-31T00:00:00Z")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects that a node lists, by key with which bytes they have."""

    listed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """Bytes that no device can import, and the reasons that may be given for it."""

    reasons: frozenset[str]


Said = Segment | Tombstone | Blob | Manifest | Bad


@dataclass(frozen=True, slots=True)
class Lies:
    """What lies at a key: what it says, the digest of its bytes or which call has sealed them, and when it was made."""

    says: Said
    sealed: str
    made: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What the last import reported."""

    rejected: Mapping[str, frozenset[str]] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Device:
    """One device: what it has imported, by key, and what it has forgotten. `told` is None where that is open."""

    node_id: str
    imported: Mapping[str, Lies] = field(default_factory=dict)
    forgotten: frozenset[Triple] = frozenset()
    told: Told | None = Told()
    # What follows from these, once it was asked for.
    view: View | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> View:
        """What it has to show."""
        if self.view is not None:
            return self.view
        says = [each.says for each in self.imported.values()]
        return view_of([each for each in says if isinstance(each, Segment | Tombstone | Blob)], self.forgotten)

    def having(self, imported: Mapping[str, Lies], told: Told | None) -> Device:
        """The device with these objects, and what they make it forget."""
        after = replace(self, imported=imported, told=told, view=None)
        view = after.shown
        return replace(after, forgotten=frozenset(view.forgotten), view=view)

    def objects(self, kind: type[Said]) -> dict[str, Lies]:
        """Those of one kind that it has imported."""
        return {key: lies for key, lies in self.imported.items() if isinstance(lies.says, kind)}

    def refuses(self, key: str, lies: Lies) -> frozenset[str]:
        """The reasons for which it may refuse what lies at a key; none where it is imported."""
        if isinstance(lies.says, Bad):
            return lies.says.reasons
        known = self.imported.get(key) if isinstance(lies.says, Segment | Tombstone) else None
        return frozenset(["OBJECT_REPLACED"] * (known is not None and known.sealed != lies.sealed))

    def is_new(self, key: str, lies: Lies) -> bool:
        """Whether it has not imported this before."""
        known = self.imported.get(key)
        return known is None or (isinstance(lies.says, Manifest) and known.sealed != lies.sealed)

    def emptied(self) -> Device:
        """The same with an index that holds nothing but what it had forgotten."""
        return replace(self, imported=self.objects(Tombstone), told=None, view=None)


@dataclass(frozen=True, slots=True)
class State:
    """The store by key, what lies in it at no place of the layout, and the devices by name."""

    devices: Mapping[str, Device]
    store: Mapping[str, Lies] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()

    def at(self, name: str, device: Device | None) -> State:
        """With this device, or without it."""
        others = {each: there for each, there in self.devices.items() if each != name}
        return replace(self, devices=others if device is None else {**others, name: device})

    def lying(self, key: str, lies: Lies | None) -> State:
        """With this object at a key, or with none."""
        others = {each: there for each, there in self.store.items() if each != key}
        return replace(self, store=others if lies is None else {**others, key: lies})

    def everything(self, device: Device) -> tuple[Device, Mapping[str, Lies]]:
        """A device once it has imported all that it takes of the store, and that."""
        refused = {key: reasons for key, lies in self.store.items() if (reasons := device.refuses(key, lies))}
        taken = {key: lies for key, lies in self.store.items() if key not in refused}
        after = device.having({**device.imported, **taken}, None)
        said = [lies.says for lies in after.imported.values()]
        listed = {key for says in said if isinstance(says, Manifest) for key, _ in says.listed}
        applied = {key for key, lies in after.imported.items() if not isinstance(lies.says, Manifest)}
        told = Told(refused, self.foreign, frozenset((listed | applied) - self.store.keys()))
        return replace(after, told=told), taken


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a call: what it puts, whether it may be done in part already, and if another is beside it."""

    lies: Lies | None = None
    begun: bool = False
    beside: bool = False


def called(method: str, lies: Lies | None = None, **args: Any) -> Call:
    """A call of a method."""
    return Call(method, method, args, About(lies))


def command(node: str, row: str, *words: str) -> Call:
    """A command of operators."""
    return Call(f"{COMMAND} {row}", COMMAND, {"node": node, "arguments": [*words]}, About())


def begun(call: Call) -> Call:
    """The same call where all of it or a part may be done already."""
    return replace(call, about=replace(call.about, begun=True, beside=False))


def beside(call: Call) -> Call:
    """The same call beside another one."""
    return replace(call, about=replace(call.about, beside=True, begun=call.method in _OVERLAPPING))


class DeviceModel(Model[State]):
    """The model of hx-sync for one session."""

    unavailable = ("STORE_UNAVAILABLE", "indeterminate")
    exclusive, busy = False, True
    chosen = "state"

    def __init__(self, session: SuiteSession, devices: Mapping[str, str], published: list[Published]) -> None:
        """`devices` are the ids of those that a session begins with; what an object is like goes to `published`."""
        self._session, self._published = session, published
        self.first = State({name: Device(node_id) for name, node_id in devices.items()})
        # How many calls there were; what one of them has sealed is named by it.
        self.turn = 0
        # A killed writer may leave files below tmp/. What its index holds is open until the next call.
        self.crashed = self.unsettled = False
        self._read: dict[tuple[str, str], tuple[Said, str]] = {}
        # Every key that an object has had, and of these every one at no place of the layout.
        self._ever: set[str] = set()
        self._foreign: set[str] = set()

    def choosing(self, call: Call) -> Mapping[str, Any]:
        """See `attacks.model.Model`."""
        return {} if call.method == "enroll" else {"node": call.args.get("node", INSPECTED)}

    # What may be answered

    def outcomes(self, state: State, call: Call, seen: Any) -> Iterator[Outcome[State]]:
        """See `attacks.model.Model`."""
        node = call.args.get("node")
        if node is not None and node not in state.devices and call.method != "enroll":
            yield Outcome(_UNKNOWN, state)
            return
        due: Iterable[Outcome[State]] = getattr(self, f"_{call.row.replace(' ', '_')}")(state, call, seen or {})
        for each in due:
            if call.method == COMMAND and each.value is None:
                yield replace(each, value=_keeps_the_key, otherwise="fail_open")
            elif call.about.begun and each.said in (NEW, PRIOR):
                yield from (replace(each, said=said, value=None) for said in (NEW, PRIOR))
            else:
                yield each

    def _enroll(self, state: State, call: Call, told: Row) -> Iterator[Outcome[State]]:
        name, node_id = call.args["node"], call.args["node_id"]
        there = state.devices.get(name)
        if there is not None and there.node_id != node_id:
            yield Outcome("refused NODE_EXISTS", state)
        # One that was interrupted leaves a device or none, and `state` shows it if there is one.
        elif "digests" not in told or name in {row["at"] for row in told["digests"]}:
            after = state.at(name, Device(node_id)) if there is None else state
            yield Outcome(NEW if there is None else PRIOR, after, {"node_id": node_id})

    def _publish(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        node_id, batch = state.devices[call.args["node"]].node_id, call.args["batch"]
        keys = Counter((event["session_id"], event["seq"]) for event in batch["events"])
        if any(event["node_id"] != node_id for event in batch["events"]) or any(n > 1 for n in keys.values()):
            yield Outcome(_MALFORMED, state)
            return
        key = derive("hx.key", {"type": "segment", "id": call.args["segment_id"], "node_id": node_id})
        yield self._written(state, key, Segment(node_id, batch), {"key": key})

    def _publish_blob(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        blob_hash = derive("hx.sha256", call.args["bytes"])
        key = derive("hx.key", {"type": "blob", "id": blob_hash})
        yield self._written(state, key, Blob(blob_hash), {"key": key, "blob_hash": blob_hash})

    def _written(self, state: State, key: str, says: Said, value: Row) -> Outcome[State]:
        there = state.store.get(key)
        if there is None:
            return Outcome(NEW, state.lying(key, Lies(says, f"{self.turn}")), value)
        return Outcome(PRIOR, state, value) if there.says == says else Outcome(_EXISTS, state)

    def _publish_manifest(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        """The list of the device's own segments in the store, in place of an older one."""
        node_id = state.devices[call.args["node"]].node_id
        key = derive("hx.key", {"type": "manifest", "node_id": node_id})
        folder = derive("hx.key", {"type": "segment", "node_id": node_id, "id": ""}).rpartition("/")[0]
        own = sorted((each, lies.sealed) for each, lies in state.store.items() if each.startswith(f"{folder}/"))
        there, says = state.store.get(key), Manifest(tuple(own))
        yield self._written(state.lying(key, there if there and there.says == says else None), key, says, {"key": key})

    def _put(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        """Known bytes at a place of the layout, which a key of a sealed object is."""
        key, lies = call.args["key"], call.about.lies
        there = state.store.get(key)
        if there is None:
            yield Outcome(NEW, state.lying(key, lies))
        else:
            yield Outcome(PRIOR if there.sealed == lies.sealed else _EXISTS, state)

    def _forget(self, state: State, call: Call, told: Row) -> Iterator[Outcome[State]]:
        """A window whose end is taken back to now, published and applied to the device's own index."""
        args, now = call.args, self._session.now
        asked = Tombstone(args["tombstone_id"], args["start_ts"], args["end_ts"], args.get("node_id"))
        if instant(asked.start_ts) > instant(_clamped(asked, now).end_ts):
            yield Outcome("refused TOMBSTONE_MALFORMED", state)
            return
        key = derive("hx.key", {"type": "tombstone", "id": asked.tombstone_id})
        there = state.store.get(key)
        says = _clamped(asked, (there and there.made) or now)
        if there is not None and there.says != says:
            yield Outcome(_EXISTS, state)
            return
        lies = Lies(says, f"{self.turn}", now) if there is None else there
        device, ends = state.devices[args["node"]], ("start_ts", "end_ts")
        applied = state.at(args["node"], device.having({**device.imported, key: lies}, device.told))
        value = {"key": key, **{end: _spelled(getattr(says, end), told.get(end), normal) for end in ends}}
        yield Outcome(NEW if there is None else PRIOR, applied.lying(key, lies), value)
        if "digests" in told:
            yield from (Outcome(NEW, applied), Outcome(NEW, state.lying(key, lies)))

    def _import_object(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        name, key = call.args["node"], call.args["key"]
        if key in state.foreign or key not in state.store:
            yield Outcome(f"refused OBJECT_{'MISPLACED' if key in state.foreign else 'MISSING'}", state)
            return
        device, lies = state.devices[name], state.store[key]
        for reason in sorted(refused := device.refuses(key, lies)):
            yield Outcome(f"refused {reason}", state.at(name, replace(device, told=None)))
        if refused:
            return
        is_new = device.is_new(key, lies)
        # Of a blob that came before it is open whether it counts again when an event needs it anew. What was known
        # changes no report.
        is_open = isinstance(lies.says, Blob) and not is_new
        after = device.having({**device.imported, key: lies}, None if is_new or is_open else device.told)
        for said in (NEW, PRIOR) if is_open else (NEW if is_new else PRIOR,):
            yield Outcome(said, state.at(name, after), {"key": key})

    def _import(self, state: State, call: Call, told: Row) -> Iterator[Outcome[State]]:
        """Every object in the store; what is refused keeps nothing else back."""
        device = state.devices[call.args["node"]]
        after, taken = state.everything(device)
        if "digests" in told:
            yield self._begun(state, call, device, after, told)
            return
        fresh = [key for key, lies in taken.items() if device.is_new(key, lies)]
        blobs = [key for key, lies in taken.items() if key not in fresh and isinstance(lies.says, Blob)]
        most = len(fresh) + len(blobs) if fresh else 0
        assert after.told is not None
        value = {
            "imported": _within(len(fresh), most, told.get("imported")),
            "skipped": _within(len(taken) - most, len(taken) - len(fresh), told.get("skipped")),
            "rejected": _spelled(_rows(after.told.rejected), told.get("rejected"), _rejecting(after.told.rejected)),
            "foreign": _spelled(sorted(state.foreign), told.get("foreign"), sorted),
        }
        # What comes meanwhile it may compare with what it has listed.
        after = replace(after, told=None if call.about.beside else after.told)
        yield Outcome(NEW if fresh else PRIOR, state.at(call.args["node"], after), value)

    def _rebuild(self, state: State, call: Call, told: Row) -> Iterator[Outcome[State]]:
        """What was derived is thrown away, and everything is imported again. What was forgotten stays forgotten."""
        device = state.devices[call.args["node"]]
        after, _ = state.everything(device.emptied())
        if "digests" in told:
            upper = device.having({**device.imported, **after.imported}, None)
            yield self._begun(state, call, device.emptied(), upper, told)
        else:
            # It is open whether what it refuses then is what the last import refused.
            yield Outcome(NEW, state.at(call.args["node"], replace(after, told=None)))

    def _begun(self, state: State, call: Call, lower: Device, upper: Device, told: Row) -> Outcome[State]:
        """A device somewhere between two, with what it says that it has imported."""
        segments = {(row["node_id"], row["segment_id"], row["object_hash"]) for row in told["segments"]}
        said = {row["tombstone_id"] for row in told["tombstones"]} | {row["blob_hash"] for row in told["blobs"]}
        imported = {}
        for key, lies in upper.imported.items():
            if isinstance(lies.says, Segment):
                is_in = (*_named(key), self.digest(key, lies)) in segments
            else:
                is_in = not isinstance(lies.says, Manifest) and _named(key)[1] in said
            if is_in or key in lower.imported:
                imported[key] = lies
        return Outcome(NEW, state.at(call.args["node"], lower.having(imported, None)))

    def _command_line_import(self, state: State, call: Call, told: Row) -> Iterator[Outcome[State]]:
        if "digests" in told:
            yield from self._import(state, call, told)
        else:
            after, _ = state.everything(state.devices[call.args["node"]])
            yield Outcome(DONE, state.at(call.args["node"], replace(after, told=None)))
            yield from self._command_line_verify(state, call, told)

    def _command_line_verify(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        """What it says where something is refused, foreign or withheld is open."""
        if call.row.endswith("verify"):
            yield Outcome(DONE, state)
        if state.everything(state.devices[call.args["node"]])[0].told != Told():
            yield Outcome(FAILED, state)

    def _command_line_status(self, state: State, _: Call, __: Row) -> Iterator[Outcome[State]]:
        yield Outcome(DONE, state)

    def _command_line_forget(self, state: State, call: Call, _: Row) -> Iterator[Outcome[State]]:
        """There is one more tombstone in the store, from that instant to now, and it is applied."""
        there = {row["path"] for row in self._session.tree(_STORE) if row["path"].endswith(".hxtomb")}
        name, never = call.args["node"], lambda _: False
        fresh = sorted(there - state.store.keys() - state.foreign)
        for key in fresh:
            found = self._session.file(key)
            payload = derive("hx.opened", {"object": found["bytes"]})["payload"] or {}
            if payload.keys() >= {"start_ts", "end_ts"}:
                lies, device = Lies(told_window(key, payload), found["sha256"]), state.devices[name]
                after = device.having({**device.imported, key: lies}, device.told)
                fits = _is_until_now(payload, call.args["arguments"][-1], self._session.now)
                yield Outcome(DONE, state.lying(key, lies).at(name, after), None if fits else never)
        if not fresh:
            yield Outcome(DONE, state, never, "lost_durability")

    def _command_line_forget_ahead(self, state: State, _: Call, __: Row) -> Iterator[Outcome[State]]:
        yield Outcome(FAILED, state)

    # What is shown

    def observations(self, state: State) -> Iterator[Observation]:
        """See `attacks.model.Model`."""
        yield self.stored(state)
        for name in sorted(state.devices):
            yield from self.of_device(state, name)
        rows = [
            {"key": key, "object_type": type_of(key), "sha256": self.digest(key, lies)}
            for key, lies in sorted(state.store.items())
        ]
        yield Observation("objects", {"objects": rows}, {}, _objects, "wrong_reason")

    def stored(self, state: State) -> Observation:
        """The harness finds what was published and no other file; the folders of what was removed stay."""
        due: dict[str, list[str]] = {"missing": [], "other bytes": [], "others": []}
        look = lambda session: session.tree(_STORE)  # noqa: E731
        return Observation("the store", due, {}, partial(self._files, state), _lost, look)

    def _files(self, state: State, entries: Sequence[Row]) -> Mapping[str, Any]:
        files, due = [each for each in entries if each["kind"] != "folder"], {*state.store, *state.foreign}
        self._ever |= due
        self._foreign |= state.foreign
        found = derive("hx.stored", {"files": files, "keys": sorted(self._ever)})
        others = [path for path in found["others"] if not (self.crashed and _TMP in path)]
        back = {each["path"] for each in files} & (self._ever - due)
        missing = sorted(due & set(found["missing"]))
        wrong = [key for key in sorted(state.store.keys() - missing) if self.digest(key, state.store[key]) is None]
        return {"missing": missing, "other bytes": wrong, "others": [*others, *sorted(back)]}

    def digest(self, key: str, lies: Lies) -> str | None:
        """The digest of what lies there; None where it does not say what it is to."""
        if len(lies.sealed) == _SHA256:
            return lies.sealed
        if (key, lies.sealed) not in self._read:
            found = self._session.file(key)
            opened = {} if found["bytes"] is None else derive("hx.opened", {"object": found["bytes"]})
            if not found["exists"] or (opened and not self._says(lies.says, opened)):
                return None
            self._read[key, lies.sealed] = lies.says, found["sha256"]
            if opened:
                self._published.append(Published(key, type_of(key), found["bytes"]))
        says, sha256 = self._read[key, lies.sealed]
        return sha256 if says == lies.says else None

    def _says(self, says: Said, opened: Row) -> bool:
        """Whether an opened object says this."""
        payload = opened["payload"]
        if opened["error"] is not None:
            return False
        if isinstance(says, Segment):
            return bool(canonical(payload) == canonical(says.batch))
        if isinstance(says, Blob):
            return bool(derive("hx.sha256", payload) == says.blob_hash)
        if isinstance(says, Manifest):
            read = {each: self._read.get(each, (says, each[1]))[1] for each in says.listed}
            return {(row["key"], row["sha256"]) for row in payload["objects"]} == {(k[0], read[k]) for k in read}
        return not isinstance(says, Tombstone) or told_window(f"{says.tombstone_id}.", payload) == says

    def of_device(self, state: State, name: str) -> Iterator[Observation]:
        """What a device shows of itself, and what its index holds."""
        device = state.devices[name]
        view, told, args = device.shown, device.told, {"node": name}
        segments = sorted((*_named(key), str(self.digest(key, lies))) for key, lies in device.objects(Segment).items())
        due = {**view.state, "segments": segments, "digest": view.digest}
        yield Observation("state", due, args, partial(_shown, name), "wrong_reason")
        conflicts = [{"event_key": key, "contents": count} for key, count in sorted(view.conflicts.items())]
        counts: dict[str, Any] = {name: len(view.state[name]) for name in ("events", "tombstones")}
        counts |= {"forgotten": len(view.forgotten), "conflicts": conflicts}
        leaks = lambda found: (  # noqa: E731
            "wrong_reason" if all(found[each] == counts[each] for each in counts) else "state_leak"
        )
        more = {"node_id": device.node_id, "segments": len(segments), "blobs": len(view.state["blobs"])}
        more |= {"misplaced": []}
        if told is not None:
            more |= {"foreign": sorted(told.foreign), "withheld": sorted(told.withheld)}
            more |= {"rejected": _rejecting(told.rejected)(_rows(told.rejected))}
        part = partial(self._status, told or Told(), [*counts, *more])
        yield Observation("status", {**counts, **more}, args, part, leaks)
        if name == INSPECTED and not self.unsettled:
            applied = sorted(_named(key)[1] for key in device.objects(Tombstone))
            rows = {"segments": segments, "tombstones": applied, "nodes": [device.node_id]}
            yield Observation("the index", rows, {}, _indexed, "state_leak", lambda session: session.inspect()["rows"])

    def _status(self, told: Told, names: Sequence[str], status: Row) -> Mapping[str, Any]:
        found = {**status, "conflicts": sorted(status["conflicts"], key=lambda row: str(row["event_key"]))}
        found |= {each: sorted(status[each]) for each in ("foreign", "withheld")}
        found |= {"rejected": _rejecting(told.rejected)(status["rejected"]), "misplaced": self.misplaced(status)}
        return {each: found[each] for each in names}

    def misplaced(self, status: Row) -> list[str]:
        """Whichever import the status is about: what has a place is not foreign, and what has none not withheld."""
        places = self._ever - self._foreign
        return sorted(places & {*status["foreign"]} | self._foreign & {*status["withheld"]})

    def listed(self, state: State, prefix: str) -> Observation:
        """What lies below a folder, or anywhere. Whether a file without a place is listed is open."""
        below = {key for key in state.store if not prefix or key.startswith(f"{prefix}/")}
        part = lambda shown: {  # noqa: E731
            "keys": sorted(key for key in shown["keys"] if key in below or key not in state.foreign)
        }
        return Observation("list", {"keys": sorted(below)}, {"prefix": prefix}, part, "wrong_reason")


def cached(state: State, name: str, blob_hash: str) -> Observation:
    """A blob is in the cache of a device, with its bytes, if it is to be."""
    is_in = {"blob_hash": blob_hash} in state.devices[name].shown.state["blobs"]
    part = lambda shown: {  # noqa: E731
        "found": shown["found"],
        "hash": derive("hx.sha256", shown["bytes"]) if shown["found"] else None,
    }
    due = {"found": is_in, "hash": blob_hash if is_in else None}
    return Observation("blob", due, {"node": name, "blob_hash": blob_hash}, part)


def type_of(key: str) -> str:
    """The type of what lies at a key."""
    return key.split("/")[4].removesuffix("s")


def _named(key: str) -> tuple[str, str]:
    """The node, or the folder, and the id of what lies at a key."""
    return key.split("/")[-2], key.rpartition("/")[2].partition(".")[0]


def _keeps_the_key(told: Row) -> bool:
    """A command prints no key of the vault."""
    return VAULT_KEY not in told["output"]


def _shown(name: str, state: Row) -> Mapping[str, Any]:
    """What a device shows in a state, and the digest over it."""
    digests = {row["at"]: row["digest"] for row in state["digests"]}
    own = [row for row in state["segments"] if row["at"] == name]
    return {
        **{each: [_own(row) for row in state[each] if row["at"] == name] for each in LISTS},
        "segments": sorted((row["node_id"], row["segment_id"], row["object_hash"]) for row in own),
        "digest": digests.get(name),
    }


def _own(row: Row) -> Row:
    return {part: value for part, value in row.items() if part != "at"}


def _lost(found: Row) -> str:
    return "lost_durability" if found["missing"] or found["other bytes"] else "state_leak"


def _objects(shown: Row) -> Mapping[str, Any]:
    names = ("key", "object_type", "sha256")
    return {"objects": sorted(({name: row[name] for name in names} for row in shown["objects"]), key=canonical)}


def _indexed(rows: Row) -> Mapping[str, Any]:
    segments = sorted((row["node_id"], row["segment_id"], row["object_hash"]) for row in rows["imported_segments"])
    applied = sorted(row["tombstone_id"] for row in rows["applied_tombstones"])
    return {"segments": segments, "tombstones": applied, "nodes": [row["node_id"] for row in rows["node_config"]]}


def _clamped(asked: Tombstone, now: str) -> Tombstone:
    end = min(asked.end_ts, now, key=instant)
    return replace(asked, start_ts=normal(asked.start_ts), end_ts=normal(end))


def _is_until_now(payload: Row, since: str, now: str) -> bool:
    """Whether it is a window from `since` to now, which the machine's clock may say."""
    if normal(payload["start_ts"]) != normal(since):
        return False
    least, most, due = (instant(each) for each in (*_MACHINE, now))
    return instant(payload["end_ts"]) == due or least <= instant(payload["end_ts"]) <= most


def _spelled(due: _T, told: _T | None, form: Callable[[_T], Any]) -> _T:
    """What was told, if it has the form of what is due, and else that."""
    return told if told is not None and form(told) == form(due) else due


def _within(least: int, most: int, told: int | None) -> int:
    return told if told is not None and least <= told <= most else least


def _rows(rejected: Mapping[str, frozenset[str]]) -> list[dict[str, str]]:
    return [{"key": key, "reason": min(reasons)} for key, reasons in sorted(rejected.items())]


def _rejecting(rejected: Mapping[str, frozenset[str]]) -> Callable[[Iterable[Row]], list[dict[str, str]]]:
    """The form of what was refused, where each has one of several reasons."""

    def first(row: Row) -> dict[str, str]:
        reasons = rejected.get(row["key"], frozenset())
        return {"key": row["key"], "reason": min(reasons) if row["reason"] in reasons else row["reason"]}

    return lambda rows: sorted(map(first, rows), key=canonical)
