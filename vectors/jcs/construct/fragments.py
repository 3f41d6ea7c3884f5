"""Putting documents together: a document is a run of fragment numbers, and one `take` writes all of them at once.

The first fragments are the marks between values, punctuation with whitespace around it: the same in every block.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct.dice import Dice, Integers


def gather(fragments: pa.BinaryArray, numbers: Integers, bounds: Integers) -> pa.BinaryArray:
    """Row r is the fragments `numbers[bounds[r]:bounds[r + 1]]`, one after the other.

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
    """Where each of `counts` things begins if they lie one after the other; one longer, the last is the total."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def places_within(counts: Integers) -> Integers:
    """0 … count - 1 for each count, one after the other."""
    starts = starts_of(counts)
    return np.arange(starts[-1], dtype=np.int64) - np.repeat(starts[:-1], counts)


# How many forms each mark has; the first is the canonical one, without whitespace.
FORMS = 64
_WHITESPACE = (" ", "\t", "\n", "\r")
_SEED = 8785


class Mark(IntEnum):
    """A mark; form f of it is fragment `mark.fragment + f`."""

    NOTHING = 0
    SPACE = 1  # whitespace alone; only the first form is empty
    COMMA = 2
    COLON = 3
    ARRAY = 4
    ARRAY_END = 5
    OBJECT = 6
    OBJECT_END = 7
    QUOTE = 8  # never with whitespace: it is the end of a string that is put together from pieces

    @property
    def fragment(self) -> int:
        """The number of its first form."""
        return self.value * FORMS


def marks() -> list[bytes]:
    """All forms of all marks, mark after mark."""
    dice = Dice(_SEED)
    made = []
    for mark, text in zip(Mark, ("", "", ",", ":", "[", "]", "{", "}", '"'), strict=True):
        for form in range(FORMS):
            before = behind = ""
            if mark is Mark.SPACE and form:
                before = _space(dice, 1)
            elif form and mark not in (Mark.NOTHING, Mark.SPACE, Mark.QUOTE):
                before, behind = _space(dice, 0), _space(dice, 0)
            made.append((before + text + behind).encode("ascii"))
    return made


def _space(dice: Dice, least: int) -> str:
    # Mostly short, sometimes an indented line.
    if dice.one_in(6):
        return dice.pick(("\n", "\r\n")) + " " * dice.between(0, 8)
    return "".join(dice.pick(_WHITESPACE) for _ in range(max(least, dice.between(-1, 2))))
