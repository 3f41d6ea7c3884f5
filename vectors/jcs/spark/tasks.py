"""What runs on the workers: functions that Spark maps over record batches. They import nothing of Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS, Block, block_rows, leaf, regrouped

# Blocks that are made from one stock.
STOCK_BLOCKS = max(1, STOCK_ROWS // BLOCK_ROWS)
ROW_SCHEMA = "index bigint, category string, document binary, canonical binary, refused_by tinyint, reason string"
LEAF_SCHEMA = "block bigint, rows bigint, leaf binary, categories string, file string"


def block_of(seed: int, number: int, count: int) -> Block:
    """Block `number` of a batch of `count` rows, constructed."""
    return Block(number, batch(seed, number * BLOCK_ROWS, block_rows(number, count)))


@dataclass(frozen=True, slots=True)
class Units:
    """How the blocks of a batch are handed out: Spark's range counts units, each of `size` blocks up to `end`.

    Rows are constructed from stocks of words and numbers that several blocks share (`construct.blocks.STOCK_ROWS`), so
    the blocks of a stock are best made by the same task.
    """

    size: int
    end: int

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
        """The numbers of the blocks that a partition got."""
        for ids in batches:
            for unit in ids.column(0).to_pylist():
                yield from range(unit * self.size, min(self.end, (unit + 1) * self.size))


@dataclass(frozen=True, slots=True)
class Construct:
    """Units to rows."""

    seed: int
    count: int
    units: Units

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each block, in order."""
        for number in self.units.blocks(batches):
            yield block_of(self.seed, number, self.count).rows


@dataclass(frozen=True, slots=True)
class Digest:
    """Rows as they were read back from files to the digest and the categories of each block.

    Each row's `file` is the name of the file it was read from.
    """

    count: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each block."""
        for block in regrouped(batches, self.count):
            counted = Counter(block.rows.column("category").to_pylist())
            yield pa.RecordBatch.from_pydict(
                {
                    "block": pa.array([block.number], pa.int64()),
                    "rows": pa.array([block.rows.num_rows], pa.int64()),
                    "leaf": pa.array([leaf(block.rows)], pa.binary()),
                    "categories": pa.array([json.dumps(counted)], pa.string()),
                    "file": block.rows.column("file").slice(0, 1).cast(pa.string()),
                }
            )
