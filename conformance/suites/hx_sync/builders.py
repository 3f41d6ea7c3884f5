"""The objects of one history, made from its session and the number of a draft, and found again by their age.

Also the bytes that take the place of an object, and the calls that steps ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.model import Call
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url, shift
from holdfast.conformance.suites.hx_sync.fresh import Published
from holdfast.conformance.suites.hx_sync.generate import BENT, Step
from holdfast.conformance.suites.hx_sync.model import Bad, Device, DeviceModel, Lies, State, called
from holdfast.conformance.suites.hx_sync.permutations import NODES, Made, ObjectBuilder, at
from holdfast.conformance.suites.hx_sync.view import Blob, Segment, Tombstone
from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import CREATED_AT

# An object of which a part is another: which of these it is depends on the part.
_ALTERED = frozenset({"OBJECT_MALFORMED", "FOREIGN_VAULT", "OBJECT_MISPLACED", "OBJECT_UNAUTHENTIC"})
_MALFORMED = frozenset({"OBJECT_MALFORMED"})


def bent(how: str, data: bytes) -> tuple[bytes, Lies]:
    """These bytes so that no device can open them."""
    dice = Random(sha256(data).digest())  # noqa: S311 - nothing is kept secret with it
    if how == "flipped":
        at = dice.randrange(len(data))
        return bad(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :], _ALTERED)
    if how == "cut":
        return bad(data[: dice.randrange(1, len(data))], _ALTERED)
    if how == "longer":
        return bad(data + dice.choice((b"\0", b"\n", data)), _ALTERED)
    return bad(b"", _MALFORMED)


def damaged(how: str, made: Made, data: bytes, other: Made) -> tuple[bytes, Lies] | None:
    """What comes in the place of an object with these bytes, and what it says; None where that is not possible."""
    if how in BENT:
        return bent(how, data)
    if how == "of another":
        return bad(other.data, frozenset({"OBJECT_MISPLACED"})) if other.data and other.key != made.key else None
    return _sealed(how, made, data)


def _sealed(how: str, made: Made, data: bytes) -> tuple[bytes, Lies] | None:
    """An object of the same id that is well sealed: with a malformed payload, or with the same payload."""
    label = sha256(data + how.encode()).hexdigest()
    asked: dict[str, Any]
    if isinstance(made.says, Blob):
        if how != "replaced" or "bytes" not in made.args:
            return None
        sealed = from_base64url(derive("hx.blob", {"bytes": made.args["bytes"], "label": label}))
        return sealed, Lies(made.says, sha256(sealed).hexdigest())
    if isinstance(made.says, Segment):
        payload: Any = made.says.batch
        asked = {"type": "segment", "id": made.args["segment_id"], "node_id": made.says.node_id}
    else:
        scope = {} if made.says.scope is None else {"node_id": made.says.scope}
        payload = {"start_ts": made.says.start_ts, "end_ts": made.says.end_ts, **scope}
        asked = {"type": "tombstone", "id": made.says.tombstone_id}
    text = canonical(payload).decode()
    if how == "replaced":
        sealed = _bytes({**asked, "label": label, "payload_text": text})
        return sealed, Lies(made.says, sha256(sealed).hexdigest())
    # A member that is no list, in any payload.
    broken = {"byte order mark": f"\ufeff{text}", "malformed": f'{text[:-1]},"extra":1}}'}[how]
    reason = "TOMBSTONE_MALFORMED" if isinstance(made.says, Tombstone) else "SEGMENT_MALFORMED"
    return bad(_bytes({**asked, "label": label, "payload_text": broken}), frozenset({reason}))


def _bytes(asked: dict[str, Any]) -> bytes:
    return from_base64url(derive("hx.object", asked))


def bad(data: bytes, reasons: frozenset[str]) -> tuple[bytes, Lies]:
    return data, Lies(Bad(reasons), sha256(data).hexdigest())


# Beside the clock: just before it, at it, and behind it.
_BESIDE = ("-0.500000s", "-0.000001s", "+0.000000s", "+0.000001s", "+0.500000s")
# More than a mebibyte, of bytes that no codec makes fewer; and more than any buffer holds.
_LARGE, _LONG = 1_300_000, 70_000
# How many events of a large segment lie in a second.
_PER_SECOND = 100


class Drafts:
    """Every object of a history, the newest last."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._session = session
        self._world = ObjectBuilder(bench, session, "history")
        self._blobs = [self._world.blob(f"blob {number}") for number in range(3)]
        self._made: list[Made] = []

    def of(self, which: int) -> Made | None:
        """The object of this age; None if none was made."""
        return self._made[-1 - which % len(self._made)] if self._made else None

    def newest(self) -> Iterator[Made]:
        """All, the newest first."""
        return reversed(self._made)

    def keep(self, made: Made) -> Made:
        """Make it the newest."""
        self._made = [*(each for each in self._made if each.key != made.key), made]
        return made

    def node_id(self, node: str) -> str:
        """The id of a device."""
        return self._world.node_id(node)

    def mark(self, node_id: str, session_id: str, seq: int) -> str | None:
        """What stands in every content of this event, if it is one of `any_segment`."""
        for node in ("a", "b", "c", "d", "z"):
            for name in ("s1", "s2"):
                if (self.node_id(node), self._world.uuid(name)) == (node_id, session_id):
                    return self._world.mark(node, name, seq)
        return None

    def marks(self) -> list[str]:
        """What can be searched for of all events."""
        triples = {
            (event["node_id"], event["session_id"], event["seq"])
            for made in self.newest()
            if isinstance(made.says, Segment)
            for event in made.says.batch["events"]
        }
        return [mark for triple in sorted(triples) if (mark := self.mark(*triple)) is not None]

    def gone(self, device: Device, *, blobs: bool) -> list[Any]:
        """What a device has forgotten, to search for: titles, `blobs`, and events with the names of artifacts."""
        windows = [lies.says for lies in device.objects(Tombstone).values() if isinstance(lies.says, Tombstone)]
        titles = {
            row["title"].split(" ")[-1]
            for lies in device.objects(Segment).values()
            if isinstance(lies.says, Segment)
            for row in lies.says.batch.get("sessions", ())
            if any(window.covers(lies.says.node_id, row["started_at"]) for window in windows)
        }
        cached = {row["blob_hash"] for row in device.shown.state["blobs"]}
        plain = [
            {"bytes": made.args["bytes"]}
            for made in self.newest()
            if blobs and isinstance(made.says, Blob) and made.key in device.imported and made.args
            if made.says.blob_hash not in cached
        ]
        # In one order: the gate asks the same again.
        events = [mark for triple in sorted(device.forgotten) if (mark := self.mark(*triple)) is not None]
        return [*sorted(titles), *plain[:8], *events]

    def _dice(self, step: Step) -> Random:
        return Random(self._session.rand(f"draft {step.draft}"))  # noqa: S311 - nothing is kept secret with it

    def segment(self, step: Step) -> Made:
        """A segment of the step's device."""
        label = f"segment {step.draft}"
        if step.how == "now":
            events = [
                self._world.event(step.node, "s1", 10 + number, shift(self._session.now, beside), label)
                for number, beside in enumerate(_BESIDE)
            ]
            return self.keep(self._world.segment(step.node, label, *events))
        if step.how == "many":
            one = self._world.event(step.node, "many", 0, at(0))
            rows = ({**one, "seq": seq, "ts": at(seq / _PER_SECOND), "data": {"n": seq}} for seq in range(step.draft))
            return self.keep(self._world.segment(step.node, label, *rows))
        made = self.keep(self._world.any_segment(self._dice(step), label, self._blobs, step.node))
        other = NODES[(ord(step.node) - ord("a") + 1) % len(NODES)] if step.how == "of another" else step.node
        return replace(made, args={**made.args, "node": other})

    def contradiction(self, step: Step) -> Made | None:
        """Another batch under the id of the newest segment of this device. It is not kept."""
        for made in self.newest():
            if made.method == "publish" and made.args["node"] == step.node:
                other = self._world.any_segment(self._dice(step), f"segment {step.draft}", self._blobs, step.node)
                assert isinstance(other.says, Segment)
                return replace(made, says=other.says, args={**made.args, "batch": other.says.batch})
        return None

    def blob(self, step: Step) -> Made:
        """A blob that several histories share, or one of its own."""
        if step.how == "long":
            return self.keep(self._random(step, _LONG))
        own = self._world.blob(f"own {step.draft}")
        made = self._dice(step).choice([*self._blobs, own, own])
        return self.keep(replace(made, args={**made.args, "node": step.node}))

    def large(self, step: Step) -> Made:
        """A blob of more than a mebibyte, which fits no line of the protocol."""
        return self.keep(replace(self._random(step, _LARGE), method="", args={}))

    def _random(self, step: Step, length: int) -> Made:
        encoded = base64url(self._dice(step).randbytes(length))
        data = from_base64url(derive("hx.blob", {"bytes": encoded, "label": f"large {step.draft}"}))
        says = Blob(derive("hx.sha256", encoded))
        key = derive("hx.key", {"type": "blob", "id": says.blob_hash})
        return Made(key, data, says, "publish_blob", {"node": step.node, "bytes": encoded})

    def tombstone(self, step: Step) -> Made:
        """A window, which the step's device asks for."""
        label = f"tombstone {step.draft}"
        if step.how == "into the future":
            window = shift(self._session.now, "-1.000000s"), shift(self._session.now, "+86400.000000s")
            made = self._world.tombstone(label, *window, step.node if step.draft % 2 else None)
        elif step.how == "half of many":
            made = self._world.tombstone(label, at(0), at(step.draft / _PER_SECOND / 2))
        else:
            made = self._world.any_tombstone(self._dice(step), label)
        args = {**made.args, "node": step.node}
        if step.how == "inverted":
            args = {**args, "start_ts": made.args["end_ts"], "end_ts": shift(made.args["start_ts"], "-0.000001s")}
            return replace(made, args=args)
        return self.keep(replace(made, args=args))

    def any(self, step: Step) -> Made:
        """An object of any kind but a manifest, as another implementation has sealed it."""
        kind = self._dice(step).choice((self.segment, self.segment, self.tombstone, self.blob))
        kind = self.blob if step.how == "long" else kind
        return kind(step)


