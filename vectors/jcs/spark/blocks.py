"""Blocks: the unit of work and of digests, independent of partitions, cores and files.

A batch of `count` rows is cut into blocks of BLOCK_ROWS rows by index. Each block has a digest over its rows in one
fixed form; the root of the RFC 6962 tree over these digests names the whole batch. So the root depends on nothing but
(seed, count, version of the stream).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct import SCHEMA, batch
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS

# Small enough that a million rows keep sixty cores busy and a block of the largest documents fits in memory many
# times, large enough that a block's digest is nothing beside its rows.
BLOCK_ROWS = 16_384
# Begins every block's digest, so that a digest of something else can never be taken for one.
_LEAF = b"\x00holdfast/vectors/block/1\n"
_NODE = b"\x01"


class BlockError(Exception):
    """Rows are not the contiguous blocks that they should be."""


def block_count(count: int) -> int:
    """How many blocks `count` rows have."""
    return -(-count // BLOCK_ROWS)


def block_rows(block: int, count: int) -> int:
    """How many rows block number `block` has in a batch of `count` rows."""
    return min(BLOCK_ROWS, count - block * BLOCK_ROWS)


def leaf(rows: pa.RecordBatch) -> bytes:
    """The SHA-256 of a block's rows in their fixed form, 32 bytes.

    The form: number of rows and first index, then each column of SCHEMA in order. A number column is its values,
    little-endian; a column of bytes or text is one byte for each row (1 if there is a value), the lengths as u32
    little-endian, and the values one after the other. Empty and absent differ.
    """
    state = hashlib.sha256(_LEAF)
    first = rows.column("index")[0].as_py() if rows.num_rows else 0
    state.update(np.array([rows.num_rows, first], dtype="<i8").tobytes())
    for name in SCHEMA.names:
        state.update(name.encode() + b"\n")
        for piece in _pieces(rows.column(name)):
            state.update(piece)
    return state.digest()


def _pieces(column: pa.Array) -> Iterator[Any]:
    if pa.types.is_integer(column.type):
        yield (
            np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).astype(f"<i{column.type.byte_width}").tobytes()
        )
        return
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    present = column.is_valid()
    yield present.cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes()
    if column.null_count:
        # Arrow allows bytes under a null; they are no part of the row.
        column = column.fill_null(b"" if pa.types.is_binary(column.type) else "")
    large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    width = np.dtype("<i8" if large else "<i4")
    _, offsets_buffer, values = column.buffers()
    offsets = np.frombuffer(offsets_buffer, width, len(column) + 1, column.offset * width.itemsize)
    yield np.diff(offsets).astype("<u4").tobytes()
    if values is not None and len(column):
        yield memoryview(values)[int(offsets[0]) : int(offsets[-1])]


def root(leaves: Sequence[bytes]) -> str:
    """The Merkle tree hash of RFC 6962 section 2.1 over `leaves`, which are leaf hashes already, as `sha256:…`."""
    return "sha256:" + _tree(list(leaves)).hex()


def _tree(level: list[bytes]) -> bytes:
    if not level:
        return hashlib.sha256().digest()
    # Pairing from the left and handing up an odd last one gives the tree of RFC 6962.
    while len(level) > 1:
        pairs = [hashlib.sha256(_NODE + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return level[0]


def partition_digest(leaves: Iterable[bytes]) -> str:
    """The digest of some blocks in order: of a file, as the manifest names it."""
    return "sha256:" + hashlib.sha256(b"".join(leaves)).hexdigest()


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its number, and its rows in order."""

    number: int
    rows: pa.RecordBatch


def regrouped(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[Block]:
    """Whole blocks from the rows of one file, however they were cut in between. Raises BlockError."""
    held: list[pa.RecordBatch] = []
    size = 0
    number = -1
    for rest in batches:
        while rest.num_rows:
            if not held:
                number, inside = divmod(rest.column("index")[0].as_py(), BLOCK_ROWS)
                if inside:
                    raise BlockError(
                        f"expected row {number * BLOCK_ROWS} at the start of a block, got {inside} further"
                    )
            due = block_rows(number, count)
            if due < 1:
                raise BlockError(f"expected {count} rows, got a row with number {number * BLOCK_ROWS} after their end")
            taken = rest.slice(0, due - size)
            rest = rest.slice(taken.num_rows)
            held.append(taken)
            size += taken.num_rows
            if size == due:
                yield Block(number, _joined(held, number))
                held, size = [], 0
    if held:
        raise BlockError(f"expected {block_rows(number, count)} rows in block {number}, got {size}")


def _joined(held: list[pa.RecordBatch], number: int) -> pa.RecordBatch:
    rows = held[0] if len(held) == 1 else pa.Table.from_batches(held).combine_chunks().to_batches()[0]
    index = rows.column("index").to_numpy(zero_copy_only=False)
    start = number * BLOCK_ROWS
    if not np.array_equal(index, np.arange(start, start + len(index))):
        raise BlockError(f"expected the rows of block {number} in order, each once; got another order")
    return rows


# Blocks that are made from one stock.
STOCK_BLOCKS = max(1, STOCK_ROWS // BLOCK_ROWS)
_TYPES = {pa.int64(): "bigint", pa.int8(): "tinyint", pa.string(): "string", pa.binary(): "binary"}
_LEAVES = pa.schema(
    {"block": pa.int64(), "rows": pa.int64(), "leaf": pa.binary(), "categories": pa.string(), "file": pa.string()}
)


def in_spark(schema: pa.Schema) -> str:
    """The columns as Spark is given them."""
    return ", ".join(f"{column.name} {_TYPES[column.type]}" for column in schema)


ROW_SCHEMA, LEAF_SCHEMA = in_spark(SCHEMA), in_spark(_LEAVES)


def block_of(seed: int, number: int, count: int) -> Block:
    """Block `number` of a batch of `count` rows, constructed."""
    return Block(number, batch(seed, number * BLOCK_ROWS, block_rows(number, count)))


def numbers_in(ranges: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers of Spark's range that a partition got."""
    for numbers in ranges:
        yield from numbers.column(0).to_pylist()


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
        for unit in numbers_in(batches):
            yield from range(unit * self.size, min(self.end, (unit + 1) * self.size))


@dataclass(frozen=True, slots=True)
class Construct:
    """Units to rows."""

    seed: int
    count: int
    units: Units

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each block, in order."""
        return (block.rows for block in self.blocks(batches))

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        """The blocks."""
        return (block_of(self.seed, number, self.count) for number in self.units.blocks(batches))


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
            file = block.rows.column("file")[0].as_py()
            row = (block.number, block.rows.num_rows, leaf(block.rows), json.dumps(counted), file)
            yield pa.RecordBatch.from_pylist([dict(zip(_LEAVES.names, row, strict=True))], schema=_LEAVES)
