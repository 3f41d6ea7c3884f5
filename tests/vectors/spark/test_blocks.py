"""Blocks, their digests and the root over them."""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from holdfast.reports.evidence import SdkIdentity, Vectors
from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark import blocks
from holdfast.vectors.jcs.spark.blocks import (
    BLOCK_ROWS,
    STOCK_BLOCKS,
    BlockError,
    block_count,
    block_rows,
    leaf,
    regrouped,
    root,
)
from holdfast.vectors.jcs.spark.generate import split
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement, outcomes


def _root_by_the_book(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, as it is written there."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = _root_by_the_book(leaves[:split]), _root_by_the_book(leaves[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 33])
def test_the_root_is_that_of_rfc_6962(count: int) -> None:
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(count)]
    assert root(leaves) == "sha256:" + _root_by_the_book(leaves).hex()


def test_a_leaf_does_not_depend_on_how_its_rows_lie_in_memory() -> None:
    rows = batch(3, 100, 300)
    cut = pa.Table.from_batches([batch(3, 50, 200).slice(50), batch(3, 250, 200).slice(0, 150)])
    assert leaf(rows) == leaf(cut.combine_chunks().to_batches()[0])
    assert leaf(rows) != leaf(batch(3, 100, 299))


def _one(document: bytes, canonical: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "index": pa.array([7], pa.int64()),
            "category": pa.array(["P1"]),
            "document": pa.array([document], pa.binary()),
            "canonical": pa.array([canonical], pa.binary()),
            "refused_by": pa.array([0], pa.int8()),
            "reason": pa.array([None], pa.string()),
        }
    )


def test_absent_and_empty_and_shifted_bytes_have_different_leaves() -> None:
    shapes = [(b"ab", b""), (b"ab", None), (b"a", b"b"), (b"", b"ab")]
    assert len({leaf(_one(document, canonical)) for document, canonical in shapes}) == len(shapes)


def test_blocks_cover_all_rows_and_the_last_one_may_be_short() -> None:
    count = 2 * BLOCK_ROWS + 5
    assert block_count(count) == 3
    assert [block_rows(block, count) for block in range(3)] == [BLOCK_ROWS, BLOCK_ROWS, 5]


def test_rows_are_put_together_to_blocks_however_they_were_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 10)
    whole = batch(1, 0, 25)
    pieces = [whole.slice(0, 3), whole.slice(3, 12), whole.slice(15, 10)]
    found = list(regrouped(pieces, 25))
    assert [(block.number, block.rows.num_rows) for block in found] == [(0, 10), (1, 10), (2, 5)]
    expected = [batch(1, start, rows) for start, rows in ((0, 10), (10, 10), (20, 5))]
    assert [leaf(block.rows) for block in found] == [leaf(rows) for rows in expected]


def test_rows_that_are_missing_repeated_or_out_of_order_are_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 10)
    whole = batch(1, 0, 20)
    for pieces in (
        [whole.slice(0, 15)],  # the second block is cut off
        [whole.slice(1, 10)],  # does not start at a block
        [whole.slice(0, 5), whole.slice(4, 6)],  # a row twice, one missing
        [whole.slice(5, 5), whole.slice(0, 5)],
    ):
        with pytest.raises(BlockError):
            list(regrouped(pieces, 20))


def test_rows_behind_the_end_are_no_block_and_end_the_reading() -> None:
    with pytest.raises(BlockError, match="after their end"):
        list(regrouped(iter([batch(1, BLOCK_ROWS, 3)]), BLOCK_ROWS))


# How the blocks of a batch are handed out to tasks: each once, in order and evenly.


@pytest.mark.parametrize("cores", [1, 3, 60])
@pytest.mark.parametrize("blocks", [1, 7, 25, 62, 611, 6104])
@pytest.mark.parametrize("first", [0, 16 * STOCK_BLOCKS])
def test_each_block_is_handed_out_once_and_in_order(cores: int, blocks: int, first: int) -> None:
    session = cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores)))
    work = split(session, first, blocks, None)
    units = work.last - work.first
    # As Spark cuts a range.
    bounds = [work.first + units * number // work.partitions for number in range(work.partitions + 1)]
    shares = [
        list(work.units.blocks([pa.record_batch([pa.array(range(begin, end), pa.int64())], ["id"])]))
        for begin, end in pairwise(bounds)
    ]
    assert [block for share in shares for block in share] == list(range(first, first + blocks))
    even = -(-blocks // (cores * -(-len(shares) // cores)))
    assert max(map(len, shares)) <= even + even // 16
    assert split(session, first, 62, 5).partitions == 5


# What an answer means, and that tables add up.


def test_fewer_answers_than_rows_are_an_error_and_never_a_shorter_table() -> None:
    answer = struct.pack(">IB", 0, Status.REFUSED.byte)
    with pytest.raises(ValueError, match="expected 2 answers, got 1"):
        outcomes(pa.array([answer], pa.binary()), pa.array([b"[1]", b"[2]"], pa.binary()))


def test_a_table_without_a_line_of_the_runs_own_profile_does_not_add_up() -> None:
    line = Vectors("1", 0, 5, 16_384, None, "core", SdkIdentity("x", "", "", ""), 2, 0, (), ())
    assert line.unbalanced() == {"core": 2}


def test_an_answer_with_the_bytes_of_a_reason_is_accepted_all_the_same() -> None:
    refused = Answered(Status.REFUSED, b"SYNTAX")
    assert disagreement(refused, Answered(Status.CANONICAL, b"SYNTAX")) is Meaning.ACCEPTED
    assert disagreement(refused, Answered(Status.REFUSED, b"because")) is Meaning.AGREE
