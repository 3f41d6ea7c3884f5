"""How the store and the devices of a history are inspected, and held against the state that is due."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.checks import compare_status, held, shown
from holdfast.conformance.suites.hx_sync.model import (
    Bad,
    Blob,
    Device,
    Lies,
    Manifest,
    Segment,
    State,
    Tombstone,
    normal,
)
from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive

_DIFFERS = "the devices differ from the model"
_STORE, _TMP = "HXSync", "/tmp"  # noqa: S108 - a folder of the store
# The index of this device is inspected by the harness itself.
INSPECTED = "a"


class Looking:
    """Inspects one session. Each method fails with what differs."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self._session = bench, session
        # A killed writer may leave files below tmp/.
        self.crashed = False
        # Every key that an object has had, and of these every one at no place of the layout.
        self._ever: set[str] = set()
        self._foreign: set[str] = set()

    def differs(self, verdict: str, expected: str, received: str) -> NoReturn:
        """End the history."""
        self._bench.fail(verdict, _DIFFERS, expected=expected[:600], received=received[:600])

    def weigh(self, verdict: str, expected: str, received: str) -> None:
        """The same, unless it is a wrong answer only, behind which the history goes on."""
        self._bench.weigh(verdict, _DIFFERS, expected=expected[:600], received=received[:600])

    # The store

    def store(self, state: State) -> None:
        """The harness finds what was published and no other file; the folders of what was removed stay."""
        files = [entry for entry in self._session.tree(_STORE) if entry["kind"] != "folder"]
        due = {*state.store, *state.foreign}
        self._ever |= due
        self._foreign |= state.foreign
        found = derive("hx.stored", {"files": files, "keys": sorted(self._ever)})
        missing = due & set(found["missing"])
        if missing:
            self.differs("lost_durability", "every object that was published", f"none at {sorted(missing)}")
        back = {row["path"] for row in files} & (self._ever - due)
        others = [path for path in found["others"] if not (self.crashed and _TMP in path)]
        if others or back:
            self.differs("state_leak", "no other file in the store", repr([*others, *sorted(back)]))

    def objects(self, state: State, worker: int) -> None:
        """A worker lists what lies there, with its digests."""
        told = self._session.observe("objects", worker=worker)["objects"]
        rows = {row["key"]: (row["object_type"], row["sha256"]) for row in told}
        due = {key: (type_of(key), lies.sha256) for key, lies in state.store.items()}
        if rows != due or len(rows) != len(told):
            lacks = due.keys() - rows.keys()
            self.differs("lost_durability" if lacks else "state_leak", repr(due), repr(rows))

    def listed(self, state: State, prefix: str, worker: int) -> None:
        """What lies below a folder, or anywhere. Whether a file without a place is listed is open."""
        keys = self._session.observe("list", {"prefix": prefix}, worker)["keys"]
        below = {key for key in state.store if not prefix or key.startswith(f"{prefix}/")}
        if len(set(keys)) < len(keys) or not below <= set(keys) <= below | state.foreign:
            placed = [key for key in keys if key in below or key not in state.foreign]
            verdict = self._bench.verdict_on("list", {"keys": sorted(below)}, {"keys": placed})
            self.weigh(verdict, f"below {prefix}: {sorted(below)}", repr(keys))

    def published(self, key: str, lies: Lies) -> str:
        """The object at a key is whole and says what is due; the digest of its bytes."""
        found = self._session.file(key)
        if not found["exists"]:
            self.differs("lost_durability", f"an object at {key}", "none")
        if found["bytes"] is not None:
            opened = derive("hx.opened", {"object": found["bytes"]})
            if opened["error"] is not None or not _says(lies, opened):
                self.differs("lost_durability", f"at {key} what was published: {lies.says}", repr(opened))
        sha256: str = found["sha256"]
        if lies.sha256 not in ("", sha256):
            self.differs("fail_open", f"at {key} the bytes from before", f"others, of {sha256}")
        return sha256

    # Devices

    def device(self, node: str, device: Device, worker: int) -> None:
        """A worker shows this device as it is due, and so does its index."""
        state = self._session.observe("state", {"node": node}, worker)
        expected = device.shown
        held(self._bench, state, node, expected, f"worker {worker}")
        segments = sorted(_recorded(*each) for each in device.objects(Segment).items())
        found = sorted((row["node_id"], row["segment_id"], row["object_hash"]) for row in state["segments"])
        if found != segments:
            verdict = "lost_durability" if set(segments) - set(found) else "fail_open"
            self.differs(verdict, f"the imported segments {segments}", repr(found))
        status = compare_status(self._bench, self._session, node, expected, f"worker {worker}", worker)
        counted = (status["node_id"], status["segments"], status["blobs"])
        due = (device.node_id, len(segments), len(expected.state["blobs"]))
        if counted != due:
            self.weigh("wrong_reason", f"node, segments and blobs {due}", repr(counted))
        self.placed(status)
        if device.told is not None:
            self.rejected(device.told.rejected, status["rejected"])
            for name, keys in (("foreign", device.told.foreign), ("withheld", device.told.withheld)):
                if set(status[name]) != keys:
                    self.weigh("wrong_reason", f"{name}: {sorted(keys)}", repr(status[name]))
        if node == INSPECTED:
            self._index(device, segments)

    def placed(self, status: Mapping[str, Any]) -> None:
        """Whichever import the status is about: what has a place is not foreign, and what has none not withheld."""
        places = self._ever - self._foreign
        if places & set(status["foreign"]) or self._foreign & set(status["withheld"]):
            received = f"foreign {status['foreign']}, withheld {status['withheld']}"
            self.weigh("wrong_reason", "what has a place is not foreign, and what has none not withheld", received)

    def rejected(self, due: Mapping[str, frozenset[str]], told: Iterable[Mapping[str, str]]) -> None:
        """What an import has refused, each for one of its reasons."""
        found = {row["key"]: row["reason"] for row in told}
        if found.keys() != due.keys() or any(found[key] not in reasons for key, reasons in due.items()):
            verdict = "fail_open" if due.keys() - found.keys() else "wrong_reason"
            verdict = "over_refusal" if found.keys() > due.keys() else verdict
            self.weigh(verdict, f"refused { ({key: sorted(reasons) for key, reasons in due.items()}) }", repr(found))

    def _index(self, device: Device, segments: list[tuple[str, str, str]]) -> None:
        rows = self._session.inspect()["rows"]
        found = sorted((row["node_id"], row["segment_id"], row["object_hash"]) for row in rows["imported_segments"])
        applied = sorted(row["tombstone_id"] for row in rows["applied_tombstones"])
        named = [row["node_id"] for row in rows["node_config"]]
        due = (segments, sorted(map(_id, device.objects(Tombstone))), [device.node_id])
        if (found, applied, named) != due:
            self.differs("state_leak", f"the index {due}", repr((found, applied, named)))

    def adopted(self, node: str, lower: Device, upper: Device, worker: int) -> Device:
        """The device as it is, somewhere between two: what it shows follows from what it says that it has imported."""
        state = self._session.observe("state", {"node": node}, worker)
        said = {(row["node_id"], row["segment_id"], row["object_hash"]) for row in state["segments"]}
        applied = {row["tombstone_id"] for row in shown(state, node)["tombstones"]}
        cached = {row["blob_hash"] for row in shown(state, node)["blobs"]}
        imported = {}
        for key, lies in upper.imported.items():
            if isinstance(lies.says, Segment):
                is_in = _recorded(key, lies) in said
            elif isinstance(lies.says, Tombstone):
                is_in = lies.says.tombstone_id in applied
            else:
                # A blob may come into the cache after the event that needs it.
                is_in = lies.says.blob_hash in cached if isinstance(lies.says, Blob) else key in lower.imported
            if key in lower.imported and not is_in and not isinstance(lies.says, Blob):
                self.differs("lost_durability", f"{node} has imported {key}", repr(sorted(said)))
            if is_in:
                imported[key] = lies
        device = lower.having(imported, None)
        if len(device.objects(Segment)) != len(said):
            self.differs("fail_open", "no other segment than those that lie there", repr(sorted(said)))
        held(self._bench, state, node, device.shown, f"worker {worker}, after it was interrupted")
        return device

    def blob(self, node: str, device: Device, blob_hash: str, worker: int) -> None:
        """A blob is in the cache of a device, with its bytes, if it is to be."""
        told = self._session.observe("blob", {"node": node, "blob_hash": blob_hash}, worker)
        due = {"blob_hash": blob_hash} in device.shown.state["blobs"]
        if told["found"] != due or (due and derive("hx.sha256", told["bytes"]) != blob_hash):
            verdict = "fail_open" if told["found"] else "lost_durability"
            self.differs(verdict, f"the blob {blob_hash}: {due}", json.dumps(told)[:200])

    def unread(self, path: str, canaries: list[Any], told: str, *, but: str | None = None) -> None:
        """None of these can be read anywhere below a folder, but in files whose names begin so."""
        found = [
            each
            for each in (self._session.search(path, canaries) if canaries else [])
            if but is None or not each["path"].rpartition("/")[2].startswith(but)
        ]
        if found:
            self.differs("fail_open", f"nowhere below {path} {told}", repr(found))


def _recorded(key: str, lies: Lies) -> tuple[str, str, str]:
    """Node, id and digest of a segment."""
    return key.split("/")[-2], _id(key), lies.sha256


def _id(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


def type_of(key: str) -> str:
    """The type of what lies at a key."""
    return key.split("/")[4].removesuffix("s")


def _says(lies: Lies, opened: Mapping[str, Any]) -> bool:
    """Whether an opened object says this."""
    says, payload = lies.says, opened["payload"]
    if isinstance(says, Segment):
        return bool(canonical(payload) == canonical(says.batch))
    if isinstance(says, Blob):
        return bool(derive("hx.sha256", payload) == says.blob_hash)
    if isinstance(says, Manifest):
        return {(row["key"], row["sha256"]) for row in payload["objects"]} == set(says.listed)
    if isinstance(says, Bad):
        return True
    ends = tuple(normal(payload[name]) for name in ("start_ts", "end_ts"))
    return ends == (normal(says.start_ts), normal(says.end_ts)) and payload.get("node_id") == says.scope
