"""How the blocks of a batch are handed out to tasks: each once, in order and evenly."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.spark.blocks import STOCK_BLOCKS
from holdfast.vectors.jcs.spark.generate import split


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
