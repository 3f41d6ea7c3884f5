"""Bugs after the commit (S3), and in the audit."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.postgres_pipeline import Step, run
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.planting import mutant, primary_key
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Row
from holdfast.reference_impl.rs4a_replay.terms import CommitStatus, Reason


def _erase(store: Any, relation: str, column: str, found: object) -> None:
    """Delete a row past the append-only trigger, as an owner of the file can."""
    assert isinstance(store, SqliteStore)
    connection = store._database.connection()
    connection.execute(f"DROP TRIGGER IF EXISTS {relation}_no_delete")
    connection.execute(f"DELETE FROM {relation} WHERE {column} = ?", (found,))


class FailedIsErased(Registrar):
    def rejection(self, attempt: Attempt, decision_id: str) -> Row:
        assert attempt.verdict.keys is not None
        assert attempt.verdict.submission is not None
        _erase(self.store, "registration", "decision_id", decision_id)
        _erase(self.store, "nonce_consume", "authorization_nonce", attempt.verdict.submission.authorization_nonce)
        return super().rejection(attempt, decision_id)


class NonceGivenBack(Registrar):
    def rejection(self, attempt: Attempt, decision_id: str) -> Row:
        assert attempt.verdict.submission is not None
        _erase(self.store, "nonce_consume", "authorization_nonce", attempt.verdict.submission.authorization_nonce)
        return super().rejection(attempt, decision_id)


class FailureUnflagged(Registrar):
    def verify(self, attempt: Attempt, written: Row, durable: Row | None) -> Answer:
        # The verifier's word is asked for, and then only logged.
        self._verifier.accepts(written, written)
        sight = replace(attempt.sight, registration=written)
        return Accepted(Effect.NEW, {"decision": decision_of(sight), "replayed": False})


class FailedLooksCommitted(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        return super().prior_decision(replace(attempt, sight=replace(attempt.sight, verification=None)))


class CompensatedLooksFailed(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        return super().prior_decision(replace(attempt, sight=replace(attempt.sight, compensation=None)))


class FailedKeyIsDuplicate(Registrar):
    def guard_failed_key(self, attempt: Attempt) -> Refusal | None:
        return None


class FailedKeyIsFree(Registrar):
    def guard_failed_key(self, attempt: Attempt) -> Refusal | None:
        if super().guard_failed_key(attempt) is None:
            return None
        # As with UNIQUE … WHERE state <> 'failed': the failed row does not count, and the key is taken anew.
        consumed, effect = self.effect_rows(attempt)
        salted = hashlib.sha256(f"{effect.row['logical_request_key']}{uuid.uuid4()}".encode()).hexdigest()
        self.store.append("nonce_consume", [consumed.row])
        row = {**effect.row, "logical_request_key": salted, "replay_key": salted}
        self.store.append("registration", [row])
        sight = replace(attempt.sight, registration=row, verification=None, compensation=None)
        return Accepted(Effect.NEW, {"decision": decision_of(sight), "replayed": False})  # type: ignore[return-value]


class AnythingCompensated(Registrar):
    def guard_failed_registration(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.sight.registration is not None else super().guard_failed_registration(attempt)


class CompensatedAgain(Registrar):
    def guard_compensated(self, attempt: Attempt) -> Refusal | None:
        if super().guard_compensated(attempt) is None:
            return None
        return Accepted(Effect.NEW, {"decision": decision_of(attempt.sight), "replayed": False})  # type: ignore[return-value]


class CompensationRetryRefused(Registrar):
    def prior_compensation(self, attempt: Attempt) -> Accepted | None:
        return None


class AuditForgotten(Registrar):
    def keep_record(self, record: Row) -> None:
        pass


class RollbackTakesAuditAlong(Registrar):
    def keep_record(self, record: Row) -> None:
        # Written inside the transaction that failed, so it is gone with it.
        if record["code"] not in (Reason.COMMIT_FAILED.value, Reason.ATTEMPT_COLLISION.value):
            super().keep_record(record)


class AuditTwice(Registrar):
    def keep_record(self, record: Row) -> None:
        super().keep_record(record)
        super().keep_record({**record, "audit_id": f"{record['audit_id']}-again"})


class AuditInMemory(SqliteAudit):
    def write(self, record: Row) -> None:
        self._insert(record, end="ROLLBACK")


class AuditWithoutIdentities(Registrar):
    def record(self, attempt: Attempt, code: str) -> Row:
        nobody = {"logical_request_key": None, "authorization_nonce": None, "attempt_id": None}
        return {**super().record(attempt, code), **nobody}


class AuditByMachineClock(Registrar):
    def record(self, attempt: Attempt, code: str) -> Row:
        recorded_at = datetime.now().astimezone().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {**super().record(attempt, code), "recorded_at": recorded_at}


class StatusUnaudited(Custody):
    def note_status(self, attempt: Attempt, status: CommitStatus) -> Refusal | None:
        return None


class AuditUnchecked(Registrar):
    def guard_audit(self, attempt: Attempt) -> Refusal | None:
        return None


class AuditProbedByReading(PostgresAudit):
    def probe(self, record: Row) -> None:
        self._try(lambda connection: run(connection, Step("SELECT 1")))


_NOTHING_FAILED = "what its cases do with a failed registration finds none"
_TRIGGER_DROPPED = (
    "to delete a row the trigger that forbids it is dropped, and the trigger is an object of the catalogue"
)
_NO_RECORD = "the harness counts the audit records of each refusal, and a refusal of its cases has too many or too few"
_HISTORY = "a history of registrations, failures and compensations shows it too"

MUTANTS = (
    mutant(
        "failed-is-erased",
        "A registration that failed verification is deleted, with its consumed nonce",
        part(registrar=FailedIsErased),
        {"S3-1": "lost_durability", "RP-07": "fail_open", "ID-15": "lost_durability"},
        {
            "S3-3": "without the row nothing is left to compensate",
            "S3-2": "without the row the key is free again",
            **also(_NOTHING_FAILED, "AUD-1 AUD-2 ID-1 ID-11 LAYER-2 RP-03 RP-03b RP-04 RP-08 TTL-1"),
            **also(_TRIGGER_DROPPED, "GATE-2"),
        },
    ),
    mutant(
        "nonce-given-back",
        "After a failed verification the nonce is issued again",
        part(registrar=NonceGivenBack),
        {"S3-1": "lost_durability", "ID-15": "lost_durability"},
        {
            **also(
                "its cases count the consumed nonce of a failed registration, or present it again",
                "ID-1 LAYER-2 RP-03 RP-03b RP-07 S3-3 TTL-1",
            ),
            **also(_TRIGGER_DROPPED, "GATE-2"),
        },
    ),
    mutant(
        "failure-unflagged",
        "The verifier's rejection is only logged",
        part(registrar=FailureUnflagged),
        {"S3-1": "lost_durability", "S3-2": "lost_durability"},
        {
            "S3-3": "nothing can be compensated that is not flagged",
            "RP-07": "a failed key looks like a consumed one",
            **also(_NOTHING_FAILED, "AUD-1 AUD-2 GATE-2 ID-1 LAYER-2 RP-03 RP-03b RP-04 RP-08 TTL-1"),
        },
    ),
    mutant(
        "failed-looks-committed",
        "A repeat of a failed registration is told that it succeeded",
        part(registrar=FailedLooksCommitted),
        {"S3-2": "lost_durability"},
        {
            **also("a stale copy of a failed registration is followed by its retry", "RP-08"),
            **also(_HISTORY, "RP-03b"),
        },
    ),
    mutant(
        "compensated-looks-failed",
        "A repeat after the compensation still says FAILED",
        part(registrar=CompensatedLooksFailed),
        {"S3-2": "lost_durability"},
        also(_HISTORY, "RP-03b"),
    ),
    mutant(
        "failed-key-is-duplicate",
        "A failed key is refused like any consumed one, and compensation is not pointed at",
        part(registrar=FailedKeyIsDuplicate),
        {"RP-07": "wrong_reason", "S3-3": "wrong_reason"},
        {
            **also("one of the refusals that its cases await is COMPENSATION_ONLY", "AUD-1 LAYER-2"),
            **also(_HISTORY, "RP-03b"),
        },
    ),
    mutant(
        "failed-key-is-free",
        "A failed registration does not count: a fresh nonce registers again",
        part(registrar=FailedKeyIsFree),
        {"RP-07": "fail_open", "S3-3": "fail_open", "LAYER-2": "fail_open"},
        {
            **also("one of the refusals that its cases await is COMPENSATION_ONLY", "AUD-1"),
            **also(_HISTORY, "RP-03b"),
        },
    ),
    mutant(
        "anything-compensated",
        "A registration that did not fail can be compensated",
        part(registrar=AnythingCompensated),
        {"S3-3": "fail_open"},
        {
            **also("one of the refusals that its cases await is NOTHING_TO_COMPENSATE", "AUD-1"),
            **also(_HISTORY, "RP-03b"),
        },
    ),
    mutant(
        "compensated-again",
        "A second compensation is accepted",
        part(registrar=CompensatedAgain),
        {"S3-3": "fail_open"},
        also(_HISTORY, "RP-03b"),
    ),
    mutant(
        "compensation-keyed-by-nonce",
        "The store holds one compensation for each nonce, not for each registration: two at once both commit",
        primary_key("compensation", ("authorization_nonce",)),
        {"S3-3": "fail_open"},
    ),
    mutant(
        "compensation-retry-refused",
        "An exact retry of a compensation is refused",
        part(registrar=CompensationRetryRefused),
        {"S3-3": "over_refusal"},
        also(_HISTORY, "RP-03b"),
    ),
    mutant(
        "audit-forgotten",
        "Refusals of the registrar are not audited",
        part(registrar=AuditForgotten),
        {"AUD-1": "state_leak", "S4-4": "state_leak"},
        {
            **also(_NO_RECORD, "AUD-2 GATE-2 GATE-4 ID-1 ID-3 ID-4 ID-5 ID-6 ID-7 ID-8 ID-9 ID-10 ID-13 ID-14 ID-15"),
            **also(_NO_RECORD, "LAYER-1 LAYER-2 RP-01 RP-02 RP-03 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1"),
            **also(_NO_RECORD, "S0-2 S1-1 S1-2 S2-1 S3-3 S4-1 S4-3 S4-5 TTL-1 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "audit-rolled-back",
        "The audit record is written inside the transaction that rolls back",
        part(registrar=RollbackTakesAuditAlong),
        {"AUD-1": "state_leak"},
        also(_NO_RECORD, "GATE-2 RP-06 S1-1 S1-2 S2-1 S4-4"),
    ),
    mutant(
        "audit-in-memory",
        "The audit record never becomes durable",
        part(sqlite_audit=AuditInMemory),
        {"AUD-1": "lost_durability"},
        {
            **also(_NO_RECORD, "AUD-2 GATE-2 GATE-4 ID-1 ID-3 ID-4 ID-5 ID-6 ID-7 ID-8 ID-9 ID-10 ID-13 ID-14 ID-15"),
            **also(_NO_RECORD, "LAYER-1 LAYER-2 RP-01 RP-02 RP-03 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1"),
            **also(_NO_RECORD, "S0-2 S1-1 S1-2 S2-1 S3-3 S4-1 S4-3 S4-4 S4-5 TTL-1 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
        faults={"power-loss-audit": "lost_durability"},
    ),
    mutant(
        "audit-twice",
        "Every refusal leaves two records",
        part(registrar=AuditTwice),
        {"AUD-1": "state_leak"},
        {
            **also(_NO_RECORD, "AUD-2 GATE-2 GATE-4 ID-1 ID-3 ID-4 ID-5 ID-6 ID-7 ID-8 ID-9 ID-10 ID-13 ID-14 ID-15"),
            **also(_NO_RECORD, "LAYER-1 LAYER-2 RP-01 RP-02 RP-03 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1"),
            **also(_NO_RECORD, "S0-2 S1-1 S1-2 S2-1 S3-3 S4-1 S4-3 S4-4 S4-5 TTL-1 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "audit-without-identities",
        "The audit does not say who asked for what",
        part(registrar=AuditWithoutIdentities),
        {"AUD-1": "lost_durability"},
        also("the loser of its case is looked up in the audit by nonce and attempt", "S4-4"),
    ),
    mutant(
        "audit-by-machine-clock",
        "The audit's time is the machine's, not the registrar's",
        part(registrar=AuditByMachineClock),
        {"AUD-1": "lost_durability"},
    ),
    mutant(
        "status-unaudited",
        "A resolved commit leaves no record",
        part(custody=StatusUnaudited),
        {"AUD-1": "lost_durability"},
    ),
    mutant(
        "audit-unchecked",
        "Registrations are admitted whether the audit can be written or not",
        part(registrar=AuditUnchecked),
        {"AUD-2": "fail_open"},
    ),
    mutant(
        "audit-probed-by-reading",
        "That the audit answers a SELECT is taken for proof that it can be written",
        part(postgres_audit=AuditProbedByReading),
        {"AUD-2": "fail_open"},
        store="postgres",
    ),
)
