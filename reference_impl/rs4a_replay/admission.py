"""The guards before every operation: the surface, the audit, and the verdict, in the contract's decision order."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Indeterminate, Refused
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.store import AuditError, AuditSink, Row, Sight, Store, SurfaceUnreadableError
from holdfast.reference_impl.rs4a_replay.surface import SurfaceReport
from holdfast.reference_impl.rs4a_replay.terms import (
    CAN_PROCEED,
    DOMAIN,
    GATE,
    CommitStatus,
    DecisionState,
    Identities,
    Operation,
    Reason,
    SurfaceState,
)
from holdfast.reference_impl.rs4a_replay.validator import Verdict


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason of the closed list, with the data that the contract lets it carry."""

    reason: Enum
    data: Mapping[str, Any] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One operation under way: its request, its time, and the state of the store at arrival."""

    method: Operation
    now: datetime
    verdict: Verdict
    identities: Identities
    sight: Sight


Rule = Callable[[Attempt], Refusal | Accepted | None]


class Admission:
    """Guards that every operation of the registrar passes first. Each guard is one method."""

    def __init__(self, settings: Settings, store: Store | None, audit: AuditSink | None) -> None:
        """Without a configured surface there is neither store nor audit."""
        self._settings = settings
        self._store = store
        self._audit = audit

    @property
    def store(self) -> Store:
        """The store of an admitted operation."""
        assert self._store is not None, "no operation is admitted without a surface"
        return self._store

    @property
    def audit(self) -> AuditSink:
        """The audit of an attempt on a surface."""
        assert self._audit is not None, "nothing is refused with a record before there is a surface"
        return self._audit

    def arrive(self, method: Operation, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
        """S0: read the consumed state first, and write nothing (source section 3)."""
        sight = self.look(identities.logical_request_key, identities.authorization_nonce)
        return Attempt(method, now, verdict, identities, sight)

    def look(self, key: str | None, nonce: str | None) -> Sight:
        """The stored state now. A surface that cannot be read is UNKNOWN, which counts as absent."""
        if self._store is None:
            return Sight(SurfaceReport(SurfaceState.ABSENT, "no surface is configured"))
        try:
            return self._store.look(logical_request_key=key, nonce=nonce)
        except SurfaceUnreadableError as error:
            return Sight(SurfaceReport(SurfaceState.UNKNOWN, str(error)))

    def refusal(self, attempt: Attempt) -> Refusal | None:
        """The first of the common guards that applies, in the order of the contract."""
        return (
            self.guard_surface(attempt)
            or self.guard_audit(attempt)
            or self.guard_shape(attempt)
            or self.guard_artifact(attempt)
            or self.guard_freshness(attempt)
        )

    def guard_surface(self, attempt: Attempt) -> Refusal | None:
        """Without a surface that is proven complete and fit, no operation is admitted."""
        report = attempt.sight.surface
        if report.state is SurfaceState.PRESENT_UNPROVEN:
            return None
        fit = report.state is not SurfaceState.NOT_FIT
        reason = Reason.REPLAY_SURFACE_REQUIRED_NOT_PRESENT if fit else Reason.REPLAY_SURFACE_NOT_FIT
        data = {"surface": report.state.value, "domain": DOMAIN, "gate": GATE, "can_proceed": CAN_PROCEED}
        return Refusal(reason, data, report.detail)

    def guard_audit(self, attempt: Attempt) -> Refusal | None:
        """Without an audit that can be written now, no operation is admitted (source section 6g)."""
        try:
            self.audit.probe(self.record(attempt, Reason.AUDIT_UNAVAILABLE.value))
        except AuditError as error:
            return Refusal(Reason.AUDIT_UNAVAILABLE, detail=str(error))
        return None

    def guard_shape(self, attempt: Attempt) -> Refusal | None:
        """Refuse arguments that do not fit the schema or have no normal form. No value is read from them."""
        if attempt.verdict.reason is not Reason.REQUEST_MALFORMED:
            return None
        return Refusal(Reason.REQUEST_MALFORMED, detail=attempt.verdict.detail)

    def guard_artifact(self, attempt: Attempt) -> Refusal | None:
        """The deployed and the claimed artifact must be the attested one (trap R6)."""
        return Refusal(Reason.ARTIFACT_MISMATCH) if attempt.verdict.reason is Reason.ARTIFACT_MISMATCH else None

    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        """A stale request is inadmissible; what it asked for stays consumed (source section 4)."""
        if attempt.verdict.reason is not Reason.REQUEST_STALE:
            return None
        return Refusal(Reason.REQUEST_STALE, {"replay_blocked": attempt.sight.registration is not None})

    def refuse(self, attempt: Attempt, refusal: Refusal) -> Answer:
        """Refuse, with as many audit records as the contract declares. If the audit fails, the reason changes."""
        for _ in range(self._settings.audit_records[refusal.reason.value]):
            try:
                self.keep_record(self.record(attempt, refusal.reason.value))
            except AuditError as error:
                return Refused(Reason.AUDIT_UNAVAILABLE.value, detail=str(error))
        return Refused(refusal.reason.value, refusal.data, refusal.detail)

    def keep_record(self, record: Row) -> None:
        """Make one audit record durable, on a path of its own. Raises AuditError."""
        self.audit.write(record)

    def note_status(self, attempt: Attempt, status: CommitStatus) -> Refusal | None:
        """Audit a resolved commit."""
        try:
            self.keep_record(self.record(attempt, status.value))
        except AuditError as error:
            return Refusal(Reason.AUDIT_UNAVAILABLE, detail=str(error))
        return None

    def record(self, attempt: Attempt, code: str) -> Row:
        """One audit record. Its id is opaque and sorts by writing order; the machine's clock decides nothing else."""
        return {
            "audit_id": f"{time.time_ns():020d}-{secrets.token_hex(6)}",
            "recorded_at": format_instant(attempt.now),
            "code": code,
            "method": attempt.method.value,
            "logical_request_key": attempt.identities.logical_request_key,
            "authorization_nonce": attempt.identities.authorization_nonce,
            "attempt_id": attempt.identities.attempt_id,
        }


def decision_of(sight: Sight) -> dict[str, Any]:
    """The durable decision in the state that was read, as the contract's `decision`."""
    row = sight.registration
    assert row is not None, "a decision is told only of a consumed key"
    state = DecisionState.COMMITTED
    if sight.verification is not None:
        state = DecisionState.FAILED
    if sight.compensation is not None:
        state = DecisionState.COMPENSATED
    told = ("decision_id", "logical_request_key", "replay_key", "inert", "committed_at")
    return {"state": state.value, **{name: row[name] for name in told}}


def uncertain(error: Exception) -> Indeterminate:
    """The answer when a commit may or may not have happened; `resolve_status` reports it later."""
    return Indeterminate(f"the commit is uncertain, resolve the status: {error}")
