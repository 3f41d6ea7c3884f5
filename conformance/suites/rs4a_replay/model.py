"""What rs4a-replay demands of every operation and observation: a pure model, to be read beside the contract. No I/O.

`ModelState` is what is stored; `Model` says which answers to a call fit a state, and which states can come of an
answer. Where the contract leaves the order of checks open, or an answer leaves open what happened, there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.rs4a_replay.model_state import (
    DECIDED,
    Call,
    Effect,
    ModelState,
    Row,
    accounted,
    heard,
    instant,
    key_of,
    keys_of,
    near,
    record_of,
    same_rows,
    stored,
)
from holdfast.specs import Contract
from holdfast.specs.schema import explain


class Model:
    """The contract, with the horizon that a session was opened with."""

    def __init__(self, contract: Contract, *, horizon_s: int | None = None) -> None:
        def seconds(name: str) -> timedelta:
            return timedelta(seconds=int(contract.parameters[name].value or 0))

        self._methods, self._relations, self._reasons = contract.methods, contract.relations, contract.reasons
        self._ttl, self._skew = seconds("ttl_seconds"), seconds("clock_skew_seconds")
        self._window = seconds("nonce_window_seconds")
        self._horizon = None if horizon_s is None else timedelta(seconds=horizon_s)

    # Which answers fit

    def due(self, world: ModelState, call: Call) -> frozenset[str]:
        """Every effect and reason that fits this call in this world; `indeterminate` where the outcome is lost."""
        if call.method == "validate":
            return frozenset({self._invalid(call) or "prior"})
        if world.surface != "ready":
            return frozenset({"REPLAY_SURFACE_REQUIRED_NOT_PRESENT"})
        if world.mute:
            return frozenset({"AUDIT_UNAVAILABLE"})
        if explain(self._methods[call.method].args, call.args) is not None:
            return frozenset({"REQUEST_MALFORMED"})
        if call.method == "issue_nonce":
            closed = instant(call.args["window"]["not_after"]) < instant(call.now)
            # A window that is over already opens nothing, and the contract says nothing of it.
            if not self._can_be_issued(call.args["window"]):
                return frozenset({"REQUEST_MALFORMED"})
            return frozenset({"new", "REQUEST_MALFORMED"} if closed else {"new"})
        # Beside a commit that is open its outcome is not known, and a job may have to give up.
        unsettled = frozenset({"indeterminate"} if call.contended else ())
        if call.method == "resolve_status":
            return unsettled | {"prior"}
        if call.method == "maintain":
            return unsettled | {"new", "prior"}
        invalid = None if call.forged else self._invalid(call)
        if invalid is not None:
            return frozenset({invalid})
        decided = self._compensation if call.method == "compensate" else self._registration
        found = decided(world, call)
        if call.collides and self._is_taken(world, call):
            found |= {"ATTEMPT_COLLISION"}
        if call.contended and "new" in found:
            found |= {"COMMIT_FAILED"}
        return self._lost(call) if found == {"new"} and call.fault else found

    def _invalid(self, call: Call) -> str | None:
        """The validator's reason: shape, artifact, freshness."""
        if explain(self._methods[call.method].args, call.args) is not None:
            return "REQUEST_MALFORMED"
        request, attested = call.args["request"], call.args["trusted_attested"]["artifact_hash"].lower()
        claimed = {request["deployed_artifact_hash"].lower(), request.get("artifact_hash", attested).lower()}
        if claimed != {attested}:
            return "ARTIFACT_MISMATCH"
        age = instant(call.now) - instant(request["issued_at"])
        return "REQUEST_STALE" if age > self._ttl or -age > self._skew else None

    def _can_be_issued(self, window: Row) -> bool:
        opens, closes = instant(window["not_before"]), instant(window["not_after"])
        return opens <= closes <= opens + self._window

    def _registration(self, world: ModelState, call: Call) -> frozenset[str]:
        """The lines of `register`, behind those of every submission."""
        request = call.args["request"]
        nonce, effect = request["authorization_nonce"], world.effects.get(key_of(call))
        if effect is None:
            return self._nonce_alone(world, call)
        if effect.row["authorization_nonce"] == nonce:
            return frozenset(
                {"prior"} if _is_retry(effect, call) else {world.attempts} if world.attempts else _ATTEMPTS
            )
        if nonce in world.consumed:
            return frozenset({"REPLAY_NONCE_CONSUMED"})
        if effect.compensation:
            return frozenset({"COMPENSATION_ONLY", "REPLAY_DUPLICATE"})
        return frozenset({"COMPENSATION_ONLY" if effect.failed_at else "REPLAY_DUPLICATE"})

    def _compensation(self, world: ModelState, call: Call) -> frozenset[str]:
        """The lines of `compensate`, behind those of every submission."""
        nonce, effect = call.args["request"]["authorization_nonce"], world.effects.get(key_of(call))
        if effect is None or not effect.failed_at:
            return frozenset({"NOTHING_TO_COMPENSATE"})
        if not effect.compensation:
            return self._nonce_alone(world, call)
        if effect.compensation["authorization_nonce"] == nonce:
            return frozenset({"prior"})
        return frozenset({"REPLAY_NONCE_CONSUMED" if nonce in world.consumed else "REPLAY_DUPLICATE"})

    def _is_taken(self, world: ModelState, call: Call) -> bool:
        """Whether a rival has had the effect of this call; one that spent its nonce elsewhere has not (S4-5)."""
        effect = world.effects.get(key_of(call))
        return effect is not None and (call.method == "register" or effect.compensation is not None)

    def _nonce_alone(self, world: ModelState, call: Call) -> frozenset[str]:
        """Where the key is free, the nonce decides."""
        if self._is_unbound(world, call):
            return frozenset({"NONCE_UNBOUND"})
        spent = call.args["request"]["authorization_nonce"] in world.consumed
        return frozenset({"REPLAY_NONCE_CONSUMED" if spent else "new"})

    def _is_unbound(self, world: ModelState, call: Call) -> bool:
        """Not issued, bound to something else, or outside its window, which is closed at both ends."""
        request = call.args["request"]
        issued = world.issued.get(request["authorization_nonce"])
        if issued is None or not instant(issued["not_before"]) <= instant(call.now) <= instant(issued["not_after"]):
            return True
        shown = {**request, "artifact_hash": call.args["trusted_attested"]["artifact_hash"]}
        return any(shown[name] != value for name, value in issued["binding"].items())

    def _lost(self, call: Call) -> frozenset[str]:
        if call.fault == "abort":
            return frozenset({"COMMIT_FAILED"})
        return frozenset({"indeterminate", "new" if call.point == "after_commit" else "COMMIT_FAILED"})

    # What comes of an answer

    def after(self, world: ModelState, call: Call, answer: Answer | None) -> Iterator[ModelState]:
        """The worlds after this answer, none if it does not fit. No answer: the caller died while it waited."""
        due = self.due(world, call)
        if answer is None:
            yield from self._unsettled(replace(world, maybe=(*world.maybe, record_of(call, None))), call, due)
            return
        got = {"accepted": answer.effect, "refused": answer.reason}.get(answer.outcome, answer.outcome)
        if got not in due:
            return
        world = self._chosen(world, call, str(got))
        if got == "indeterminate":
            left = self._effects(world, call, None) if call.point == "after_commit" else (world,)
            left = self._unsettled(world, call, due) if call.method == "maintain" else left
            yield from (replace(each, maybe=(*each.maybe, record_of(call, None))) for each in left)
        elif answer.outcome == "refused":
            yield from self._refused(world, call, str(got), answer.data or {})
        elif call.method == "maintain":
            yield from self._maintained(world, call, answer)
        elif call.method == "resolve_status":
            yield from self._resolved(world, call, answer.value)
        elif call.method == "validate":
            if answer.value == keys_of(call.args):
                yield world
        elif got == "new":
            yield from self._effects(world, call, answer.value)
        else:
            yield from _told(world, key_of(call), answer.value, replayed=True)

    def _unsettled(self, world: ModelState, call: Call, due: frozenset[str]) -> Iterator[ModelState]:
        """The worlds after a call whose end is unknown. A held call had its effect only behind its commit."""
        if call.method == "maintain":
            past, last = self._due_tombstones(world, call.now)
            yield replace(world, half=frozenset(past + last))
            return
        if call.method == "issue_nonce":
            yield from self._effects(world, call, None)
            return
        if call.fault != "hold" or call.point != "after_commit":
            yield world
        if "new" in due and (call.fault != "hold" or call.point == "after_commit"):
            yield from self._effects(world, call, None)

    def _chosen(self, world: ModelState, call: Call, got: str) -> ModelState:
        """The world, with the answer that new attempts get here, if this is one. An implementation has one (RP-01)."""
        if call.method != "register" or call.collides or got not in _ATTEMPTS:
            return world
        effect = world.effects[key_of(call)]
        return world if _is_retry(effect, call) else replace(world, attempts=got)

    def race(self, world: ModelState, calls: Sequence[Call], answers: Sequence[Answer]) -> Iterator[ModelState]:
        """The worlds after calls that were under way at once: as if one had come after the other, in either order."""
        if {call.method for call in calls} == {"maintain"} and {each.outcome for each in answers} == {"accepted"}:
            yield from self._shared(world, calls[0], answers)
            return
        for order in permutations(range(len(calls))):
            worlds = [world]
            for place, number in enumerate(order):
                call = replace(calls[number], collides=bool(place) and "new" in self.due(world, calls[number]))
                worlds = [after for each in worlds for after in self.after(each, call, answers[number])]
            # The order of their records is open, and makes no other world.
            yield from (replace(each, audit=tuple(sorted(each.audit, key=repr))) for each in worlds)

    def _refused(self, world: ModelState, call: Call, reason: str, data: Row) -> Iterator[ModelState]:
        if not self._is_true(world, call, reason, data):
            return
        if call.forged:
            # That is a test hook, and no operation.
            world = replace(world, maybe=(*world.maybe, record_of(call, reason)))
        elif self._methods[call.method].audited and self._reasons[reason].audit_records:
            world = replace(world, audit=(*world.audit, record_of(call, reason)))
        if "decision" in data:
            yield from _told(world, key_of(call), data)
        elif reason != "ATTEMPT_COLLISION":
            yield world

    def _is_true(self, world: ModelState, call: Call, reason: str, data: Row) -> bool:
        """Whether a refusal says nothing false of the stored state, and shows a decision only where it may."""
        if "decision" in data and "decision" not in self._reasons[reason].data:
            return False
        if reason == "REQUEST_STALE":
            if call.method not in DECIDED:
                # The validator does not know what was consumed (LAYER-1).
                return not data.get("replay_blocked")
            return data.get("replay_blocked") is (key_of(call) in world.effects)
        if reason == "REPLAY_SURFACE_REQUIRED_NOT_PRESENT":
            return data.get("surface") in _SURFACES[world.surface] and data.get("can_proceed") == "NO"
        return True

    def _effects(self, world: ModelState, call: Call, value: Row | None) -> Iterator[ModelState]:
        """What an accepted call stores. Without a value it was not told which id it got."""
        if call.method == "issue_nonce":
            row = {**call.args["window"], "binding": call.args["binding"], "issued_at": call.now}
            if value is None:
                yield replace(world, unheard=(*world.unheard, row))
            elif value["nonce"] not in world.issued:
                yield replace(world, issued={**world.issued, value["nonce"]: row})
            return
        request, key = call.args["request"], key_of(call)
        nonce = request["authorization_nonce"]
        spent = {"logical_request_key": key, "purpose": _PURPOSES[call.method], "consumed_at": call.now}
        if call.method == "compensate":
            row = {"authorization_nonce": nonce, "attempt_id": request["attempt_id"], "recorded_at": call.now}
            effect = replace(world.effects[key], compensation=row)
        else:
            columns = {name: request[name] for name in self._relations["registration"].columns if name in request}
            row = {**columns, **keys_of(call.args), "inert": True, "committed_at": call.now}
            effect = Effect(row, failed_at=call.now if call.rejected else None)
        made = replace(world, effects={**world.effects, key: effect}, consumed={**world.consumed, nonce: spent})
        yield from (made,) if value is None else _told(made, key, value, replayed=False)

    def _resolved(self, world: ModelState, call: Call, value: Row) -> Iterator[ModelState]:
        key = call.args["logical_request_key"]
        world = replace(world, audit=(*world.audit, {**record_of(call, None), "code": value["status"]}))
        if key not in world.effects:
            yield from (world,) if value["status"] == "NOT_COMMITTED" else ()
        elif value["status"] == "COMMITTED" and "decision" in value:
            yield from _told(world, key, value)

    def _maintained(self, world: ModelState, call: Call, answer: Answer) -> Iterator[ModelState]:
        """Each key whose horizon has passed gets a tombstone; in its very last instant a key may have one."""
        past, last = self._due_tombstones(world, call.now)
        count = answer.value["tombstoned"]
        for due in (past, past + last) if last else (past,):
            if len(set(due) - world.half) <= count <= len(due) and (answer.effect == "new") == bool(count):
                made = {key: replace(world.effects[key], tombstoned_at=call.now) for key in due}
                yield replace(world, effects={**world.effects, **made}, half=frozenset())

    def _shared(self, world: ModelState, call: Call, answers: Sequence[Answer]) -> Iterator[ModelState]:
        """Retention by several at once: each tombstone is made by one of them."""
        counts = [each.value["tombstoned"] for each in answers]
        if all((each.effect == "new") == bool(count) for each, count in zip(answers, counts, strict=True)):
            effect = "new" if sum(counts) else "prior"
            yield from self._maintained(
                world, call, replace(answers[0], effect=effect, value={"tombstoned": sum(counts)})
            )

    def _due_tombstones(self, world: ModelState, now: str) -> tuple[list[str], list[str]]:
        """The keys whose horizon is over, and those that are in its last instant."""
        left = {key: self._left(effect, now) for key, effect in world.effects.items()}
        return (
            [key for key, span in left.items() if span is not None and span < timedelta()],
            [key for key, span in left.items() if span == timedelta()],
        )

    def _left(self, effect: Effect, now: str) -> timedelta | None:
        """What is left of a key's horizon; None if it is for ever or over."""
        if self._horizon is None or effect.tombstoned_at:
            return None
        return instant(effect.row["committed_at"]) + self._horizon - instant(now)

    # What is observed

    def observed(self, world: ModelState, method: str, args: Any, value: Row) -> Iterator[ModelState]:
        """The world, with the ids that an observation shows; nothing if it shows something else."""
        if method == "state":
            yield from self._stored(world, value)
        elif method == "audit":
            yield from (world,) if accounted(value["records"], world.audit, world.maybe) else ()
        elif method == "nonce_state":
            state = "consumed" if args["nonce"] in world.consumed else "issued"
            if value["state"] == (state if args["nonce"] in world.issued else "unknown"):
                yield world
        elif method == "gate":
            closed = {"can_proceed": "NO", "gate": "REGISTRATION_HOLD", "domain": "REPLAY_DOMAIN_FAIL_CLOSED"}
            if closed.items() <= value.items() and value["surface"] in _SURFACES[world.surface]:
                yield world
        elif method == "derive_keys" and value == keys_of(args):
            yield world

    def _stored(self, world: ModelState, state: Row) -> Iterator[ModelState]:
        world = heard(world, self._relations["nonce_issue"], state["nonce_issue"])
        shown = {row["logical_request_key"]: row for row in state["registration"]}
        untold = {key: each for key, each in world.effects.items() if each.id is None and key in shown}
        named = {key: replace(each, id=shown[key]["decision_id"]) for key, each in untold.items()}
        known = replace(world, effects={**world.effects, **named})
        if all(same_rows(self._relations[name], rows, state[name]) for name, rows in stored(known).items()):
            kept = {key: {**each.row, "committed_at": shown[key]["committed_at"]} for key, each in named.items()}
            rows = {key: replace(each, row=kept[key]) for key, each in named.items()}
            yield replace(known, effects={**known.effects, **rows})


