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

from holdfast.vectors.jcs.es6.stream import Partition, PartitionLines
from holdfast.vectors.jcs.es6.text import text

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
