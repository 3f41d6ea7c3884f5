"""Bugs after the commit (S3), and in the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row
from holdfast.reference_impl.rs4a_replay.terms import CommitStatus

_MOST_RECORDS, _COLUMN = 200, 255


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
    "audit-limited": part(registrar=AuditLimited),
    "audit-cuts-attempts": part(registrar=AuditCuts),
    "audit-by-machine-clock": part(registrar=AuditByMachineClock),
    "status-unaudited": part(custody=StatusUnaudited),
    "audit-unchecked": part(registrar=AuditUnchecked),
}