# What the registrar may say of its surface.
_SURFACES = {
    "ready": ("PRESENT_UNPROVEN",),
    "absent": ("ABSENT",),
    "broken": ("UNKNOWN",),
    "lacking": ("UNKNOWN", "ABSENT"),
}
# How a new attempt at a consumed request is answered.
_ATTEMPTS = frozenset({"prior", "REPLAY_ATTEMPT_NO_BYPASS"})
_PURPOSES = {"register": "registration", "compensate": "compensation"}


def _is_retry(effect: Effect, call: Call) -> bool:
    retried: bool = effect.row["attempt_id"] == call.args["request"]["attempt_id"]
    return retried


def _told(world: ModelState, key: str, value: Row, *, replayed: bool | None = None) -> Iterator[ModelState]:
    """The world with the id of this decision, if it is the stored one, unchanged, and marked as `replayed` or not."""
    effect, decision = world.effects.get(key), value.get("decision")
    if effect is None or (replayed is not None and value.get("replayed", replayed) is not replayed):
        return
    if decision is None:
        # A forged call need not show it.
        yield world
        return
    row = effect.row
    same = {"state": effect.state, **{name: row[name] for name in ("logical_request_key", "replay_key", "inert")}}
    if effect.id is None:
        # The first answer with the decision gives its id, and how exactly its time is kept.
        row = {**row, "committed_at": decision["committed_at"]}
        fits = near(row["committed_at"], effect.row["committed_at"])
    else:
        fits = effect.id == decision["decision_id"] and instant(row["committed_at"]) == instant(
            decision["committed_at"]
        )
    if fits and same.items() <= decision.items():
        yield replace(world, effects={**world.effects, key: replace(effect, id=decision["decision_id"], row=row)})
