"""Bugs after the commit (S3), and in the audit."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.values import primary_key
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Insert, Row
from holdfast.reference_impl.rs4a_replay.terms import CommitStatus, Reason

_MOST_RECORDS, _COLUMN = 200, 255
_QUARTER = timedelta(days=90)


def _erase(store: Any, relation: str, column: str, found: object) -> None:
    """Delete a row past the append-only trigger, as an owner of the file can."""
    assert isinstance(store, SqliteStore)
    connection = store._database.connection()
    connection.execute(f"DROP TRIGGER IF EXISTS {relation}_no_delete")
    connection.execute(f"DELETE FROM {relation} WHERE {column} = ?", (found,))


class FailedIsErased(Registrar):
    def rejection(self, attempt: Attempt, written: Row) -> Row:
        assert attempt.verdict.keys is not None
        assert attempt.verdict.submission is not None
        _erase(self.store, "registration", "decision_id", written["decision_id"])
        _erase(self.store, "nonce_consume", "authorization_nonce", attempt.verdict.submission.authorization_nonce)
        return super().rejection(attempt, written)


class CompensableForAQuarter(Registrar):
    def guard_failed_registration(self, attempt: Attempt) -> Refusal | None:
        registration = attempt.sight.registration
        if registration is not None and attempt.now - parse_instant(str(registration["committed_at"])) > _QUARTER:
            return Refusal(Reason.NOTHING_TO_COMPENSATE)
        return super().guard_failed_registration(attempt)


class NonceGivenBack(Registrar):
    def rejection(self, attempt: Attempt, written: Row) -> Row:
        assert attempt.verdict.submission is not None
        _erase(self.store, "nonce_consume", "authorization_nonce", attempt.verdict.submission.authorization_nonce)
        return super().rejection(attempt, written)


class FailureUnflagged(Registrar):
    def verify(self, attempt: Attempt, written: Row, durable: Row | None) -> Answer:
        # The verifier runs, and its verdict is only logged.
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
        self.store.append([Insert("nonce_consume", consumed.row)])
        row = {**effect.row, "logical_request_key": salted, "replay_key": salted}
        self.store.append([Insert("registration", row)])
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
        # The record is written inside the failed transaction, so the rollback removes it.
        if record["code"] not in (Reason.COMMIT_FAILED.value, Reason.ATTEMPT_COLLISION.value):
            super().keep_record(record)


class AuditLimited(Registrar):
    """No more than two hundred records of one reason at one instant."""

    def keep_record(self, record: Row) -> None:
        counts = self.__dict__.setdefault("_counts", Counter())
        counts[record["code"], record["recorded_at"]] += 1
        if counts[record["code"], record["recorded_at"]] <= _MOST_RECORDS:
            super().keep_record(record)


class AuditCuts(Registrar):
    def keep_record(self, record: Row) -> None:
        attempt = record["attempt_id"]
        super().keep_record({**record, "attempt_id": attempt and str(attempt)[:_COLUMN]})


class AuditTwice(Registrar):
    def keep_record(self, record: Row) -> None:
        super().keep_record(record)
        super().keep_record({**record, "audit_id": f"{record['audit_id']}-again"})


class AuditInMemory(SqliteAudit):
    def write(self, record: Row) -> None:
        self._insert(record, end="ROLLBACK")


class AuditWithoutIdentities(Registrar):
    def record(self, attempt: Attempt, code: str) -> Row:
        absent = {"logical_request_key": None, "authorization_nonce": None, "attempt_id": None}
        return {**super().record(attempt, code), **absent}


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


BUGS: Mapping[str, Change] = {
    "failed-is-erased": part(registrar=FailedIsErased),
    "compensable-for-a-quarter": part(registrar=CompensableForAQuarter),
    "nonce-given-back": part(registrar=NonceGivenBack),
    "failure-unflagged": part(registrar=FailureUnflagged),
    "failed-looks-committed": part(registrar=FailedLooksCommitted),
    "compensated-looks-failed": part(registrar=CompensatedLooksFailed),
    "failed-key-is-duplicate": part(registrar=FailedKeyIsDuplicate),
    "failed-key-is-free": part(registrar=FailedKeyIsFree),
    "anything-compensated": part(registrar=AnythingCompensated),
    "compensated-again": part(registrar=CompensatedAgain),
    "compensation-keyed-by-nonce": primary_key("compensation", ("authorization_nonce",)),
    "compensation-retry-refused": part(registrar=CompensationRetryRefused),
    "audit-forgotten": part(registrar=AuditForgotten),
    "audit-rolled-back": part(registrar=RollbackTakesAuditAlong),
    "audit-in-memory": part(sqlite_audit=AuditInMemory),
    "audit-limited": part(registrar=AuditLimited),
    "audit-cuts-attempts": part(registrar=AuditCuts),
    "audit-twice": part(registrar=AuditTwice),
    "audit-without-identities": part(registrar=AuditWithoutIdentities),
    "audit-by-machine-clock": part(registrar=AuditByMachineClock),
    "status-unaudited": part(custody=StatusUnaudited),
    "audit-unchecked": part(registrar=AuditUnchecked),
}
