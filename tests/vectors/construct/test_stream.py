"""The stream is a pure function of seed and index, and its columns say what the documents are."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.vectors.jcs.construct import MOST_ROWS, SCHEMA, STREAM, batch, row, twins
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS, stock_of
from holdfast.vectors.taxonomy import Category
from tests.vectors.construct.test_documents import first_rows

# A change of the stream changes this; then STREAM must be raised, too, and both be written here anew.
GOLDEN = (3, "91c286ff6bb565d99a20790cf0191e29db1bfd1faef711e3875dd71a1980a281")


def digest(made: pa.RecordBatch) -> str:
    """SHA-256 of rows, written out in a way that does not depend on Arrow."""
    found = hashlib.sha256()
    for each in made.to_pylist():
        found.update(repr([each[name] for name in SCHEMA.names]).encode())
    return found.hexdigest()


def test_first_rows_of_seed_0_are_what_they_were() -> None:
    assert (STREAM, digest(batch(0, 0, 10_000))) == GOLDEN


@settings(max_examples=20)
@given(st.integers(0, 3000), st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_any_slicing_gives_the_same_rows(start: int, counts: list[int]) -> None:
    parts, place = [], start
    for count in counts:
        parts.append(batch(0, start=place, count=count))
        place += count
    whole = batch(0, start, place - start)
    assert pa.Table.from_batches(parts, SCHEMA).combine_chunks().equals(pa.Table.from_batches([whole], SCHEMA))


def test_slices_across_the_ends_of_stocks_give_the_same_rows() -> None:
    whole = batch(4, STOCK_ROWS - 50, 100)
    assert whole.slice(0, 50).equals(batch(4, STOCK_ROWS - 50, 50))
    assert whole.slice(50).equals(batch(4, STOCK_ROWS, 50))
    assert whole.column("index").to_pylist() == list(range(STOCK_ROWS - 50, STOCK_ROWS + 50))


def test_a_row_alone_is_the_row_of_the_batch() -> None:
    documents = twins(0, 0, 60).to_pylist()
    for index in range(60):
        made, expected = row(0, index), first_rows()[index]
        shown = {"index": index, **{name: getattr(made, name) for name in SCHEMA.names[1:]}}
        assert shown == expected
        assert (made.name, made.category) == (f"0:{index}", Category(expected["category"]))
        if made.category.refused:
            assert made.note
            assert made.twin == documents[index]
        else:
            assert (made.note, made.twin) == ("", None)


def test_far_rows_and_great_seeds_can_be_made_alone() -> None:
    assert row(2**63 - 1, 2**40).document == batch(2**63 - 1, 2**40, 1).column("document")[0].as_py()


@pytest.mark.parametrize(
    ("seed", "start", "count"),
    [(-1, 0, 1), (2**63, 0, 1), (0, -1, 1), (0, 2**62, 1), (0, 0, -1), (0, 0, MOST_ROWS + 1)],
)
def test_what_is_out_of_range_is_an_error(seed: int, start: int, count: int) -> None:
    with pytest.raises(ValueError, match=r"at most|from 0 to"):
        batch(seed, start, count)


def test_no_rows_are_an_empty_batch_of_the_schema() -> None:
    assert batch(0, 10, 0).equals(pa.RecordBatch.from_pylist([], schema=SCHEMA))
    assert len(twins(0, 10, 0)) == 0


def test_memory_of_a_batch_is_given_back() -> None:
    batch(0, 0, 5000)
    before = pa.total_allocated_bytes()
    for start in range(0, 50_000, 5000):
        made = batch(0, start, 5000)
        assert made.nbytes < 8_000_000
        del made
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert stock_of(0, 0).fragments.nbytes < 8_000_000
