"""Bugs about time: freshness, staleness, and how long a consumed record blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.planting import Change, part, value
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.failure import _erase
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row, Sight
from holdfast.reference_impl.rs4a_replay.terms import Identities, Operation, Reason, Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator, Verdict

_USUAL_SKEW = timedelta(seconds=30)


class NeverStale(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        return False


class LastInstantExcluded(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        return now - submission.issued_at >= self._settings.ttl


class FutureAdmitted(Validator):
    def is_from_the_future(self, submission: Submission, *, now: datetime) -> bool:
        return False


class AgesInNanoseconds(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        return _nanoseconds(now - submission.issued_at) > _nanoseconds(self._settings.ttl)


def _nanoseconds(span: timedelta) -> int:
    return (span // timedelta(microseconds=1) * 1000 + 2**63) % 2**64 - 2**63


class NoSkewIsUsual(Validator):
    def is_from_the_future(self, submission: Submission, *, now: datetime) -> bool:
        return submission.issued_at - now > (self._settings.clock_skew or _USUAL_SKEW)


class ValidatedIsFresh(Validator):
    _fresh: ClassVar[set[Submission]] = set()

    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        if submission not in self._fresh and super().is_stale(submission, now=now):
            return True
        self._fresh.add(submission)
        return False


class StaleErases(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        refusal = super().guard_freshness(attempt)
        row = attempt.sight.registration
        if refusal is not None and row is not None:
            _erase(self.store, "registration", "decision_id", row["decision_id"])
            _erase(self.store, "nonce_consume", "authorization_nonce", row["authorization_nonce"])
        return refusal


class BlockedUnsaid(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        refusal = super().guard_freshness(attempt)
        return None if refusal is None else Refusal(refusal.reason, {"replay_blocked": False})


class BlockedAlways(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        refusal = super().guard_freshness(attempt)
        return None if refusal is None else Refusal(refusal.reason, {"replay_blocked": True})


class StaleRetryAdmitted(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        # "A retry is no new request": the exact retry is answered before its age is checked.
        if attempt.verdict.submission is not None and isinstance(self.prior_decision(attempt), Accepted):
            return None
        return super().guard_freshness(attempt)


class ConsumedForTtl(Registrar):
    def arrive(self, method: Operation, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
        attempt = super().arrive(method, verdict, identities, now=now)
        row = attempt.sight.registration
        if row is None or parse_instant(str(row["committed_at"])) + self._settings.ttl >= now:
            return attempt
        return replace(attempt, sight=replace(attempt.sight, registration=None, verification=None, consume=None))


class TombstoneFrees(Registrar):
    def look(self, key: str | None, nonce: str | None) -> Sight:
        sight = super().look(key, nonce)
        row = sight.registration
        if row is None or any(row["decision_id"] == each["decision_id"] for each in self.store.untombstoned()):
            return sight
        return replace(sight, registration=None, consume=None)


class RetentionDeletes(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        for row in self.store.untombstoned():
            if parse_instant(str(row["committed_at"])) + self._settings.ttl <= now:
                _erase(self.store, "registration", "decision_id", row["decision_id"])
                _erase(self.store, "nonce_consume", "authorization_nonce", row["authorization_nonce"])
        return super().due_tombstones(now=now)


class HorizonDeletes(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        due = super().due_tombstones(now=now)
        for row in due:
            _erase(self.store, "registration", "decision_id", row["decision_id"])
        return due


class NonceSwept(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        due = super().due_tombstones(now=now)
        for row in due:
            _erase(self.store, "nonce_consume", "logical_request_key", row["logical_request_key"])
        return due


class NoTombstones(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        return []


class StaleLooksMalformed(Registrar):
    def guard_freshness(self, attempt: Attempt) -> Refusal | None:
        return None if super().guard_freshness(attempt) is None else Refusal(Reason.REQUEST_MALFORMED)


BUGS: Mapping[str, Change] = {
    "ages-in-nanoseconds": part(validator=AgesInNanoseconds),
    "no-skew-is-the-usual-skew": part(validator=NoSkewIsUsual),
    "validated-is-fresh": part(validator=ValidatedIsFresh),
    "never-stale": part(validator=NeverStale),
    "ttl-in-minutes": value(lambda settings: replace(settings, ttl=settings.ttl * 60)),
    "last-instant-excluded": part(validator=LastInstantExcluded),
    "future-admitted": part(validator=FutureAdmitted),
    "stale-erases": part(registrar=StaleErases),
    "blocked-unsaid": part(registrar=BlockedUnsaid),
    "blocked-always": part(registrar=BlockedAlways),
    "stale-looks-malformed": part(registrar=StaleLooksMalformed),
    "stale-retry-admitted": part(registrar=StaleRetryAdmitted),
    "consumed-for-ttl": part(registrar=ConsumedForTtl),
    "retention-deletes": part(custody=RetentionDeletes),
    "horizon-deletes": part(custody=HorizonDeletes),
    "nonce-swept": part(custody=NonceSwept),
    "tombstone-frees": part(registrar=TombstoneFrees),
    "no-tombstones": part(custody=NoTombstones),
    "horizon-is-ttl": value(lambda settings: replace(settings, horizon=settings.horizon or settings.ttl)),
}
