"""The stream as documents for a canonicaliser: each line's number spelled another way, and the text it has to become.

A document is an array of one number, written with 17 significant digits and an exponent (`[-3.3333333333333333E+20]`):
enough digits to name every double, and never the canonical spelling, so that no program passes by copying. A wrong
answer can only come from the number text or from the parser.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.es6.slots import LEAST_ROOM, slots
from holdfast.vectors.jcs.es6.stream import Partition, PartitionLines

# ECMAScript's Number::toString as an Arrow column

# The room before a text, and the byte that ends the row before.
_GAP = LEAST_ROOM + 1


def text(values: npt.NDArray[np.float64]) -> pa.StringArray:
    """The canonical text of every double of `values`, shape `(n,)`: RFC 8785 section 3.2.2.3; -0 is `0`.

    At most about 80 million values (Arrow's offsets of 32 bits).

    Raises:
        ValueError: a value is NaN or infinite.
    """
    count = len(values)
    rows = slots(values, LEAST_ROOM)
    ends = rows.ends - _GAP * np.arange(1, count + 1)
    if count and ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"expected at most 2 GiB of text; got {ends[-1]} bytes: make the column in several pieces")
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends
    free = np.frombuffer(rows.buffer, np.uint8)
    starts = rows.starts
    for back in range(1, _GAP + 1):
        free[starts - back] = 0
    # The bytes that close the array follow the last text.
    del free
    packed = bytes(memoryview(rows.buffer)[: int(rows.ends[-1])] if count else b"").replace(bytes(_GAP), b"")
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(packed))


# Rows of a batch: 1.2 MB, and small enough that a runner which is fed from it starts at once.
BATCH_ROWS = 16_384
SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64(), nullable=False),  # counted from 0, in the whole stream
        pa.field("document", pa.binary(), nullable=False),
        pa.field("canonical", pa.binary(), nullable=False),
    ]
)


def documents(partition: Partition) -> Iterator[pa.RecordBatch]:
    """The documents of one partition of a `stream.plan`, in order, in batches of `SCHEMA`.

    They need no digest to be checked against: `canonical` comes from the same code that makes the lines of `job.run`.
    """
    line = partition.start.lines
    for patterns in PartitionLines(partition).patterns():
        for first in range(0, len(patterns), BATCH_ROWS):
            rows = patterns[first : first + BATCH_ROWS]
            yield batch(line, rows)
            line += len(rows)


def batch(line: int, patterns: npt.NDArray[np.uint64]) -> pa.RecordBatch:
    """The documents of these bit patterns, the first of which is that of `line`."""
    values = patterns.view(np.float64)
    spelled = [b"[%.16E]" % value for value in values.tolist()]
    canonical = [b"[%b]" % row for row in text(values).cast(pa.binary()).to_pylist()]
    return pa.record_batch(
        [
            pa.array(range(line, line + len(patterns)), pa.int64()),
            pa.array(spelled, pa.binary()),
            pa.array(canonical, pa.binary()),
        ],
        schema=SCHEMA,
    )
