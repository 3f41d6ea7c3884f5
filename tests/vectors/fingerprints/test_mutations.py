"""Mutated requests: rows are pure, and a family of them is sound only where fingerprints distinguish requests."""

from __future__ import annotations

import pyarrow as pa
import pytest

from holdfast.vectors.derive import derive
from holdfast.vectors.fingerprints.rows import BLOCK_ROWS, COVERED, row_at
from holdfast.vectors.jcs.spark.fingerprints import SCHEMA, Family, mutations


def test_a_row_is_the_same_however_rows_are_sliced() -> None:
    whole = mutations(7, 0, 3 * BLOCK_ROWS)
    sliced = [mutations(7, start, 13) for start in range(0, 3 * BLOCK_ROWS - 13, 13)]
    assert pa.Table.from_batches(sliced).equals(pa.Table.from_batches([whole.slice(0, 13 * len(sliced))]))
    assert whole.schema == SCHEMA


def test_a_row_can_be_rebuilt_alone() -> None:
    whole = mutations(7, 0, 2 * BLOCK_ROWS)
    for index in (0, 5, BLOCK_ROWS, 2 * BLOCK_ROWS - 1):
        row = whole.slice(index, 1).to_pylist()[0]
        assert bytes.fromhex(derive(row["key"], row_at(7, index).request)) == row["fingerprint"]


def test_every_covered_field_is_mutated_and_every_base_has_another_spelling() -> None:
    rows = mutations(1, 0, BLOCK_ROWS).to_pylist()
    for key, fields in COVERED.items():
        changed = {row["field"] for row in rows if row["key"] == key}
        assert set(fields) <= changed
        assert "spelling-1" in changed
        base = next(row for row in rows if row["key"] == key and row["field"] == "")
        spelt = next(row for row in rows if row["key"] == key and row["field"] == "spelling-1")
        assert base["identity"] == spelt["identity"]
        assert row_at(1, base["index"]).request != row_at(1, spelt["index"]).request


def test_a_logical_key_does_not_depend_on_what_it_does_not_cover() -> None:
    rows = [row for row in mutations(1, 0, BLOCK_ROWS).to_pylist() if row["key"] == "rs4a.logical_request_key"]
    base = next(row for row in rows if row["field"] == "")
    for name in ("run_id", "protocol_version", "deployed_artifact_hash"):
        changed = next(row for row in rows if row["field"] == name)
        assert changed["fingerprint"] == base["fingerprint"]


@pytest.mark.parametrize(
    ("requests", "fingerprints", "shared", "differing"),
    [(3, 2, 1, 0), (3, 4, 0, 1), (3, 3, 1, 1), (1, 1, 0, 0), (4, 4, 0, 0)],
    ids=["two share one", "one has two", "both", "no distinct ones", "no equal ones"],
)
def test_a_family_is_sound_only_where_each_request_has_a_fingerprint_of_its_own(
    requests: int, fingerprints: int, shared: int, differing: int
) -> None:
    assert Family("key", 4, 3, 3, 0, 0, ()).sound
    assert not Family("key", 4, requests, fingerprints, shared, differing, ()).sound
