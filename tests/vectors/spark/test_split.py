"""How the blocks of a batch are handed out to tasks: each once, evenly, and few stocks made twice."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.spark.blocks import STOCK_BLOCKS
from holdfast.vectors.jcs.spark.generate import Split, split

COUNTS = [1, 6, 7, 25, 31, 62, 611, 6104]


def _split(cores: int, blocks: int, partitions: int | None = None, first: int = 0) -> Split:
    session = cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores)))
    return split(session, first, blocks, partitions)


def _shares(work: Split) -> list[list[int]]:
    """The blocks of each partition, cut as Spark cuts a range."""
    units = work.last - work.first
    bounds = [work.first + units * number // work.partitions for number in range(work.partitions + 1)]
    return [
        list(work.units.blocks([pa.record_batch([pa.array(range(begin, end), pa.int64())], ["id"])]))
        for begin, end in pairwise(bounds)
    ]


@pytest.mark.parametrize("cores", [1, 2, 3, 60])
@pytest.mark.parametrize("blocks", COUNTS)
def test_each_block_is_handed_out_once_and_in_order(cores: int, blocks: int) -> None:
    for first in (0, 16 * STOCK_BLOCKS):
        shares = _shares(_split(cores, blocks, first=first))
        assert [block for share in shares for block in share] == list(range(first, first + blocks))


@pytest.mark.parametrize("cores", [1, 2, 3, 60])
@pytest.mark.parametrize("blocks", COUNTS)
def test_no_task_has_much_more_than_its_even_share(cores: int, blocks: int) -> None:
    shares = _shares(_split(cores, blocks))
    even = -(-blocks // (cores * -(-len(shares) // cores)))
    assert max(map(len, shares)) <= even + even // 16


@pytest.mark.parametrize("blocks", [25, 31, 62])
def test_two_cores_get_one_task_each_and_make_hardly_a_stock_twice(blocks: int) -> None:
    shares = _shares(_split(2, blocks))
    made = sum(len({block // STOCK_BLOCKS for block in share}) for share in shares)
    assert len(shares) == 2
    assert made <= -(-blocks // STOCK_BLOCKS) + 1


def test_the_caller_may_say_how_many() -> None:
    assert len(_shares(_split(2, 62, 5))) == 5
    assert len(_shares(_split(2, 3, 5))) == 3
