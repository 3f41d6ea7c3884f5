"""Bugs about time: freshness, staleness, and how long a consumed record blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.failure import _erase
from holdfast.reference_impl.rs4a_replay.mutants.planting import mutant, value
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row, Sight
from holdfast.reference_impl.rs4a_replay.terms import Identities, Reason, Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator, Verdict


class NeverStale(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        return False


class LastInstantExcluded(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        return now - submission.issued_at >= self._settings.ttl


class FutureAdmitted(Validator):
    def is_from_the_future(self, submission: Submission, *, now: datetime) -> bool:
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
        # "A retry is no new request": the exact retry is answered before its age is looked at.
        if attempt.verdict.submission is not None and isinstance(self.prior_decision(attempt), Accepted):
            return None
        return super().guard_freshness(attempt)


class ConsumedForTtl(Registrar):
    def arrive(self, method: str, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
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


_STALE = "one of its requests is stale"
_AGED = "time passes in its cases, and the consumed key is presented again"

MUTANTS = (
    mutant(
        "never-stale",
        "The time to live is not checked",
        part(validator=NeverStale),
        {"TTL-1": "fail_open", "RP-08": "fail_open", "TTL-2": "fail_open", "TTL-5": "fail_open"},
        also(_STALE, "AUD-1 AUD-2 ID-15 LAYER-1 RP-03b S0-2"),
    ),
    mutant(
        "ttl-in-minutes",
        "The time to live is read in minutes",
        value(lambda settings: replace(settings, ttl=settings.ttl * 60)),
        {"TTL-1": "fail_open", "RP-08": "fail_open"},
        also(_STALE, "AUD-1 AUD-2 ID-15 LAYER-1 RP-03b S0-2 TTL-2 TTL-5"),
    ),
    mutant(
        "last-instant-excluded",
        "A request is stale at the last instant of its time to live",
        part(validator=LastInstantExcluded),
        {"TTL-1": "over_refusal"},
        {
            **also("a history has requests of exactly that age", "RP-03b"),
            **also("its twin is a request of exactly that age", "LAYER-1 RP-08 TTL-2 TTL-5"),
        },
    ),
    mutant(
        "future-admitted",
        "A request from the far future is fresh for longer than its time to live",
        part(validator=FutureAdmitted),
        {"TTL-1": "fail_open"},
    ),
    mutant(
        "stale-erases",
        "A stale copy of a request erases what its key consumed",
        part(registrar=StaleErases),
        {"TTL-2": "state_leak", "RP-08": "state_leak"},
        {
            **also("a stale copy comes before its case looks for what was consumed", "ID-15 RP-03b TTL-5"),
            **also("one of its refusals is of a stale request with a consumed key", "AUD-1 TTL-1"),
        },
    ),
    mutant(
        "blocked-unsaid",
        "A stale request is never told that its key is consumed",
        part(registrar=BlockedUnsaid),
        {"RP-08": "wrong_reason"},
        {
            **also("its stale request has a consumed key, and its case wants to be told", "TTL-2 TTL-5"),
            **also("a history presents consumed keys when they are stale", "RP-03b"),
        },
    ),
    mutant(
        "blocked-always",
        "A stale request is always told that its key is consumed",
        part(registrar=BlockedAlways),
        {"RP-08": "fail_open"},
        {
            **also("its stale request has a new key, and its case wants to be told", "S0-2 TTL-1 TTL-5"),
            **also("a history presents new keys when they are stale", "RP-03b"),
        },
    ),
    mutant(
        "stale-looks-malformed",
        "A stale request is refused as malformed",
        part(registrar=StaleLooksMalformed),
        {"TTL-1": "wrong_reason"},
        also(_STALE, "AUD-1 AUD-2 ID-15 RP-03b RP-08 S0-2 TTL-2 TTL-5"),
    ),
    mutant(
        "stale-retry-admitted",
        "A stale exact retry is answered with the prior decision",
        part(registrar=StaleRetryAdmitted),
        {"RP-08": "fail_open", "TTL-2": "fail_open"},
        also("its stale request is an exact retry", "ID-15 RP-03b TTL-5"),
    ),
    mutant(
        "consumed-for-ttl",
        "A key counts as consumed only while its request is fresh",
        part(registrar=ConsumedForTtl),
        {"TTL-2": "fail_open", "TTL-5": "wrong_reason"},
        also(_AGED, "RP-03b RP-08 TTL-3 TTL-4"),
    ),
    mutant(
        "retention-deletes",
        "The retention job deletes consumed records by the time to live of their requests",
        part(custody=RetentionDeletes),
        {"TTL-3": "fail_open", "TTL-4": "fail_open"},
        also(_AGED, "RP-03b RP-08 TTL-2"),
    ),
    mutant(
        "horizon-deletes",
        "Past the horizon the consumed key is deleted, not kept as a tombstone",
        part(custody=HorizonDeletes),
        {"TTL-4": "fail_open"},
    ),
    mutant(
        "nonce-swept",
        "Past the horizon the consumed nonce is deleted",
        part(custody=NonceSwept),
        {"TTL-4": "fail_open"},
    ),
    mutant(
        "tombstone-frees",
        "A key with a tombstone counts as free",
        part(registrar=TombstoneFrees),
        {"TTL-4": "wrong_reason"},
    ),
    mutant(
        "no-tombstones",
        "Nothing says that a horizon has passed",
        part(custody=NoTombstones),
        {"TTL-4": "over_refusal"},
    ),
    mutant(
        "horizon-is-ttl",
        "Without a configured horizon it is the time to live",
        value(lambda settings: replace(settings, horizon=settings.horizon or settings.ttl)),
        {"TTL-4": "fail_open"},
        also("a history that runs the job after a while has no tombstone", "RP-03b"),
    ),
)
