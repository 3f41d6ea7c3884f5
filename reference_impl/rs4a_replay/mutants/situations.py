"""Bugs of the operations beside the main one that show in one situation only: a time, a rival, another process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Admission, Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.keys import Keys, TargetError
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Insert, Row, Sight, Store
from holdfast.reference_impl.rs4a_replay.terms import Operation, Reason

# Fewer than a history of many keys has.
_NEWEST = 600
# Long enough for another process to come between.
_BETWEEN_S = 0.05


def _asked(store: Store, statement: str, *values: object) -> Any:
    """The first value that the surface answers a statement with; None if it has none."""
    assert isinstance(store, SqliteStore), "these bugs are planted on SQLite"
    found = store._database.connection().execute(statement, values).fetchone()
    return None if found is None else found[0]


def _later(store: Store, relation: str, column: str, value: str | None) -> int:
    """How many rows came after that of this value; 0 if there is none."""
    since = f"(SELECT rowid FROM {relation} WHERE {column} = ?)"
    return int(_asked(store, f"SELECT count(*) FROM {relation} WHERE rowid > {since}", value))


class _AuditRemembered(Admission):
    """It looks no more at the audit after that could be written once."""

    def guard_audit(self, attempt: Attempt) -> Refusal | None:
        refusal = None if self.__dict__.get("_works") else super().guard_audit(attempt)
        self.__dict__["_works"] = refusal is None
        return refusal


# Issuing


def _issued_before(authority: Authority, args: Any, now: datetime, until: datetime) -> str | None:
    """A nonce that was issued for the same, until then."""
    row = authority.issue_row(args, now=now)
    found: str | None = _asked(
        authority.store,
        "SELECT min(authorization_nonce) FROM nonce_issue WHERE binding = ? AND not_before = ? AND not_after = ? "
        "AND issued_at < ?",
        *(row[name] for name in ("binding", "not_before", "not_after")),
        until.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    return found


class IssueToldAgainAfterARestart(Authority):
    def issue_nonce(self, args: Any, *, now: datetime) -> Answer:
        is_first = "_began" not in self.__dict__
        self.__dict__["_began"] = True
        answer = super().issue_nonce(args, now=now)
        if not is_first or not isinstance(answer, Accepted):
            return answer
        return Accepted(Effect.NEW, {"nonce": _issued_before(self, args, now, now + timedelta(days=1))})


class IssueByTheLatestClock(Authority):
    def issue_row(self, args: Any, *, now: datetime) -> Row:
        latest: datetime = max(now, self.__dict__.get("_latest", now))
        self.__dict__["_latest"] = latest
        return super().issue_row(args, now=latest)


class NoncesByTheirNumber(Authority):
    def new_nonce(self, binding: dict[str, str]) -> str:
        count = _asked(self.store, "SELECT count(*) FROM nonce_issue")
        time.sleep(_BETWEEN_S)
        # Its own surroundings make it unlike any other's, and two at once are alike.
        return f"{super().new_nonce(binding)[:0]}{count:032d}"


class AuditRememberedByTheAuthority(_AuditRemembered, Authority):
    pass


class FewNoncesKept(SqliteStore):
    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        sight = super().look(logical_request_key=logical_request_key, nonce=nonce)
        if sight.issue is None:
            return sight
        return (
            sight if _later(self, "nonce_issue", "authorization_nonce", nonce) < _NEWEST else replace(sight, issue=None)
        )


# Validating


class ValidatedByTheFirstClock(Service):
    def validate(self, args: Any) -> Answer:
        now = self._now
        self._now = self.__dict__.setdefault("_began", now)
        try:
            return super().validate(args)
        finally:
            self._now = now


class ValidatedByTheLatestClock(Service):
    def validate(self, args: Any) -> Answer:
        now = self._now
        self._now = self.__dict__["_latest"] = max(now, self.__dict__.get("_latest", now))
        try:
            return super().validate(args)
        finally:
            self._now = now


class TargetsOfAnyForm(Keys):
    def normal_target(self, target: str) -> str:
        try:
            return super().normal_target(target)
        except TargetError:
            return target


# Registering


class WinnerFromOneTable(Registrar):
    def lost_race(self, attempt: Attempt) -> Refusal:
        refusal = super().lost_race(attempt)
        if attempt.method is Operation.COMPENSATE or not refusal.data:
            return refusal
        # Who reads the registration alone does not learn that it failed, nor what came of that.
        return replace(refusal, data={"decision": {**refusal.data["decision"], "state": "COMMITTED"}})


class AuditRememberedByTheRegistrar(_AuditRemembered, Registrar):
    pass


class LoserBurnsItsNonce(Registrar):
    def lost_race(self, attempt: Attempt) -> Refusal:
        refusal, keys, submission = super().lost_race(attempt), attempt.verdict.keys, attempt.verdict.submission
        if refusal.reason is Reason.ATTEMPT_COLLISION and keys is not None and submission is not None:
            row = self.effect_rows(attempt)[0].row
            self.store.append([Insert("nonce_consume", row)])
        return refusal


class AttemptsKnownHere(Registrar):
    def prior_decision(self, attempt: Attempt) -> Refusal | Accepted | None:  # type: ignore[override]
        """Where the key was registered a new attempt is seen to be one; elsewhere every attempt is the first."""
        answer, submission = super().prior_decision(attempt), attempt.verdict.submission
        if answer is None or submission is None:
            return answer
        here: dict[str, str] = self.__dict__.setdefault("_here", {})
        key = str(attempt.identities.logical_request_key)
        known = here.setdefault(key, submission.attempt_id)
        return answer if known == submission.attempt_id else Refusal(Reason.REPLAY_ATTEMPT_NO_BYPASS)


# Compensating


class CompensationToldHere(Registrar):
    def prior_compensation(self, attempt: Attempt) -> Accepted | None:
        told, made = super().prior_compensation(attempt), self.__dict__.setdefault("_made", set())
        return None if told is not None and told.value["decision"]["decision_id"] not in made else told

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        consumed = self.consume_compensation

        def noted(attempt: Attempt) -> Answer:
            answer = consumed(attempt)
            if isinstance(answer, Accepted):
                self.__dict__.setdefault("_made", set()).add(answer.value["decision"]["decision_id"])
            return answer

        self.__dict__["consume_compensation"] = noted


class CompensationToldForAnHour(Registrar):
    def prior_compensation(self, attempt: Attempt) -> Accepted | None:
        row = attempt.sight.compensation
        if row is not None and parse_instant(str(row["recorded_at"])) + timedelta(hours=1) < attempt.now:
            return None
        return super().prior_compensation(attempt)


class LaterCompensationsUnseen(Registrar):
    def prior_compensation(self, attempt: Attempt) -> Accepted | None:
        row = attempt.sight.compensation
        if row is not None and parse_instant(str(row["recorded_at"])) > attempt.now:
            return None
        return super().prior_compensation(attempt)


class SpentNonceCalledCollision(Registrar):
    def lost_race(self, attempt: Attempt) -> Refusal:
        refusal, keys = super().lost_race(attempt), attempt.verdict.keys
        if (
            attempt.method is not Operation.COMPENSATE
            or refusal.reason is not Reason.REPLAY_NONCE_CONSUMED
            or keys is None
        ):
            return refusal
        sight = self.look(keys.logical_request_key, None)
        return Refusal(Reason.ATTEMPT_COLLISION, {"decision": decision_of(sight)})


class FewFailuresKept(SqliteStore):
    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        sight = super().look(logical_request_key=logical_request_key, nonce=nonce)
        if sight.verification is None:
            return sight
        return (
            sight
            if _later(self, "registration", "logical_request_key", logical_request_key) < _NEWEST
            else replace(sight, verification=None)
        )


# The status


class StatusWithUnknownMembers(Custody):
    def resolve_status(self, args: Any, *, now: datetime) -> Answer:
        if isinstance(args, dict):
            args = {name: part for name, part in args.items() if name == "logical_request_key"}
        return super().resolve_status(args, now=now)


class StatusOfTheNewest(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        if _later(self.store, "registration", "logical_request_key", key) >= _NEWEST:
            return {"status": "NOT_COMMITTED"}
        return super().status_of(attempt, key)


# Retention


class AuditRememberedByCustody(_AuditRemembered, Custody):
    pass


class MaintenanceByTheFirstProcess(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        """Who did not see the store empty does no retention."""
        due = super().due_tombstones(now=now)
        seen = self.__dict__.setdefault("_empty", not due)
        return due if seen else []


BUGS: Mapping[str, Change] = {
    "issue-told-again-after-a-restart": part(authority=IssueToldAgainAfterARestart),
    "issue-by-the-latest-clock": part(authority=IssueByTheLatestClock),
    "nonces-by-their-number": part(authority=NoncesByTheirNumber),
    "audit-remembered-by-the-authority": part(authority=AuditRememberedByTheAuthority),
    "few-nonces-kept": part(sqlite_store=FewNoncesKept),
    "validated-by-the-first-clock": part(service=ValidatedByTheFirstClock),
    "validated-by-the-latest-clock": part(service=ValidatedByTheLatestClock),
    "targets-of-any-form": part(keys=TargetsOfAnyForm),
    "winner-from-one-table": part(registrar=WinnerFromOneTable),
    "audit-remembered-by-the-registrar": part(registrar=AuditRememberedByTheRegistrar),
    "loser-burns-its-nonce": part(registrar=LoserBurnsItsNonce),
    "attempts-known-here": part(registrar=AttemptsKnownHere),
    "compensation-told-here": part(registrar=CompensationToldHere),
    "compensation-told-for-an-hour": part(registrar=CompensationToldForAnHour),
    "later-compensations-unseen": part(registrar=LaterCompensationsUnseen),
    "spent-nonce-called-collision": part(registrar=SpentNonceCalledCollision),
    "few-failures-kept": part(sqlite_store=FewFailuresKept),
    "status-with-unknown-members": part(custody=StatusWithUnknownMembers),
    "status-of-the-newest": part(custody=StatusOfTheNewest),
    "audit-remembered-by-custody": part(custody=AuditRememberedByCustody),
    "maintenance-by-the-first-process": part(custody=MaintenanceByTheFirstProcess),
}
