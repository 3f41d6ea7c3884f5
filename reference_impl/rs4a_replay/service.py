"""One session: the methods of methods.yaml, bound to the registrar, the operator and the failpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto, unique
from typing import Any, Protocol

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Ok, Refused, Senseless
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.failpoints import Failpoints, Point
from holdfast.reference_impl.rs4a_replay.failpoints import Fault as Failure
from holdfast.reference_impl.rs4a_replay.isolation import judge_twice
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.operator import Breakage, Operator
from holdfast.reference_impl.rs4a_replay.reading import MalformedError, Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.store import StoreError
from holdfast.reference_impl.rs4a_replay.terms import (
    CAN_PROCEED,
    DOMAIN,
    FITNESS_UNPROVEN,
    GATE,
    DerivedKeys,
    Identities,
    NonceState,
    Operation,
    Reason,
    SurfaceState,
)
from holdfast.reference_impl.rs4a_replay.validator import Validator, Verdict
from holdfast.specs import Contract
from holdfast.specs.model import Group
from holdfast.specs.schema import explain


@unique
class Use(Enum):
    """The purpose of a session's surface: for tests that break it, or to hold keys."""

    LABORATORY = auto()
    LIVE = auto()


class Server(Protocol):
    """A database server that belongs to the session."""

    def close(self) -> None:
        """End it. Never raises."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything one session works with."""

    contract: Contract
    settings: Settings
    keys: Keys
    reader: Reader
    validator: Validator
    registrar: Registrar
    authority: Authority
    custody: Custody
    ports: Ports
    operator: Operator
    failpoints: Failpoints
    patience: Patience
    server: Server | None = None
    use: Use = Use.LABORATORY
    # The place of the store of a test session, so that the kit can inspect it from outside.
    place: Mapping[str, str] | None = None


