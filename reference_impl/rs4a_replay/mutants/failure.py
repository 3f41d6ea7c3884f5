"""Bugs after the commit (S3), and in the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row

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


BUGS: Mapping[str, Change] = {
    "audit-limited": part(registrar=AuditLimited),
    "audit-cuts-attempts": part(registrar=AuditCuts),
}
