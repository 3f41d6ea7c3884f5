"""Putting documents together: a document is a run of fragment numbers, and one `take` writes all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct.dice import Integers


def gather(fragments: pa.BinaryArray, numbers: Integers, bounds: Integers) -> pa.BinaryArray:
    """Row r is the fragments `numbers[bounds[r]:bounds[r + 1]]`, one behind the other.

    Arrow writes taken values without gaps, so that the rows lie in the taken data already and only need other offsets.
    The result must be smaller than 2 GiB.
    """
    taken = fragments.take(pa.array(numbers))
    _, offsets, data = taken.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[taken.offset : taken.offset + len(numbers) + 1]
    rows = pa.py_buffer(np.ascontiguousarray(ends[bounds]))
    return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, [None, rows, data])


def lengths(fragments: pa.BinaryArray) -> Integers:
    """The length of each fragment in bytes."""
    offsets = np.frombuffer(fragments.buffers()[1], dtype=np.int32)
    return np.diff(offsets[fragments.offset : fragments.offset + len(fragments) + 1]).astype(np.int64)


def interleave(spellings: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
    """One array in which the spellings of a lexeme stand side by side, from one array for each spelling."""
    count = len(spellings[0])
    order = np.arange(count)[:, None] + np.arange(len(spellings))[None, :] * count
    return pa.concat_arrays(list(spellings)).take(pa.array(order.ravel()))


def starts_of(counts: Integers) -> Integers:
    """Where each of `counts` things begins if they lie one behind the other; one longer, the last is the total."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def places_within(counts: Integers) -> Integers:
    """0 … count - 1 for each count, one behind the other."""
    starts = starts_of(counts)
    return np.arange(starts[-1], dtype=np.int64) - np.repeat(starts[:-1], counts)
