"""The objects of one history, made from its session and the number of a draft, and found again by their age.

Also the bytes that take the place of an object, how the operations are asked for, and what an answer means beside the
one that the model has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url, shift
from holdfast.conformance.suites.hx_sync import model as op
from holdfast.conformance.suites.hx_sync.generate import BENT, Step
from holdfast.conformance.suites.hx_sync.model import (
    NEW,
    PRIOR,
    Bad,
    Blob,
    Device,
    Lies,
    Operation,
    Outcome,
    Segment,
    State,
    Tombstone,
    normal,
)
from holdfast.conformance.suites.hx_sync.permutations import NODES, Made, ObjectBuilder, at
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
        return _bad(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :], _ALTERED)
    if how == "cut":
        return _bad(data[: dice.randrange(1, len(data))], _ALTERED)
    if how == "longer":
        return _bad(data + dice.choice((b"\0", b"\n", data)), _ALTERED)
    return _bad(b"", _MALFORMED)


def damaged(how: str, made: Made, data: bytes, other: Made) -> tuple[bytes, Lies] | None:
    """What comes in the place of an object with these bytes, and what it says; None where that is not possible."""
    if how in BENT:
        return bent(how, data)
    if how == "of another":
        return _bad(other.data, frozenset({"OBJECT_MISPLACED"})) if other.data and other.key != made.key else None
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
        return sealed, Lies(made.says, sha256(sealed).hexdigest(), "another")
    # A member that is no list, in any payload.
    broken = {"byte order mark": f"\ufeff{text}", "malformed": f'{text[:-1]},"extra":1}}'}[how]
    reason = "TOMBSTONE_MALFORMED" if isinstance(made.says, Tombstone) else "SEGMENT_MALFORMED"
    return _bad(_bytes({**asked, "label": label, "payload_text": broken}), frozenset({reason}))


def _bytes(asked: dict[str, Any]) -> bytes:
    return from_base64url(derive("hx.object", asked))


def _bad(data: bytes, reasons: frozenset[str]) -> tuple[bytes, Lies]:
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
        return self.keep(self._world.any_segment(self._dice(step), label, self._blobs, step.node))

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


# How operations are asked for


EFFECTS = frozenset({NEW, PRIOR})
# Of two at once both may say that it was new: they replace, or take one object after the other.
_OVERLAPPING = frozenset({"import", "rebuild", "publish_manifest"})
# Beside others that write, each operation may be refused or come to no end.
OPEN = ("STORE_UNAVAILABLE", "indeterminate")


@dataclass(frozen=True, slots=True)
class Call:
    """How an operation is asked for, and what the model says of it."""

    method: str
    args: Mapping[str, Any]
    operation: Operation


class Calls:
    """Makes the calls of one history."""

    def __init__(self, session: SuiteSession, drafts: Drafts) -> None:
        self._session, self._drafts = session, drafts
        # The bytes that lay where others lie now, and what they said.
        self.whole: dict[str, tuple[bytes, Lies]] = {}

    def prepared(self, step: Step, what: str, state: State) -> Call | None:
        """The call of a step, and what is due; None where it does not apply."""
        node = step.node
        if what == "publish":
            made = self._drafts.segment(step)
            if step.how == "of another":
                other = NODES[(NODES.index(node) + 1) % len(NODES)]
                made = replace(made, args={**made.args, "node": other})
            return self._making(made)
        if what == "publish_blob":
            return self._making(self._drafts.blob(step))
        if what == "forget":
            return self._making(self._drafts.tombstone(step))
        if what == "contradict":
            contradiction = self._drafts.contradiction(step)
            return None if contradiction is None else self._making(contradiction)
        if what == "again":
            of = self._drafts.of(step.which)
            return None if of is None or not self._is_repeatable(of, state) else self._making(of)
        if what in ("put", "put again"):
            found = self._drafts.any(step) if what == "put" else self._drafts.of(step.which)
            if found is None or not found.data:
                return None
            lies = lies_of(found)
            args = {"key": found.key, "bytes": base64url(found.data)}
            return Call("put", args, lambda given: op.put(given, found.key, lies))
        if what in ("put another", "put at the manifest"):
            return self._replacing(step, what, state)
        if what == "import one":
            of = self._drafts.of(step.which)
            if of is None:
                return None
            return Call(
                "import_object", {"node": node, "key": of.key}, lambda given: op.import_object(given, node, of.key)
            )
        if what == "enroll":
            node_id = self._drafts.node_id("another" if step.how else node)
            return Call("enroll", {"node": node, "node_id": node_id}, lambda given: op.enroll(given, node, node_id))
        if what == "rebuild" and not self._is_rebuildable(node, state):
            return None
        operation = {"import": op.import_all, "rebuild": op.rebuild, "manifest": op.publish_manifest}[what]
        method = "publish_manifest" if what == "manifest" else what
        return Call(method, {"node": node}, lambda given: operation(given, node))

    def _replacing(self, step: Step, what: str, state: State) -> Call | None:
        """Other bytes for a key where an object lies: the last one differs, or they are those of another object."""
        made = self._drafts.of(step.which)
        if made is None:
            return None
        key, data = made.key, made.data
        if what == "put another":
            data = data[:-1] + bytes([data[-1] ^ 1]) if data else b""
        else:
            key = derive("hx.key", {"type": "manifest", "node_id": self._drafts.node_id(step.node)})
        if not data or key not in state.store:
            return None
        args = {"key": key, "bytes": base64url(data)}
        return Call("put", args, lambda given: op.put(given, key, Lies(Bad(frozenset()), sha256(data).hexdigest())))

    def again(self, call: Call) -> Call:
        """The same call now: what `forget` means depends on the clock."""
        return self._forgetting(call.args) if call.method == "forget" else call

    def _forgetting(self, args: Mapping[str, Any]) -> Call:
        now = self._session.now
        asked = Tombstone(args["tombstone_id"], args["start_ts"], args["end_ts"], args.get("node_id"))
        return Call("forget", args, lambda given: op.forget(given, args["node"], asked, now))

    def _making(self, made: Made) -> Call:
        """Have a device publish an object, or forget a window."""
        args = made.args
        if made.method == "publish":
            return Call(
                "publish", args, lambda given: op.publish(given, args["node"], args["segment_id"], args["batch"])
            )
        if made.method == "publish_blob":
            return Call("publish_blob", args, lambda given: op.publish_blob(given, args["node"], args["bytes"]))
        return self._forgetting(args)

    def _is_repeatable(self, made: Made, state: State) -> bool:
        """Not a window that another has sealed or that was taken back to a clock, nor one whose object is gone."""
        if made.method != "forget":
            return True
        lies = state.store.get(made.key)
        if lies is not None and isinstance(lies.says, Bad):
            return True
        if lies is None or not isinstance(lies.says, Tombstone) or lies == lies_of(made):
            return False
        asked = Tombstone(made.args["tombstone_id"], made.args["start_ts"], made.args["end_ts"], lies.says.scope)
        return normal(asked.end_ts) == normal(lies.says.end_ts) and made.key not in self.whole

    def _is_rebuildable(self, node: str, state: State) -> bool:
        """Not where what is imported cannot be imported again: what came with it may then be told in two ways."""
        device = state.devices.get(node)
        return device is None or not any(
            isinstance(lies.says, Segment) and lies.says.batch.get("artifacts") and state.store.get(key) != lies
            for key, lies in device.imported.items()
        )


def equal(name: str, due: Any, found: Any) -> bool:
    """Whether a member of an answer is due; an instant may be spelled in any way, a list be in any order."""
    if name in ("start_ts", "end_ts"):
        return normal(found) == normal(due)
    return sorted(found or ()) == due if isinstance(due, list) else found == due


def verdict(answer: Answer, outcome: Outcome) -> str:
    """What it means that this answer is not due."""
    if answer.outcome == "indeterminate":
        return "indeterminate"
    if answer.outcome == "accepted":
        # `prior` for something that is absent means that it was lost; a second `new` means that it was done twice.
        return "lost_durability" if answer.effect == PRIOR and outcome.said <= EFFECTS else "fail_open"
    return "over_refusal" if outcome.said <= EFFECTS else "wrong_reason"


def ordered(state: State, calls: Sequence[Call], answers: Sequence[Answer], order: Sequence[int]) -> State | None:
    """The state after calls in this order; None where their answers are not those. What is done may overlap."""
    for place in order:
        outcome, came = calls[place].operation(state), answers[place].said
        if came in OPEN:
            continue
        due = EFFECTS if calls[place].method in _OVERLAPPING and outcome.said <= EFFECTS else outcome.said
        if came not in due:
            return None
        state = outcome.state
    return state
