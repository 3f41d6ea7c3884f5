"""Mutated requests: rows are pure, fingerprints distinguish them, and the check finds a planted fault."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from holdfast.vectors.fingerprints.check import Finding, IncompleteError, Wrong, check
from holdfast.vectors.fingerprints.mutations import (
    BLOCK_ROWS,
    COVERED,
    SCHEMA,
    Fingerprinter,
    derivations,
    mutations,
    request_at,
)
from holdfast.vectors.mesh_delivery import derive as mesh

ROWS = 60 * BLOCK_ROWS


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _findings(key: str, planted: Fingerprinter) -> list[Finding]:
    """What the check says of rows with one fingerprint function replaced."""
    return check([mutations(3, 0, ROWS, fingerprinters={**derivations(), key: planted})])


def test_no_two_distinct_requests_share_a_fingerprint_and_no_equal_ones_differ() -> None:
    assert check([mutations(1, 0, ROWS), mutations(1, ROWS, ROWS)]) == []


def test_a_row_is_the_same_however_rows_are_sliced() -> None:
    whole = mutations(7, 0, 3 * BLOCK_ROWS)
    sliced = [mutations(7, start, 13) for start in range(0, 3 * BLOCK_ROWS - 13, 13)]
    assert pa.Table.from_batches(sliced).equals(pa.Table.from_batches([whole.slice(0, 13 * len(sliced))]))
    assert whole.schema == SCHEMA


def test_a_row_can_be_rebuilt_alone() -> None:
    whole = mutations(7, 0, 2 * BLOCK_ROWS)
    for index in (0, 5, BLOCK_ROWS, 2 * BLOCK_ROWS - 1):
        row = whole.slice(index, 1).to_pylist()[0]
        assert bytes.fromhex(derivations()[row["key"]](request_at(7, index))) == row["fingerprint"]


def test_every_covered_field_is_mutated_and_every_base_has_another_spelling() -> None:
    rows = mutations(1, 0, BLOCK_ROWS).to_pylist()
    for key, fields in COVERED.items():
        changed = {row["field"] for row in rows if row["key"] == key}
        assert set(fields) <= changed
        assert "spelling-1" in changed
        base = next(row for row in rows if row["key"] == key and row["field"] == "")
        spelt = next(row for row in rows if row["key"] == key and row["field"] == "spelling-1")
        assert base["identity"] == spelt["identity"]
        assert request_at(1, base["index"]) != request_at(1, spelt["index"])


def test_a_logical_key_does_not_depend_on_what_it_does_not_cover() -> None:
    rows = [row for row in mutations(1, 0, BLOCK_ROWS).to_pylist() if row["key"] == "rs4a.logical_request_key"]
    base = next(row for row in rows if row["field"] == "")
    for name in ("run_id", "protocol_version", "deployed_artifact_hash"):
        changed = next(row for row in rows if row["field"] == name)
        assert changed["fingerprint"] == base["fingerprint"]


@pytest.mark.parametrize("left_out", range(7))
def test_a_field_left_out_of_the_mesh_fingerprint_is_caught(left_out: int) -> None:
    def forgetful(request: Mapping[str, Any]) -> str:
        fields = mesh.fields(request)
        return _hex(b"\x00".join(fields[:left_out] + fields[left_out + 1 :]))

    findings = _findings("mesh.fingerprint", forgetful)
    assert {finding.wrong for finding in findings} == {Wrong.SHARED}
    name = COVERED["mesh.fingerprint"][left_out]
    assert any(name in finding.fields for finding in findings)


def test_a_fingerprint_of_what_was_sent_instead_of_what_it_means_is_caught() -> None:
    def literal(request: Mapping[str, Any]) -> str:
        return _hex(repr(sorted(request.items())).encode())

    assert {finding.wrong for finding in _findings("mesh.fingerprint", literal)} == {Wrong.SPLIT}


def test_rows_that_can_show_nothing_are_no_pass() -> None:
    with pytest.raises(IncompleteError, match=r"mesh\.fingerprint: expected equal requests and distinct ones"):
        check([])
    with pytest.raises(IncompleteError, match="rs4a"):
        check([mutations(1, 0, 5)])


def test_a_finding_names_the_rows_that_show_it() -> None:
    findings = _findings("mesh.fingerprint", lambda request: _hex(b"\x00".join(mesh.fields(request)[:-1])))
    rows = mutations(3, 0, ROWS).to_pylist()
    for finding in findings:
        identities = {rows[index]["identity"] for index in finding.indices}
        assert len(identities) > 1
        assert "distinct requests share a fingerprint" in str(finding)


def test_a_negative_start_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        mutations(1, -1, 5)