def lies_of(made: Made) -> Lies:
    """What lies at its key when the kit has sealed it."""
    return Lies(made.says, sha256(made.data).hexdigest(), CREATED_AT)


def putting(made: Made) -> Call:
    """What the kit has sealed is put at its key."""
    return called("put", lies_of(made), key=made.key, bytes=base64url(made.data))


class Devices(CheckedSession[State]):
    """A session that is held against the model; what it publishes is added to `published`."""

    model: DeviceModel

    def __init__(self, bench: Bench, session: SuiteSession, published: list[Published] | None = None) -> None:
        ids = {node: str(bench.contract.parameters[f"node_{node}"].value) for node in NODES}
        super().__init__(bench, session, DeviceModel(session, ids, [] if published is None else published))

    def place(self, call: Call) -> None:
        """Every call has a number of its own, or two that are asked at once have one."""
        self.model.turn += 1
        super().place(call)

    def lay(self, *made: Made) -> None:
        """Put objects into the store, as a synchronised folder would."""
        for each in made:
            self.put(each.key, each.data, lies_of(each))

    def put(self, key: str, data: bytes, lies: Lies, **times: str) -> None:
        """Write any bytes at a key, which say this."""
        self.session.place(key, data, **times)
        self.states.narrow(lambda state: [state.lying(key, lies)])

    def remove(self, key: str) -> None:
        """Take an object out of the store."""
        self.session.remove(key)
        self.states.narrow(lambda state: [state.lying(key, None)])

    def do(self, method: str, worker: int = 0, **args: Any) -> Answer:
        """Call an operation."""
        return self.ask(called(method, **args), worker)

    def enroll(self, node: str, worker: int = 0) -> None:
        """One more device, with an id of its own."""
        self.do("enroll", worker, node=node, node_id=ObjectBuilder(self.bench, self.session, "nodes").node_id(node))

    def unread(self, path: str, canaries: Sequence[Any], told: str, *, but: str | None = None) -> None:
        """None of these can be read anywhere below a folder, but in files whose names begin so."""
        found = self.session.search(path, canaries) if canaries else []
        found = [each for each in found if but is None or not each["path"].rpartition("/")[2].startswith(but)]
        if found:
            self.bench.fail("fail_open", f"below {path} can be read {told}", received=repr(found))

    def publish(self, *made: Made, worker: int = 0) -> None:
        """Have devices publish the same objects themselves."""
        for each in made:
            self.do(each.method, worker, **each.args)
