"""What an answer means, and that tables add up."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from holdfast.reports.evidence import SdkIdentity, Vectors
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.judge import packed, unpacked
from holdfast.vectors.jcs.spark.tally import (
    CELLS,
    Meaning,
    Outcome,
    count,
    disagreement,
    finding,
    outcomes,
    table,
)
from holdfast.vectors.taxonomy import Profile


@pytest.mark.parametrize("refused", [False, True])
def test_silence_is_never_a_refusal_and_never_a_pass(refused: bool) -> None:
    assert finding(refused, Outcome.NO_VERDICT) is Meaning.NO_VERDICT


def test_what_must_be_refused_is_open_when_it_is_accepted_whatever_the_bytes() -> None:
    assert finding(True, Outcome.REFUSED) is Meaning.AGREE
    assert finding(True, Outcome.EXPECTED_BYTES) is Meaning.ACCEPTED
    assert finding(True, Outcome.OTHER_BYTES) is Meaning.ACCEPTED


def test_what_must_be_accepted_has_another_finding_with_other_bytes_than_with_a_refusal() -> None:
    assert finding(False, Outcome.EXPECTED_BYTES) is Meaning.AGREE
    assert finding(False, Outcome.OTHER_BYTES) is Meaning.WRONG_BYTES
    assert finding(False, Outcome.REFUSED) is Meaning.OVER_REFUSAL


def test_an_answer_to_one_document_means_the_same_as_in_the_columns() -> None:
    canonical, refused = Answered(Status.CANONICAL, b"[1]"), Answered(Status.REFUSED, b"SYNTAX")
    assert disagreement(canonical, canonical) is Meaning.AGREE
    assert disagreement(canonical, Answered(Status.CANONICAL, b"[1.0]")) is Meaning.WRONG_BYTES
    assert disagreement(canonical, refused) is Meaning.OVER_REFUSAL
    assert disagreement(refused, canonical) is Meaning.ACCEPTED
    assert disagreement(refused, Answered(Status.REFUSED, b"anything")) is Meaning.AGREE
    assert disagreement(refused, Answered(Status.CRASHED, b"")) is Meaning.NO_VERDICT


def _frames(*answers: tuple[Status, bytes]) -> pa.BinaryArray:
    return pa.array([struct.pack(">IB", len(body), status.byte) + body for status, body in answers], pa.binary())


def test_outcomes_compare_bytes_and_nothing_else() -> None:
    answers = _frames(
        (Status.CANONICAL, b"[1]"),
        (Status.CANONICAL, b"[1 ]"),
        (Status.CANONICAL, b""),
        (Status.REFUSED, b"[1]"),
        (Status.HUNG, b"[1]"),
        (Status.CRASHED, b""),
    )
    canonical = pa.array([b"[1]", b"[1]", None, b"[1]", b"[1]", None], pa.binary())
    assert outcomes(answers, canonical).tolist() == [0, 1, 1, 2, 3, 3]


def test_fewer_answers_than_rows_are_an_error_and_never_a_shorter_table() -> None:
    with pytest.raises(ValueError, match="expected 2 answers, got 1"):
        outcomes(_frames((Status.REFUSED, b"")), pa.array([b"[1]", b"[2]"], pa.binary()))


def test_each_profile_counts_every_row_once() -> None:
    generator = np.random.default_rng(1)
    categories = generator.integers(0, 25, 5000)
    refused_by = generator.integers(0, 8, 5000).astype(np.int8)
    codes = generator.integers(0, 4, 5000).astype(np.int8)
    cells = np.zeros(CELLS, dtype=np.int64)
    assert unpacked(packed(count(categories, refused_by, codes)), cells) == 5000
    rows = table(cells)
    for profile in Profile:
        assert sum(row.rows for row in rows if row.profile is profile) == 5000
    strict = sum(row.counts[Meaning.ACCEPTED] for row in rows if row.profile is Profile.SAFE_INT)
    assert strict == int(((refused_by & Profile.SAFE_INT.bit != 0) & (codes < 2)).sum())


def test_a_table_without_a_line_of_the_runs_own_profile_does_not_add_up() -> None:
    line = Vectors("1", 0, 5, 16_384, None, "core", SdkIdentity("x", "", "", ""), 2, 0, (), ())
    assert line.unbalanced() == {"core": 2}
