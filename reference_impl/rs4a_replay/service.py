"""One session: the methods of methods.yaml, bound to the registrar, the operator and the failpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Ok, Refused, Senseless
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.failpoints import Fault as Failure
from holdfast.reference_impl.rs4a_replay.failpoints import Point
from holdfast.reference_impl.rs4a_replay.isolation import judge_twice
from holdfast.reference_impl.rs4a_replay.keys import derive
from holdfast.reference_impl.rs4a_replay.opening import Opened, Use
from holdfast.reference_impl.rs4a_replay.operator import Breakage
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.store import StoreError
from holdfast.reference_impl.rs4a_replay.terms import (
    CAN_PROCEED,
    CONTRACT,
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
from holdfast.reference_impl.rs4a_replay.validator import MalformedError, Validator, Verdict
from holdfast.reference_impl.session import OpenRequest
from holdfast.specs import kept_terms
from holdfast.specs.model import Group
from holdfast.specs.schema import explain


class Service:
    """Implements `session.Session` for rs4a-replay."""

    def __init__(self, request: OpenRequest, settings: Settings, patience: Patience, opened: Opened) -> None:
        self._settings, self._patience, self._opened = settings, patience, opened
        self._now = request.now
        self._known = kept_terms(CONTRACT).methods
        self._validator = Validator(settings)
        store, audit, operator = opened.store, opened.audit, opened.operator
        self._registrar = Registrar(settings, store, audit)
        authority, custody = Authority(settings, store, audit), Custody(settings, store, audit)
        self._failpoints = opened.failpoints(request.workdir, patience)
        if opened.use is Use.LABORATORY:
            self._failpoints.watch(store, self._registrar)
        self._methods: Mapping[str, Callable[[Any], Answer | Mapping[str, Any] | None]] = {
            Operation.ISSUE_NONCE.value: lambda args: authority.issue_nonce(args, now=self._now),
            "validate": self.validate,
            Operation.REGISTER.value: self.register,
            Operation.RESOLVE_STATUS.value: lambda args: custody.resolve_status(args, now=self._now),
            Operation.COMPENSATE.value: self.compensate,
            Operation.MAINTAIN.value: lambda _: custody.maintain(now=self._now),
            "state": lambda _: self.state(),
            "audit": lambda _: self.audit(),
            "nonce_state": lambda args: self.nonce_state(args["nonce"]),
            "derive_keys": self.derive_keys,
            "gate": lambda _: self.gate(),
            "catalogue": lambda _: {"objects": list(operator.catalogue())},
            "fail_verify": lambda _: self._failpoints.reject(),
            "break_audit": lambda args: operator.break_audit() if args["broken"] else operator.mend_audit(),
            "break_surface": lambda args: operator.break_surface(Breakage(args["how"])),
            "raw_insert": self.raw_insert,
            "register_unvalidated": self.register_unvalidated,
            "validate_isolated": lambda args: judge_twice(self._validator, args, now=self._now),
            "hold_at": lambda args: self._failpoints.arm(Point(args["point"]), Failure(args["fault"])),
        }

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        bound = self._methods.get(method)
        if bound is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._methods)}")
        known = self._known[method]
        if known.group is Group.PROVOCATION and self._opened.use is Use.LIVE:
            return Fault(f"{method}: expected a throw-away surface, got a live one, which is never broken for a test")
        if known.group is not Group.OPERATION:
            problem = explain(known.args, args)
            if problem is not None:
                return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        self._patience.begin()
        try:
            answer = bound(args)
        except StoreError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: the store cannot be asked: {error}")
        return Ok(answer) if answer is None or isinstance(answer, Mapping) else answer

    @property
    def place(self) -> Mapping[str, str] | None:
        """See `session.Session`."""
        return self._opened.place

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        self._now = now

    def close(self) -> None:
        """See `session.Session`."""
        self._opened.close()

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
        return self._validator.judge(args, now=self._now)

    def _decide(self, operation: Operation, verdict: Verdict) -> Answer:
        registrar = self._registrar
        identities, keys = Identities(), verdict.keys
        if verdict.submission is not None:
            assert keys is not None, "what could be read has keys"
            nonce, attempt_id = verdict.submission.authorization_nonce, verdict.submission.attempt_id
            identities = Identities(keys.logical_request_key, nonce, attempt_id)
        attempt = registrar.arrive(operation, verdict, identities, now=self._now)
        try:
            return (registrar.register if operation is Operation.REGISTER else registrar.compensate)(attempt)
        finally:
            self._failpoints.disarm()

    # Observations

    def state(self) -> dict[str, Any]:
        """Every row of every relation but the audit."""
        relations = [each for each in self._settings.relations.values() if not each.audit]
        found = self._opened.operator.rows(relations)
        return {relation.name: list(found.get(relation.name, ())) for relation in relations}

    def audit(self) -> dict[str, Any]:
        """The failure audit; its ids sort by writing order."""
        return {"records": list(self._opened.operator.rows([self._settings.relations["audit"]])["audit"])}

    def nonce_state(self, nonce: str) -> dict[str, Any]:
        """The state of a nonce, from its two rows. Raises StoreError if they cannot be read, KeyError without one."""
        states = {"nonce_issue": NonceState.ISSUED, "nonce_consume": NonceState.CONSUMED}
        stored = self._opened.operator.rows([self._settings.relations[name] for name in states])
        found = [
            state for name, state in states.items() if any(row["authorization_nonce"] == nonce for row in stored[name])
        ]
        return {"state": [NonceState.UNKNOWN, *found][-1].value}

    def derive_keys(self, args: Any) -> Answer | dict[str, str]:
        """The two keys of a submission, for every verdict of the validator."""
        try:
            keys = derive(self._settings.keys, self._validator.submission_of(args))
        except MalformedError as error:
            return Senseless(f"derive_keys: {error}")
        return _told(keys)

    def gate(self) -> dict[str, Any]:
        """What the registrar says about proceeding: never YES, because only a fitness proof could open it."""
        state = self._registrar.look(None, None).surface.state
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

    def raw_insert(self, args: Any) -> dict[str, Any]:
        """One row as given, past every check of this code."""
        relation = self._settings.relations[args["relation"]]
        outcome = self._opened.operator.raw_insert(relation, args["row"])
        return {"inserted": outcome.inserted, "constraint": outcome.constraint}

    def register_unvalidated(self, args: Any) -> Answer:
        """The registrar with a forged verdict: the registrar must check for a replay itself."""
        answer = self._decide(Operation.REGISTER, self._validator.read(args))
        if isinstance(answer, Accepted):
            decision = answer.value["decision"]
            return Ok({"outcome": "accepted", "effect": answer.effect.value, "decision": decision})
        if not isinstance(answer, Refused):
            return answer
        told = {"decision": answer.data["decision"]} if answer.data and "decision" in answer.data else {}
        return Ok({"outcome": "refused", "reason": answer.reason, **told})


def _told(keys: DerivedKeys) -> dict[str, str]:
    return {"logical_request_key": keys.logical_request_key, "replay_key": keys.replay_key}
