"""Checks that fingerprints distinguish requests: distinct requests have distinct ones, equal requests equal ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, unique

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.fingerprints.mutations import COVERED, SCHEMA


@unique
class Wrong(Enum):
    """The two ways in which a fingerprint fails."""

    SHARED = "distinct requests share a fingerprint"
    SPLIT = "equal requests have different fingerprints"


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows that show a fault: their indices, smallest first, and the fields that were changed in them."""

    key: str
    wrong: Wrong
    indices: tuple[int, ...]
    fields: tuple[str, ...]

    def __str__(self) -> str:
        changed = ", ".join(field or "the base" for field in self.fields)
        rows = ", ".join(str(index) for index in self.indices)
        return f"{self.key}: {self.wrong.value}: rows {rows} ({changed})"


class IncompleteError(Exception):
    """The rows prove nothing: a key is missing, or there were no two rows to compare."""


def check(batches: Iterable[pa.RecordBatch]) -> list[Finding]:
    """Every fault in `batches`, which have the columns of SCHEMA.

    Raises IncompleteError when a key has no rows, or has none that are equal and none that are distinct: then nothing
    would be shown.
    """
    table = pa.Table.from_batches(list(batches), schema=SCHEMA)
    findings: list[Finding] = []
    for key in COVERED:
        rows = table.filter(pc.equal(table["key"], key))
        distinct = pc.count_distinct(rows["identity"]).as_py()
        if distinct < 2 or distinct == rows.num_rows:
            raise IncompleteError(
                f"{key}: expected equal requests and distinct ones, found {rows.num_rows} rows and {distinct} requests"
            )
        findings += _grouped(key, rows, by="fingerprint", differing="identity", wrong=Wrong.SHARED)
        findings += _grouped(key, rows, by="identity", differing="fingerprint", wrong=Wrong.SPLIT)
    return findings


def _grouped(key: str, rows: pa.Table, *, by: str, differing: str, wrong: Wrong) -> list[Finding]:
    counted = rows.group_by(by).aggregate([(differing, "count_distinct")])
    bad = counted.filter(pc.greater(counted[f"{differing}_count_distinct"], 1))[by]
    if len(bad) == 0:
        return []
    shown = rows.filter(pc.is_in(rows[by], value_set=bad.combine_chunks())).sort_by("index").to_pylist()
    grouped: dict[bytes, list[dict[str, object]]] = {}
    for row in shown:
        grouped.setdefault(row[by], []).append(row)
    return [
        Finding(key, wrong, tuple(int(str(row["index"])) for row in group), tuple(str(row["field"]) for row in group))
        for group in grouped.values()
    ]
