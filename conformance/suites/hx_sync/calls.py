"""How the operations of a history are asked for, and what an answer means beside the one that the model has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.hx_sync import operations as op
from holdfast.conformance.suites.hx_sync.builders import Drafts, lies_of
from holdfast.conformance.suites.hx_sync.generate import Step
from holdfast.conformance.suites.hx_sync.model import Segment, Tombstone, normal
from holdfast.conformance.suites.hx_sync.operations import NEW, PRIOR, Bad, Lies, Operation, Outcome, State
from holdfast.conformance.suites.hx_sync.permutations import NODES, Made
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

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


def said(answer: Answer) -> str:
    return str(answer.effect or answer.reason or answer.outcome)


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
        outcome, came = calls[place].operation(state), said(answers[place])
        if came in OPEN:
            continue
        due = EFFECTS if calls[place].method in _OVERLAPPING and outcome.said <= EFFECTS else outcome.said
        if came not in due:
            return None
        state = outcome.state
    return state
