"""Bugs in Phase 3: the limits of the transaction, the winner of a race, and the answer to a retry."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, Rule, decision_of
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.values import unique
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    Committed,
    CommitUncertainError,
    Conflict,
    Insert,
    RolledBackError,
    Sight,
    StoreError,
)
from holdfast.reference_impl.rs4a_replay.terms import Identities, Operation, Purpose, Reason, SurfaceState
from holdfast.reference_impl.rs4a_replay.validator import Verdict


class NonceConsumedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        try:
            self.store.append([Insert("nonce_consume", consumed.row)])
        except RolledBackError:
            return self.refuse(attempt, self.lost_race(attempt))
        answer = self.transact(attempt, [effect])
        return self.verify(attempt, effect.row, answer.durable) if isinstance(answer, Committed) else answer


class EffectCommittedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        answer = self.transact(attempt, [effect])
        if isinstance(answer, Committed):
            # It ignores the outcome of the second transaction.
            with contextlib.suppress(StoreError):
                self.store.append([Insert("nonce_consume", consumed.row)])
            return self.verify(attempt, effect.row, answer.durable)
        return answer


class ConsumedOnArrival(Registrar):
    def refuse(self, attempt: Attempt, refusal: Refusal) -> Answer:
        keys, there = attempt.verdict.keys, attempt.sight.surface.state is SurfaceState.PRESENT_UNPROVEN
        if attempt.method is Operation.REGISTER and keys is not None and there and attempt.sight.consume is None:
            # It does not remove the row that kept the nonce for this request during the decision.
            with contextlib.suppress(StoreError):
                self.store.append([Insert("nonce_consume", self.consume_row(attempt, keys, Purpose.REGISTRATION))])
        return super().refuse(attempt, refusal)


class UncertainIsFailed(Registrar):
    def transact(self, attempt: Attempt, inserts: Sequence[Insert]) -> Answer | Committed:
        try:
            outcome = self.store.consume(inserts)
        except (RolledBackError, CommitUncertainError) as error:
            return self.refuse(attempt, Refusal(Reason.COMMIT_FAILED, detail=str(error)))
        return outcome if isinstance(outcome, Committed) else self.refuse(attempt, self.lost_race(attempt))


class FailureIsSuccess(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        inserts = self.effect_rows(attempt)
        try:
            outcome = self.store.consume(inserts)
        except StoreError:
            outcome = Committed(inserts[-1].row)
        if isinstance(outcome, Conflict):
            return self.refuse(attempt, self.lost_race(attempt))
        return self.verify(attempt, inserts[-1].row, outcome.durable)


class StatusGuessed(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, object]:
        if attempt.sight.registration is None:
            return {"status": "NOT_COMMITTED"}
        return super().status_of(attempt, key)


class StatusWithoutDecision(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, object]:
        return {"status": super().status_of(attempt, key)["status"]}


class RetryRefused(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        return None


class RetryRecomputed(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        prior = super().prior_decision(attempt)
        if prior is None:
            return None
        fresh = {**prior.value["decision"], "decision_id": f"decision-{uuid.uuid4().hex}"}
        return Accepted(Effect.PRIOR, {"decision": fresh, "replayed": True})


class RetryLooksNew(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        prior = super().prior_decision(attempt)
        return None if prior is None else Accepted(Effect.NEW, {**prior.value, "replayed": False})


class RetryBoundToAttempt(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        assert attempt.verdict.submission is not None
        row = attempt.sight.registration
        if row is not None and row["attempt_id"] != attempt.verdict.submission.attempt_id:
            return None
        return super().prior_decision(attempt)


class RetryBoundToWindow(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        if self.guard_nonce_window(attempt) is not None:
            return None
        return super().prior_decision(attempt)


class NonceBeforeKey(Registrar):
    def registration_rules(self) -> Sequence[Rule]:
        return (*self.nonce_rules(), *super().registration_rules())


class ArrivalRemembered(Registrar):
    def arrive(self, method: Operation, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
        attempt = super().arrive(method, verdict, identities, now=now)
        store, key = self._ports.store, identities.logical_request_key
        if not isinstance(store, SqliteStore) or attempt.sight.surface.state is not SurfaceState.PRESENT_UNPROVEN:
            return attempt
        # Its own writes cause a new read; writes of other processes do not.
        own = store._database.connection().total_changes
        memory: dict[tuple[str | None, int], Sight] = self.__dict__.setdefault("_memory", {})
        seen = memory.setdefault((key, own), attempt.sight)
        return replace(attempt, sight=replace(seen, issue=attempt.sight.issue, consume=attempt.sight.consume))


class DuplicateLeftToInsert(Registrar):
    def guard_consumed_key(self, attempt: Attempt) -> Refusal | None:
        return None


class CollisionUntold(Registrar):
    def lost_race(self, attempt: Attempt) -> Refusal:
        return replace(super().lost_race(attempt), data=None)


class CollisionIsDuplicate(Registrar):
    def lost_race(self, attempt: Attempt) -> Refusal:
        found = super().lost_race(attempt)
        return Refusal(Reason.COMMIT_FAILED) if found.reason is Reason.ATTEMPT_COLLISION else found


class RivalNotAwaited(SqliteStore):
    def _begin(self) -> sqlite3.Connection:
        connection = self._database.connection()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise sqlite3.IntegrityError("another worker is writing, so another worker was first") from error
        return connection


class ActiveEffect(Registrar):
    def effect_rows(self, attempt: Attempt) -> tuple[Insert, Insert]:
        consumed, effect = super().effect_rows(attempt)
        return consumed, replace(
            effect, row={**effect.row, "committed_at": format_instant(attempt.now), "inert": False}
        )


class ValidatorBelieved(Registrar):
    def judge(self, attempt: Attempt, rules: Sequence[Rule]) -> Refusal | Accepted | None:
        trusted = Verdict(None, attempt.verdict.submission, attempt.verdict.keys)
        if attempt.verdict == trusted and attempt.sight.registration is not None:
            return Accepted(Effect.NEW, {"decision": decision_of(attempt.sight), "replayed": False})
        return super().judge(attempt, rules)


BUGS: Mapping[str, Change] = {
    "nonce-consumed-first": part(registrar=NonceConsumedFirst),
    "effect-committed-first": part(registrar=EffectCommittedFirst),
    "consumed-on-arrival": part(registrar=ConsumedOnArrival),
    "uncertain-is-failed": part(registrar=UncertainIsFailed),
    "failure-is-success": part(registrar=FailureIsSuccess),
    "status-guessed": part(custody=StatusGuessed),
    "status-without-decision": part(custody=StatusWithoutDecision),
    "retry-refused": part(registrar=RetryRefused),
    "retry-recomputed": part(registrar=RetryRecomputed),
    "retry-looks-new": part(registrar=RetryLooksNew),
    "retry-bound-to-attempt": part(registrar=RetryBoundToAttempt),
    "retry-bound-to-window": part(registrar=RetryBoundToWindow),
    "nonce-before-key": part(registrar=NonceBeforeKey),
    "duplicate-left-to-insert": part(registrar=DuplicateLeftToInsert),
    "arrival-remembered": part(registrar=ArrivalRemembered),
    "consumed-is-accepted-again": part(registrar=ValidatorBelieved),
    "collision-untold": part(registrar=CollisionUntold),
    "collision-is-failure": part(registrar=CollisionIsDuplicate),
    "rival-not-awaited": part(sqlite_store=RivalNotAwaited),
    "key-unique-with-attempt": unique(
        "registration", {"logical_request_key_unique": ("logical_request_key", "attempt_id")}
    ),
    "key-unique-with-nonce": unique(
        "registration", {"logical_request_key_unique": ("logical_request_key", "authorization_nonce")}
    ),
    "only-replay-key-unique": unique("registration", {"replay_key_unique": ("replay_key",)}),
    "effect-active": part(registrar=ActiveEffect),
}
