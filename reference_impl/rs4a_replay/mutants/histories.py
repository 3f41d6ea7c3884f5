"""Bugs that one call does not show: beside the main operation, in another process, after a while, after many keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.instants import format_instant, parse_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, Rule
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.dependence import made_anew
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Committed, Insert, RolledBackError, Row, Sight
from holdfast.reference_impl.rs4a_replay.terms import Identities, Operation, Reason
from holdfast.reference_impl.rs4a_replay.validator import Verdict

# Both less than a history of many keys has wherever it runs.
_REMEMBERED = 200
_BATCH = 200


class CompensationWindowUnchecked(Registrar):
    def compensation_rules(self) -> Sequence[Rule]:
        return [rule for rule in super().compensation_rules() if rule != self.guard_nonce_window]


class CompensationArtifactUnchecked(Registrar):
    def guard_artifact(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.method is Operation.COMPENSATE else super().guard_artifact(attempt)


class CompensationFromTheFuture(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        submission = attempt.verdict.submission
        if attempt.method is Operation.COMPENSATE and submission is not None and submission.issued_at > attempt.now:
            return None
        return super().guard_freshness(attempt)


class CompensationInTwoSteps(Registrar):
    def transact(self, attempt: Attempt, inserts: Sequence[Insert]) -> Answer | Committed:
        if attempt.method is Operation.COMPENSATE:
            consumed, *inserts = inserts
            try:
                self.store.append([Insert("nonce_consume", consumed.row)])
            except RolledBackError:
                return self.refuse(attempt, self.lost_race(attempt))
        return super().transact(attempt, inserts)


class DecisionsKept(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        prior = super().prior_decision(attempt)
        if prior is None:
            return None
        kept: dict[str, Accepted] = self.__dict__.setdefault("_kept", {})
        return kept.setdefault(prior.value["decision"]["decision_id"], prior)


class StatusKept(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        kept: dict[str, dict[str, Any]] = self.__dict__.setdefault("_kept", {})
        return kept.setdefault(key, super().status_of(attempt, key))


class MaintenanceMakesStore(Custody):
    def maintain(self, *, now: datetime) -> Answer:
        if isinstance(self._ports.store, SqliteStore):
            made_anew(self._ports.store)
        return super().maintain(now=now)


class RetryForADay(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        row = attempt.sight.registration
        if row is not None and parse_instant(str(row["committed_at"])) + timedelta(days=1) < attempt.now:
            return None
        return super().prior_decision(attempt)


class LaterRowsUnseen(Registrar):
    def arrive(self, method: Operation, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
        attempt = super().arrive(method, verdict, identities, now=now)
        row = attempt.sight.registration
        # The same as WHERE committed_at <= now.
        if row is None or parse_instant(str(row["committed_at"])) <= now:
            return attempt
        return replace(attempt, sight=replace(attempt.sight, registration=None, verification=None))


class FewRemembered(SqliteStore):
    def _sight(self, connection: sqlite3.Connection, key: str | None, nonce: str | None) -> Sight:
        sight = super()._sight(connection, key, nonce)
        if sight.registration is None:
            return sight
        (later,) = connection.execute(
            "SELECT count(*) FROM registration WHERE rowid > (SELECT rowid FROM registration WHERE decision_id = ?)",
            (sight.registration["decision_id"],),
        ).fetchone()
        return sight if later < _REMEMBERED else Sight(sight.surface, issue=sight.issue, consume=sight.consume)


class OneBatchOfTombstones(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        return super().due_tombstones(now=now)[:_BATCH]


class HorizonInWholeSeconds(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        rounded = (now + timedelta(seconds=1)).replace(microsecond=0)
        return [{**row, "recorded_at": format_instant(now)} for row in super().due_tombstones(now=rounded)]


class CompensationForTwoHours(Registrar):
    def guard_failed_registration(self, attempt: Attempt) -> Refusal | None:
        row = attempt.sight.registration
        if row is not None and attempt.now - parse_instant(str(row["committed_at"])) > timedelta(hours=2):
            return Refusal(Reason.NOTHING_TO_COMPENSATE)
        return super().guard_failed_registration(attempt)


class BindingEscaped(Authority):
    def issue_row(self, args: Any, *, now: datetime) -> Row:
        row = super().issue_row(args, now=now)
        # As encoding/json of Go writes a text.
        return {**row, "binding": str(row["binding"]).replace("&", "\\u0026")}


BUGS: Mapping[str, Change] = {
    "compensation-window-unchecked": part(registrar=CompensationWindowUnchecked),
    "compensation-artifact-unchecked": part(registrar=CompensationArtifactUnchecked),
    "compensation-from-the-future": part(registrar=CompensationFromTheFuture),
    "compensation-in-two-steps": part(registrar=CompensationInTwoSteps),
    "decisions-kept-by-a-process": part(registrar=DecisionsKept),
    "status-kept-by-a-process": part(custody=StatusKept),
    "maintenance-makes-the-store": part(custody=MaintenanceMakesStore),
    "retry-for-a-day": part(registrar=RetryForADay),
    "compensation-for-two-hours": part(registrar=CompensationForTwoHours),
    "binding-escaped": part(authority=BindingEscaped),
    "later-rows-unseen": part(registrar=LaterRowsUnseen),
    "few-remembered": part(sqlite_store=FewRemembered),
    "one-batch-of-tombstones": part(custody=OneBatchOfTombstones),
    "horizon-in-whole-seconds": part(custody=HorizonInWholeSeconds),
}
