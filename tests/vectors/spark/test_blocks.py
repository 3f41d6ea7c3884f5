"""Blocks, their digests and the root over them."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.spark import blocks
from holdfast.vectors.jcs.spark.blocks import (
    BLOCK_ROWS,
    BlockError,
    block_count,
    block_rows,
    leaf,
    regrouped,
    root,
)


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


def _small(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", rows)


def test_rows_are_put_together_to_blocks_however_they_were_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch, 10)
    whole = batch(1, 0, 25)
    pieces = [whole.slice(0, 3), whole.slice(3, 12), whole.slice(15, 10)]
    found = list(regrouped(pieces, 25))
    assert [(block.number, block.rows.num_rows) for block in found] == [(0, 10), (1, 10), (2, 5)]
    expected = [batch(1, start, rows) for start, rows in ((0, 10), (10, 10), (20, 5))]
    assert [leaf(block.rows) for block in found] == [leaf(rows) for rows in expected]


def test_rows_that_are_missing_repeated_or_out_of_order_are_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch, 10)
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