class Service:
    """Implements `session.Session` for rs4a-replay."""

    def __init__(self, parts: Parts, *, now: datetime) -> None:
        self._parts = parts
        self._now = now
        self._methods: Mapping[str, Callable[[Any], Answer]] = {
            Operation.ISSUE_NONCE.value: lambda args: parts.authority.issue_nonce(args, now=self._now),
            "validate": self.validate,
            Operation.REGISTER.value: self.register,
            Operation.RESOLVE_STATUS.value: lambda args: parts.custody.resolve_status(args, now=self._now),
            Operation.COMPENSATE.value: self.compensate,
            Operation.MAINTAIN.value: lambda _: parts.custody.maintain(now=self._now),
            "state": lambda _: Ok(self.state()),
            "audit": lambda _: Ok(self.audit()),
            "nonce_state": lambda args: self.nonce_state(args["nonce"]),
            "derive_keys": self.derive_keys,
            "gate": lambda _: Ok(self.gate()),
            "catalogue": lambda _: Ok({"objects": list(parts.operator.catalogue())}),
            "fail_verify": lambda _: self.fail_verify(),
            "break_audit": lambda args: self.break_audit(broken=args["broken"]),
            "break_surface": lambda args: self.break_surface(Breakage(args["how"])),
            "raw_insert": self.raw_insert,
            "register_unvalidated": self.register_unvalidated,
            "validate_isolated": lambda args: Ok(judge_twice(parts.validator, args, now=self._now)),
            "hold_at": lambda args: self.hold_at(Point(args["point"]), Failure(args["fault"])),
        }

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        bound = self._methods.get(method)
        if bound is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._methods)}")
        known = self._parts.contract.methods[method]
        if known.group is Group.PROVOCATION and self._parts.use is Use.LIVE:
            return Fault(f"{method}: expected a throw-away surface, got a live one, which is never broken for a test")
        if known.group is not Group.OPERATION:
            problem = explain(known.args, args)
            if problem is not None:
                return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        self._parts.patience.begin()
        try:
            return bound(args)
        except StoreError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: the store cannot be asked: {error}")

    @property
    def place(self) -> Mapping[str, str] | None:
        """See `session.Session`."""
        return self._parts.place

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        self._now = now

    def close(self) -> None:
        """See `session.Session`."""
        for part in (self._parts.operator, self._parts.ports.store, self._parts.ports.audit, self._parts.server):
            if part is not None:
                part.close()

    # Operations

    def validate(self, args: Any) -> Answer:
        """The pure validator's verdict. It owns no state, so there is no audit record."""
        verdict = self._judge(args)
        if verdict.reason is not None:
            return Refused(verdict.reason.value, detail=verdict.detail)
        assert verdict.keys is not None, "what is valid has its keys"
        return Accepted(Effect.PRIOR, _told(verdict.keys))

    def register(self, args: Any) -> Answer:
        """The validator judges, the registrar decides."""
        return self._decide(Operation.REGISTER, self._judge(args))

    def compensate(self, args: Any) -> Answer:
        """The same for what undoes a failed registration."""
        return self._decide(Operation.COMPENSATE, self._judge(args))

    def _judge(self, args: Any) -> Verdict:
        return self._parts.validator.judge(args, now=self._now)

    def _decide(self, operation: Operation, verdict: Verdict) -> Answer:
        registrar = self._parts.registrar
        identities, keys = Identities(), verdict.keys
        if verdict.submission is not None:
            assert keys is not None, "what could be read has keys"
            nonce, attempt_id = verdict.submission.authorization_nonce, verdict.submission.attempt_id
            identities = Identities(keys.logical_request_key, nonce, attempt_id)
        attempt = registrar.arrive(operation, verdict, identities, now=self._now)
        try:
            return (registrar.register if operation is Operation.REGISTER else registrar.compensate)(attempt)
        finally:
            self._parts.failpoints.disarm()

    # Observations

    def state(self) -> dict[str, Any]:
        """Every row of every relation but the audit."""
        relations = [each for each in self._parts.settings.relations.values() if not each.audit]
        found = self._parts.operator.rows(relations)
        return {relation.name: list(found.get(relation.name, ())) for relation in relations}

    def audit(self) -> dict[str, Any]:
        """The failure audit; its ids sort by writing order."""
        return {"records": list(self._parts.operator.rows([self._parts.settings.relations["audit"]])["audit"])}

    def nonce_state(self, nonce: str) -> Answer:
        """The state of a nonce, from its two rows. Raises StoreError if they cannot be read, KeyError without one."""
        states = {"nonce_issue": NonceState.ISSUED, "nonce_consume": NonceState.CONSUMED}
        stored = self._parts.operator.rows([self._parts.settings.relations[name] for name in states])
        found = [
            state for name, state in states.items() if any(row["authorization_nonce"] == nonce for row in stored[name])
        ]
        return Ok({"state": [NonceState.UNKNOWN, *found][-1].value})

    def derive_keys(self, args: Any) -> Answer:
        """The two keys of a submission, for every verdict of the validator."""
        try:
            keys = self._parts.keys.derive(self._parts.reader.read(args))
        except MalformedError as error:
            return Senseless(f"derive_keys: {error}")
        return Ok(_told(keys))

    def gate(self) -> dict[str, Any]:
        """What the registrar says about proceeding: never YES, because only a fitness proof could open it."""
        state = self._parts.registrar.look(None, None).surface.state
        reasons = {
            SurfaceState.ABSENT: Reason.REPLAY_SURFACE_REQUIRED_NOT_PRESENT.value,
            SurfaceState.UNKNOWN: Reason.REPLAY_SURFACE_REQUIRED_NOT_PRESENT.value,
            SurfaceState.NOT_FIT: Reason.REPLAY_SURFACE_NOT_FIT.value,
            SurfaceState.PRESENT_UNPROVEN: FITNESS_UNPROVEN,
        }
        return {
            "can_proceed": CAN_PROCEED,
            "gate": GATE,
            "domain": DOMAIN,
            "surface": state.value,
            "reasons": [reasons[state]],
        }

    # Provocations

    def fail_verify(self) -> Answer:
        """The verifier rejects the next registration."""
        self._parts.failpoints.rejecting = True
        return Ok()

    def break_surface(self, how: Breakage) -> Answer:
        """The configured surface goes away in one of four ways."""
        self._parts.operator.break_surface(how)
        return Ok()

    def hold_at(self, point: Point, fault: Failure) -> Answer:
        """Arm one failpoint inside the next register of this worker."""
        self._parts.failpoints.arm(point, fault)
        return Ok()

    def break_audit(self, *, broken: bool) -> Answer:
        """The audit sink refuses writes, or works again."""
        if broken:
            self._parts.operator.break_audit()
        else:
            self._parts.operator.mend_audit()
        return Ok()

    def raw_insert(self, args: Any) -> Answer:
        """One row as given, past every check of this code."""
        relation = self._parts.settings.relations[args["relation"]]
        outcome = self._parts.operator.raw_insert(relation, args["row"])
        return Ok({"inserted": outcome.inserted, "constraint": outcome.constraint})

    def register_unvalidated(self, args: Any) -> Answer:
        """The registrar with a forged verdict: the registrar must check for a replay itself."""
        answer = self._decide(Operation.REGISTER, self._parts.validator.read(args))
        if isinstance(answer, Accepted):
            decision = answer.value["decision"]
            return Ok({"outcome": "accepted", "effect": answer.effect.value, "decision": decision})
        if not isinstance(answer, Refused):
            return answer
        told = {"decision": answer.data["decision"]} if answer.data and "decision" in answer.data else {}
        return Ok({"outcome": "refused", "reason": answer.reason, **told})


def _told(keys: DerivedKeys) -> dict[str, str]:
    return {"logical_request_key": keys.logical_request_key, "replay_key": keys.replay_key}
