"""What an answer means, and that tables add up."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from holdfast.reports.evidence import SdkIdentity, Vectors
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement, outcomes


def _frames(*answers: tuple[Status, bytes]) -> pa.BinaryArray:
    return pa.array([struct.pack(">IB", len(body), status.byte) + body for status, body in answers], pa.binary())


def test_fewer_answers_than_rows_are_an_error_and_never_a_shorter_table() -> None:
    with pytest.raises(ValueError, match="expected 2 answers, got 1"):
        outcomes(_frames((Status.REFUSED, b"")), pa.array([b"[1]", b"[2]"], pa.binary()))


def test_a_table_without_a_line_of_the_runs_own_profile_does_not_add_up() -> None:
    line = Vectors("1", 0, 5, 16_384, None, "core", SdkIdentity("x", "", "", ""), 2, 0, (), ())
    assert line.unbalanced() == {"core": 2}


def test_an_answer_with_the_bytes_of_a_reason_is_accepted_all_the_same() -> None:
    refused = Answered(Status.REFUSED, b"SYNTAX")
    assert disagreement(refused, Answered(Status.CANONICAL, b"SYNTAX")) is Meaning.ACCEPTED
    assert disagreement(refused, Answered(Status.REFUSED, b"because")) is Meaning.AGREE
