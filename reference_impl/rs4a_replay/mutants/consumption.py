"""Bugs in Phase 3: what is one transaction, who wins a race, and what a retry is told."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, Rule, decision_of
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.planting import mutant, unique
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresStore
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.sqlite_store import READ_PATIENCE_S, SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    Committed,
    CommitUncertainError,
    Conflict,
    Consumption,
    Insert,
    RolledBackError,
    Sight,
    StoreError,
)
from holdfast.reference_impl.rs4a_replay.terms import Identities, Purpose, Reason, SurfaceState
from holdfast.reference_impl.rs4a_replay.validator import Verdict


class NonceConsumedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        try:
            self.store.append("nonce_consume", [consumed.row])
        except RolledBackError:
            return self.refuse(attempt, self.lost_race(attempt))
        answer = self.transact(attempt, [effect])
        return self.verify(attempt, effect.row, answer.durable) if isinstance(answer, Committed) else answer


class EffectCommittedFirst(Registrar):
    def consume(self, attempt: Attempt) -> Answer:
        consumed, effect = self.effect_rows(attempt)
        answer = self.transact(attempt, [effect])
        if isinstance(answer, Committed):
            # Whether the second transaction went well is nobody's concern.
            with contextlib.suppress(StoreError):
                self.store.append("nonce_consume", [consumed.row])
            return self.verify(attempt, effect.row, answer.durable)
        return answer


class ConsumedOnArrival(Registrar):
    def refuse(self, attempt: Attempt, refusal: Refusal) -> Answer:
        keys, there = attempt.verdict.keys, attempt.sight.surface.state is SurfaceState.PRESENT_UNPROVEN
        if attempt.method == "register" and keys is not None and there and attempt.sight.consume is None:
            # The row that kept the nonce for this request while it was decided is not taken back.
            with contextlib.suppress(StoreError):
                self.store.append("nonce_consume", [self.consume_row(attempt, keys, Purpose.REGISTRATION)])
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
    def arrive(self, method: str, verdict: Verdict, identities: Identities, *, now: datetime) -> Attempt:
        attempt = super().arrive(method, verdict, identities, now=now)
        store, key = self._ports.store, identities.logical_request_key
        if not isinstance(store, SqliteStore) or attempt.sight.surface.state is not SurfaceState.PRESENT_UNPROVEN:
            return attempt
        # What this process wrote itself makes it look again; what others wrote does not.
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
        self._database.be_patient(0)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise sqlite3.IntegrityError("somebody is writing, so somebody was first") from error
        finally:
            self._database.be_patient(READ_PATIENCE_S)
        return connection


class SerializationIsSuccess(PostgresStore):
    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        self._settings = replace(self._settings, serialization_retries=0)
        try:
            return super().consume(inserts)
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
_EXACT_RETRY = "one of its requests is an exact retry, or follows a winner that has the same nonce"
_TWIN_RETRIES = "the twin of one of its cases is an exact retry"
_LOSER = "one of its attempts loses a race"
_BURNT = "a refused request has consumed its nonce, and that shows wherever a refusal is due"
_TOLD_OTHERWISE = "a duplicate of its cases is told as a collision, or as unbound"
_ACCEPTED_AGAIN = "one of its requests has a consumed key, and is accepted"
_NOTHING_REGISTERED = "the store's own check takes no row that is not inert, so nothing is registered at all"
_BOTH_COMMIT = "its rivals bring nonces of their own, and more than one of them commits"

MUTANTS = (
    mutant(
        "nonce-consumed-first",
        "The nonce is consumed in a transaction of its own, before the registration",
        part(registrar=NonceConsumedFirst),
        {"S1-1": "lost_durability", "S2-3": "lost_durability", "RP-06": "state_leak", "S4-4": "fail_open"},
        {
            "S1-3": _TWO_STEPS,
            "S1-2": _TWO_STEPS,
            "S4-2": _TWO_STEPS,
            "AUD-1": _TWO_STEPS,
            **also(_TWO_STEPS, "GATE-2 LAYER-2 S2-1"),
            **also(
                "the loser of a race has consumed its nonce, or finds it consumed before there is a winner",
                "RP-09 S4-1 S4-3 S4-5",
            ),
        },
        faults={"kill": "lost_durability"},
    ),
    mutant(
        "effect-committed-first",
        "The registration is committed first, the nonce consumed afterwards",
        part(registrar=EffectCommittedFirst),
        {"S2-3": "lost_durability"},
        {
            "S4-5": _TWO_STEPS,
            "S1-1": _TWO_STEPS,
            "S1-2": _TWO_STEPS,
            **also(_TWO_STEPS, "AUD-1 LAYER-2 RP-06 S2-1"),
        },
        faults={"kill": "lost_durability"},
    ),
    mutant(
        "consumed-on-arrival",
        "The nonce is consumed when the request arrives, whatever becomes of it",
        part(registrar=ConsumedOnArrival),
        {"S0-2": "state_leak", "S4-4": "fail_open"},
        {
            **also(_BURNT, "AUD-1 AUD-2 GATE-2 GATE-4 ID-1 ID-2 ID-3 ID-4 ID-5 ID-8 ID-9 ID-10 ID-13 ID-15"),
            **also(_BURNT, "LAYER-1 LAYER-2 RP-01 RP-02 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1 S1-1"),
            **also(_BURNT, "S1-2 S2-1 S3-3 S4-1 S4-3 TTL-1 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "uncertain-is-failed",
        "A commit whose answer was lost is reported as failed",
        part(registrar=UncertainIsFailed),
        {"S1-2": "over_refusal"},
        also("the commit of its case is one whose answer is lost", "S2-1"),
    ),
    mutant(
        "failure-is-success",
        "A transaction that failed is reported as accepted",
        part(registrar=FailureIsSuccess),
        {"S1-1": "fail_open"},
        also("a transaction of its cases fails, and is told as accepted", "AUD-1 GATE-2 LAYER-2 RP-06 S1-2 S2-1"),
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
        also(
            "its cases ask for the status of a committed request, with its decision",
            "AUD-2 GATE-2 RP-03b RP-06 RP-08 RP-09 S2-1 S2-2 S3-2",
        ),
    ),
    mutant(
        "retry-refused",
        "An exact retry is refused like any other reuse of its nonce",
        part(registrar=RetryRefused),
        {"RP-05": "over_refusal", "S2-2": "over_refusal", "RP-03b": "over_refusal"},
        {
            **also(_EXACT_RETRY, "AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-10 ID-13 LAYER-2 RP-01 RP-06 RP-08 RP-09 S1-1"),
            **also(_EXACT_RETRY, "S1-2 S2-1 S3-2 S4-1 S4-2 S4-3 TTL-2 TTL-4 TTL-5"),
            **also(_TWIN_RETRIES, "ID-4 S0-1 TTL-3"),
        },
    ),
    mutant(
        "retry-recomputed",
        "An exact retry gets a freshly computed decision",
        part(registrar=RetryRecomputed),
        {"S2-2": "lost_durability", "RP-05": "lost_durability"},
        {
            **also(_EXACT_RETRY, "AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-10 ID-13 LAYER-2 RP-01 RP-03b RP-06 RP-08 RP-09"),
            **also(_EXACT_RETRY, "S1-1 S1-2 S2-1 S3-2 S4-1 S4-2 S4-3 TTL-2 TTL-4 TTL-5"),
            **also(_TWIN_RETRIES, "ID-4 S0-1 TTL-3"),
        },
    ),
    mutant(
        "retry-looks-new",
        "An exact retry is answered as if it took effect now",
        part(registrar=RetryLooksNew),
        {"S2-2": "fail_open", "RP-05": "fail_open"},
        {
            **also(_EXACT_RETRY, "AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-10 ID-13 LAYER-2 RP-01 RP-03b RP-06 RP-08 RP-09"),
            **also(_EXACT_RETRY, "S1-1 S1-2 S2-1 S3-2 S4-1 S4-2 S4-3 TTL-2 TTL-4 TTL-5"),
            **also(_TWIN_RETRIES, "ID-4 S0-1 TTL-3"),
        },
    ),
    mutant(
        "retry-bound-to-attempt",
        "Only the attempt that registered gets its decision back",
        part(registrar=RetryBoundToAttempt),
        {"RP-01": "wrong_reason"},
        also("another attempt with the winner's nonce follows the winner, and is refused", "RP-03b RP-09 S4-1 S4-3"),
    ),
    mutant(
        "retry-bound-to-window",
        "A retry gets its decision only while the nonce's window is open",
        part(registrar=RetryBoundToWindow),
        {"RP-05": "over_refusal"},
        also("an exact retry of its cases comes when the window has closed", "RP-03b TTL-3 TTL-4"),
    ),
    mutant(
        "nonce-before-key",
        "The nonce is judged before the consumed key is looked up",
        part(registrar=NonceBeforeKey),
        {"S0-1": "wrong_reason", "RP-05": "over_refusal"},
        {
            **also(_EXACT_RETRY, "AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-10 ID-13 LAYER-2 RP-01 RP-03b RP-06 RP-08 RP-09"),
            **also(_EXACT_RETRY, "S1-1 S1-2 S2-1 S2-2 S3-2 S4-1 S4-2 S4-3 TTL-2 TTL-4 TTL-5"),
            **also(_TWIN_RETRIES, "ID-4 TTL-3"),
            **also("its copies of a consumed request bring nonces that were never issued", "ID-5"),
        },
    ),
    mutant(
        "duplicate-left-to-insert",
        "A consumed key is noticed only by the insert, so every duplicate looks like a collision",
        part(registrar=DuplicateLeftToInsert),
        {"RP-02": "wrong_reason", "LAYER-2": "fail_open", "ID-5": "wrong_reason"},
        {
            **also(_TOLD_OTHERWISE, "AUD-1 AUD-2 GATE-2 GATE-4 ID-3 ID-10 ID-13 ID-15 LAYER-1 RP-01 RP-03b S0-1"),
            **also(_TOLD_OTHERWISE, "S4-4 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "arrival-remembered",
        "A process goes by what it saw of a key before, until it writes something itself",
        part(registrar=ArrivalRemembered),
        {"RP-02": "wrong_reason"},
        also("copies of its request meet in two processes, and one of them looks twice", "RP-09 S4-3"),
    ),
    mutant(
        "consumed-is-accepted-again",
        "Where the validator says valid, a consumed key is accepted as a new effect",
        part(registrar=ValidatorBelieved),
        {"LAYER-2": "fail_open", "RP-02": "fail_open", "ID-5": "fail_open"},
        {
            **also(_ACCEPTED_AGAIN, "AUD-1 AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-10 ID-13 ID-15 LAYER-1 RP-01 RP-03b"),
            **also(_ACCEPTED_AGAIN, "RP-05 RP-06 RP-07 RP-08 RP-09 S0-1 S1-1 S1-2 S2-1 S2-2 S3-2 S3-3 S4-1 S4-2"),
            **also(_ACCEPTED_AGAIN, "S4-3 S4-4 TTL-2 TTL-3 TTL-4 TTL-5"),
            **also("nothing but a consumed key is needed for a compensation either", "ID-1 RP-03 RP-04 TTL-1"),
        },
    ),
    mutant(
        "collision-untold",
        "The loser of a race does not learn of the winner's decision",
        part(registrar=CollisionUntold),
        {"S4-1": "wrong_reason"},
        also(_LOSER, "RP-09 S3-3 S4-3 S4-4"),
    ),
    mutant(
        "collision-is-failure",
        "The loser of a race is told that its commit failed, and to send it again",
        part(registrar=CollisionIsDuplicate),
        {"RP-09": "wrong_reason", "S4-1": "wrong_reason"},
        also(_LOSER, "S3-3 S4-3 S4-4"),
    ),
    mutant(
        "rival-not-awaited",
        "An attempt that finds the store locked gives up before the other's outcome is known",
        part(sqlite_store=RivalNotAwaited),
        {"S4-2": "over_refusal"},
        also(_LOSER, "LAYER-2 RP-09 S3-3 S4-1 S4-3 S4-4 S4-5"),
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
        also(_LOSER, "LAYER-2 RP-09 S3-3 S4-1 S4-3 S4-4 S4-5"),
        store="postgres",
    ),
    mutant(
        "commit-left-to-background",
        "synchronous_commit is off: what was acknowledged may be gone after a crash of the database",
        part(postgres_store=CommitLeftToBackground),
        {"S2-1": "lost_durability"},
        also("its case kills the database, which may have lost what it said before", "RP-06 S1-1 S1-2 S2-3"),
        store="postgres",
        faults={"power-loss": "lost_durability"},
    ),
    mutant(
        "key-unique-with-attempt",
        "The store has UNIQUE(logical_request_key, attempt_id): two attempts at once both commit",
        unique("registration", {"logical_request_key_unique": ("logical_request_key", "attempt_id")}),
        {"RP-09": "fail_open", "S4-1": "fail_open", "ID-11": "fail_open"},
        also(_BOTH_COMMIT, "S4-3 S4-4"),
    ),
    mutant(
        "key-unique-with-nonce",
        "One UNIQUE(logical_request_key, authorization_nonce) is to cover both axes",
        unique("registration", {"logical_request_key_unique": ("logical_request_key", "authorization_nonce")}),
        {"ID-11": "fail_open", "RP-09": "fail_open"},
        also(_BOTH_COMMIT, "LAYER-2 S4-1 S4-3 S4-4"),
    ),
    mutant(
        "only-replay-key-unique",
        "Only UNIQUE(replay_key) is enforced, and it changes with every run",
        unique("registration", {"replay_key_unique": ("replay_key",)}),
        {"ID-11": "fail_open", "RP-09": "fail_open"},
        also(_BOTH_COMMIT, "S4-1 S4-3 S4-4"),
    ),
    mutant(
        "effect-active",
        "The registration is written active, not inert",
        part(registrar=ActiveEffect),
        {"S2-1": "over_refusal"},
        {
            **also(_NOTHING_REGISTERED, "AUD-1 AUD-2 GATE-2 GATE-3 GATE-4 ID-1 ID-2 ID-3 ID-4 ID-5 ID-6 ID-7"),
            **also(_NOTHING_REGISTERED, "ID-8 ID-9 ID-10 ID-11 ID-12 ID-13 ID-14 ID-15 LAYER-1 LAYER-2 RP-01"),
            **also(_NOTHING_REGISTERED, "RP-02 RP-03 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1 S0-2 S1-1"),
            **also(_NOTHING_REGISTERED, "S1-2 S2-2 S2-3 S3-1 S3-2 S3-3 S4-1 S4-2 S4-3 S4-4 S4-5 TTL-1 TTL-2"),
            **also(_NOTHING_REGISTERED, "TTL-3 TTL-4 TTL-5"),
        },
    ),
)
