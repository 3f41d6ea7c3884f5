"""Bugs in Phase 3: what is one transaction, who wins a race, and what a retry is told."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from reference_impl.answers import Accepted, Answer, Effect
from reference_impl.instants import format_instant
from reference_impl.mutants.rs4a_replay.planting import mutant, part, unique
from reference_impl.rs4a_replay.admission import Attempt, Refusal, Rule, decision_of
from reference_impl.rs4a_replay.custody import Custody
from reference_impl.rs4a_replay.postgres_store import PostgresStore
from reference_impl.rs4a_replay.registrar import Registrar
from reference_impl.rs4a_replay.sqlite_store import SqliteStore
from reference_impl.rs4a_replay.stoppoints import StopPoints
from reference_impl.rs4a_replay.store import (
    Committed,
    CommitUncertainError,
    Conflict,
    Consumption,
    Insert,
    RolledBackError,
    StoreError,
)
from reference_impl.rs4a_replay.terms import Purpose, Reason
from reference_impl.rs4a_replay.validator import Verdict


class NonceConsumedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        self.store.append("nonce_consume", [consumed.row])
        answer = self.transact(attempt, [effect], self._stops)
        return self.verify(attempt, effect.row, answer.durable) if isinstance(answer, Committed) else answer


class EffectCommittedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        answer = self.transact(attempt, [effect], self._stops)
        if isinstance(answer, Committed):
            self.store.append("nonce_consume", [consumed.row])
            return self.verify(attempt, effect.row, answer.durable)
        return answer


class ConsumedOnArrival(Registrar):
    def guard_shape(self, attempt: Attempt) -> Refusal | None:
        verdict = attempt.verdict
        if attempt.method == "register" and verdict.keys is not None and attempt.sight.consume is None:
            # A pending row, so that nobody else can come in between.
            self.store.append("nonce_consume", [self.consume_row(attempt, verdict.keys, Purpose.REGISTRATION)])
        return super().guard_shape(attempt)


class UncertainIsFailed(Registrar):
    def transact(self, attempt: Attempt, inserts: Sequence[Insert], stops: StopPoints) -> Answer | Committed:
        try:
            outcome = self.store.consume(inserts, stops)
        except (RolledBackError, CommitUncertainError) as error:
            return self.refuse(attempt, Refusal(Reason.COMMIT_FAILED, detail=str(error)))
        return outcome if isinstance(outcome, Committed) else self.refuse(attempt, self.lost_race(attempt))


class FailureIsSuccess(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        inserts = self.effect_rows(attempt)
        try:
            outcome = self.store.consume(inserts, self._stops)
        except StoreError:
            outcome = Committed(None)
        if isinstance(outcome, Conflict):
            return self.refuse(attempt, self.lost_race(attempt))
        sight = replace(attempt.sight, registration=inserts[1].row)
        return Accepted(Effect.NEW, {"decision": decision_of(sight), "replayed": False})


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
    def consume(self, inserts: Sequence[Insert], stops: StopPoints) -> Consumption:
        probe = self._database.connection()
        self._database.be_patient(0)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        except Exception:
            return Conflict()
        return super().consume(inserts, stops)


class SerializationIsSuccess(PostgresStore):
    def consume(self, inserts: Sequence[Insert], stops: StopPoints) -> Consumption:
        self._settings = replace(self._settings, serialization_retries=0)
        try:
            return super().consume(inserts, stops)
        except RolledBackError as error:
            if "concurrent" in str(error):
                return Committed(inserts[-1].row)
            raise


class NothingAwaited(PostgresStore):
    def insert_statement(self, insert: Insert) -> str:
        # "Someone else has the key" is decided by a look, before that one's outcome is known.
        statement = super().insert_statement(insert)
        names, _, rest = statement.partition(" VALUES (")
        values, _, tail = rest.partition(")")
        return f"{names} SELECT {values} WHERE pg_try_advisory_xact_lock(4711) {tail}"


class CommitLeftToBackground(PostgresStore):
    synchronous_commit = "off"


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


_TWO_STEPS = "two transactions for one effect show in every clause about rollback"

MUTANTS = (
    mutant(
        "nonce-consumed-first",
        "The nonce is consumed in a transaction of its own, before the registration",
        part(registrar=NonceConsumedFirst),
        {"S1-1": "lost_durability", "S2-3": "lost_durability", "RP-06": "state_leak", "S4-4": "fail_open"},
        {"S1-3": _TWO_STEPS, "S1-2": _TWO_STEPS, "S4-2": _TWO_STEPS, "AUD-1": _TWO_STEPS},
    ),
    mutant(
        "effect-committed-first",
        "The registration is committed first, the nonce consumed afterwards",
        part(registrar=EffectCommittedFirst),
        {"S2-3": "lost_durability"},
        {"S4-5": _TWO_STEPS, "S1-1": _TWO_STEPS, "S1-2": _TWO_STEPS},
    ),
    mutant(
        "consumed-on-arrival",
        "The nonce is consumed when the request arrives, whatever becomes of it",
        part(registrar=ConsumedOnArrival),
        {"S0-2": "state_leak", "S4-4": "fail_open"},
    ),
    mutant(
        "uncertain-is-failed",
        "A commit whose answer was lost is reported as failed",
        part(registrar=UncertainIsFailed),
        {"S1-2": "over_refusal"},
    ),
    mutant(
        "failure-is-success",
        "A transaction that failed is reported as accepted",
        part(registrar=FailureIsSuccess),
        {"S1-1": "fail_open"},
    ),
    mutant(
        "status-guessed",
        "What cannot be seen yet is resolved as NOT_COMMITTED, while its commit is under way",
        part(custody=StatusGuessed),
        {"S1-2": "fail_open"},
    ),
    mutant(
        "status-without-decision",
        "The status of a committed request comes without its decision",
        part(custody=StatusWithoutDecision),
        {"S1-2": "wrong_reason"},
    ),
    mutant(
        "retry-refused",
        "An exact retry is refused like any other reuse of its nonce",
        part(registrar=RetryRefused),
        {"RP-05": "over_refusal", "S2-2": "over_refusal", "RP-03b": "over_refusal"},
    ),
    mutant(
        "retry-recomputed",
        "An exact retry gets a freshly computed decision",
        part(registrar=RetryRecomputed),
        {"S2-2": "lost_durability", "RP-05": "lost_durability"},
    ),
    mutant(
        "retry-looks-new",
        "An exact retry is answered as if it took effect now",
        part(registrar=RetryLooksNew),
        {"S2-2": "fail_open", "RP-05": "fail_open"},
    ),
    mutant(
        "retry-bound-to-attempt",
        "Only the attempt that registered gets its decision back",
        part(registrar=RetryBoundToAttempt),
        {"RP-01": "wrong_reason"},
    ),
    mutant(
        "retry-bound-to-window",
        "A retry gets its decision only while the nonce's window is open",
        part(registrar=RetryBoundToWindow),
        {"RP-05": "over_refusal"},
    ),
    mutant(
        "nonce-before-key",
        "The nonce is judged before the consumed key is looked up",
        part(registrar=NonceBeforeKey),
        {"S0-1": "wrong_reason", "RP-05": "over_refusal"},
    ),
    mutant(
        "duplicate-left-to-insert",
        "A consumed key is noticed only by the insert, so every duplicate looks like a collision",
        part(registrar=DuplicateLeftToInsert),
        {"RP-02": "wrong_reason", "LAYER-2": "fail_open", "ID-5": "wrong_reason"},
    ),
    mutant(
        "consumed-is-accepted-again",
        "Where the validator says valid, a consumed key is accepted as a new effect",
        part(registrar=ValidatorBelieved),
        {"LAYER-2": "fail_open", "RP-02": "fail_open", "ID-5": "fail_open"},
    ),
    mutant(
        "collision-untold",
        "The loser of a race does not learn of the winner's decision",
        part(registrar=CollisionUntold),
        {"S4-1": "wrong_reason"},
    ),
    mutant(
        "collision-is-failure",
        "The loser of a race is told that its commit failed, and to send it again",
        part(registrar=CollisionIsDuplicate),
        {"RP-09": "wrong_reason", "S4-1": "wrong_reason"},
    ),
    mutant(
        "rival-not-awaited",
        "An attempt that finds the store locked gives up before the other's outcome is known",
        part(sqlite_store=RivalNotAwaited),
        {"S4-2": "over_refusal"},
    ),
    mutant(
        "serialization-is-success",
        "A serialization failure is reported as success",
        part(postgres_store=SerializationIsSuccess),
        {"S4-3": "fail_open"},
        store="postgres",
    ),
    mutant(
        "collision-decided-early",
        "Whether somebody else has the key is decided before that one's outcome is known",
        part(postgres_store=NothingAwaited),
        {"S4-2": "over_refusal"},
        store="postgres",
    ),
    mutant(
        "commit-left-to-background",
        "synchronous_commit is off: what was acknowledged may be gone after a crash of the database",
        part(postgres_store=CommitLeftToBackground),
        {"S2-1": "lost_durability"},
        store="postgres",
    ),
    mutant(
        "key-unique-with-attempt",
        "The store has UNIQUE(logical_request_key, attempt_id): two attempts at once both commit",
        unique("registration", {"logical_request_key_unique": ("logical_request_key", "attempt_id")}),
        {"RP-09": "fail_open", "S4-1": "fail_open", "ID-11": "fail_open"},
    ),
    mutant(
        "key-unique-with-nonce",
        "One UNIQUE(logical_request_key, authorization_nonce) is to cover both axes",
        unique("registration", {"logical_request_key_unique": ("logical_request_key", "authorization_nonce")}),
        {"ID-11": "fail_open", "RP-09": "fail_open"},
    ),
    mutant(
        "only-replay-key-unique",
        "Only UNIQUE(replay_key) is enforced, and it changes with every run",
        unique("registration", {"replay_key_unique": ("replay_key",)}),
        {"ID-11": "fail_open", "RP-09": "fail_open"},
    ),
    mutant(
        "effect-active",
        "The registration is written active, not inert",
        part(registrar=ActiveEffect),
        {"S2-1": "over_refusal"},
    ),
)
