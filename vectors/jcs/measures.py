"""How large documents are along each axis: depth, members, lengths. So that a verdict says how far it reached.

Columnar: the structure is found in the bytes of all documents at once. Documents need not be JSON. The measures of
malformed text are about those of the text up to its defect. How far a run reached are the greatest measures, by
category, over rows that were answered as expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.spark.tally import CATEGORIES
from holdfast.vectors.taxonomy import Category

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@unique
class Measure(StrEnum):
    """An axis along which a document can be large."""

    BYTES = "bytes", "bytes"
    DEPTH = "depth", "levels"
    MEMBERS = "members", "members of one object"
    ELEMENTS = "elements", "elements of one array"
    UNITS = "units", "UTF-16 units of one string or name"
    NUMBER = "number", "characters of one number"
    SPACE = "space", "bytes of whitespace in a row"

    words: str

    def __new__(cls, value: str, words: str = "") -> Measure:
        """`words` say what is counted."""
        made = str.__new__(cls, value)
        made._value_, made.words = value, words
        return made


_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
# By byte: the UTF-16 units of the character that begins with it, 0 for continuation bytes.
_UNITS = np.asarray([1] * 0x80 + [0] * 0x40 + [1] * 0x30 + [2] * 0x10, dtype=np.int64)


def _set_of(members: bytes) -> Flags:
    flags = np.zeros(256, dtype=np.bool_)
    flags[list(members)] = True
    return flags


_OPENING, _CLOSING = _set_of(b"[{"), _set_of(b"]}")
_STRUCTURE = _set_of(b"[]{},")
_NUMBER, _SPACE = _set_of(b"+-.0123456789eE"), _set_of(b" \t\r\n")


def measured(documents: pa.BinaryArray) -> dict[Measure, Integers]:
    """Each measure of each document."""
    _, offsets, buffer = documents.buffers()
    rows = len(documents)
    bounds = np.frombuffer(offsets, np.int32)[documents.offset : documents.offset + rows + 1].astype(np.int64)
    data: Bytes = np.frombuffer(buffer or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    lengths = np.diff(bounds)
    row_of = np.repeat(np.arange(rows), lengths)
    escaped = _escaped(data, row_of)
    quotes = (data == _QUOTE) & ~escaped
    count = np.concatenate([[0], np.cumsum(quotes)])
    inside = ((count[1:] - count[bounds[:-1]][row_of]) & 1).astype(np.bool_) & ~quotes
    outside = ~inside & ~quotes
    units = np.where(inside & ~escaped & (data != _BACKSLASH) | (inside & escaped), _UNITS[data], 0)
    hexadecimal = np.flatnonzero(escaped & inside & (data == ord("u")))
    for digit in range(1, 5):
        at = hexadecimal + digit
        units[at[at < len(data)]] = 0
    depth, members, elements = _containers(data, outside, row_of, rows)
    return {
        Measure.BYTES: lengths,
        Measure.DEPTH: depth,
        Measure.MEMBERS: members,
        Measure.ELEMENTS: elements,
        Measure.UNITS: _longest(inside, units, row_of, rows),
        Measure.NUMBER: _longest(outside & _NUMBER[data], None, row_of, rows),
        Measure.SPACE: _longest(outside & _SPACE[data], None, row_of, rows),
    }


def depths(documents: Sequence[bytes]) -> list[int]:
    """How deep each document nests at its deepest, as far as its brackets show."""
    found: list[int] = measured(pa.array(documents, pa.binary()))[Measure.DEPTH].tolist()
    return found


def _escaped(data: Bytes, row_of: Integers) -> Flags:
    """The bytes directly after a backslash that escapes; of a run of backslashes every second one does not."""
    found = np.zeros(len(data), dtype=np.bool_)
    at = np.flatnonzero(data == _BACKSLASH)
    if len(at):
        starts = np.flatnonzero(np.diff(at, prepend=-2) != 1)
        place = np.arange(len(at)) - np.repeat(starts, np.diff(np.append(starts, len(at))))
        behind = at[place % 2 == 0] + 1
        behind = behind[behind < len(data)]
        found[behind[row_of[behind] == row_of[behind - 1]]] = True
    return found


def _longest(chosen: Flags, weights: Integers | None, row_of: Integers, rows: int) -> Integers:
    """By row, the greatest weight (length, if there are none) of a run of chosen bytes."""
    found = np.zeros(rows, dtype=np.int64)
    at = np.flatnonzero(chosen)
    if len(at):
        starts = np.flatnonzero((np.diff(at, prepend=-2) != 1) | (np.diff(row_of[at], prepend=-1) != 0))
        weight = np.ones(len(at), dtype=np.int64) if weights is None else weights[at]
        np.maximum.at(found, row_of[at[starts]], np.add.reduceat(weight, starts))
    return found


def _containers(data: Bytes, outside: Flags, row_of: Integers, rows: int) -> tuple[Integers, Integers, Integers]:
    """By row, the depth, and the greatest number of members and of elements of one container."""
    depth, members, elements = (np.zeros(rows, dtype=np.int64) for _ in range(3))
    at = np.flatnonzero(outside & _STRUCTURE[data])
    if not len(at):
        return depth, members, elements
    kinds, owners = data[at], row_of[at]
    opening, closing = _OPENING[kinds], _CLOSING[kinds]
    sums = np.cumsum(opening.astype(np.int64) - closing)
    firsts = np.flatnonzero(np.diff(owners, prepend=-1) != 0)
    before = np.where(firsts > 0, sums[firsts - 1], 0)
    levels = sums - np.repeat(before, np.diff(np.append(firsts, len(at)))) + closing
    np.maximum.at(depth, owners, levels)
    # The brackets and commas of one level of one document stand together, so that those between two openings are of
    # one container.
    order = np.lexsort((levels, owners))
    starts = np.flatnonzero(opening[order])
    if len(starts):
        commas = np.concatenate([[0], np.cumsum(kinds[order] == _COMMA)])
        ends = np.append(starts[1:], len(order))
        held = commas[ends] - commas[starts] + 1
        boxes = order[starts]
        empty = _CLOSING[data[np.minimum(at[boxes] + 1, len(data) - 1)]]
        held = np.where(empty, 0, held)
        objects = kinds[boxes] == ord("{")
        np.maximum.at(members, owners[boxes[objects]], held[objects])
        np.maximum.at(elements, owners[boxes[~objects]], held[~objects])
    return depth, members, elements


# How many generated rows of each category are measured in a block: the longest ones. All of them would take longer
# than a fast SDK does.
_MEASURED = 8
_SHAPE = (len(CATEGORIES), len(Measure))


@dataclass(frozen=True, slots=True)
class Reached:
    """The greatest measures so far: a line for each category, in their order."""

    most: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_SHAPE, dtype=np.int64))

    def see(
        self,
        rows: pa.RecordBatch,
        categories: npt.NDArray[np.int64],
        agreeing: npt.NDArray[np.int64],
        *,
        every: bool,
    ) -> None:
        """Measure the rows of these numbers, or without `every` the longest of each category."""
        documents = rows.column("document")
        if not every:
            lengths = pc.binary_length(documents).to_numpy(zero_copy_only=False)[agreeing]
            agreeing = agreeing[np.lexsort((-lengths, categories[agreeing]))]
            counted = np.bincount(categories[agreeing], minlength=len(CATEGORIES))
            place = np.arange(len(agreeing)) - np.repeat(np.cumsum(counted) - counted, counted)
            agreeing = agreeing[place < _MEASURED]
        if len(agreeing):
            found = measured(documents.take(pa.array(agreeing)))
            for column, measure in enumerate(Measure):
                np.maximum.at(self.most[:, column], categories[agreeing], found[measure])

    def packed(self) -> bytes:
        """For the way; `add` reads it."""
        return self.most.astype("<i8").tobytes()

    def add(self, packed: bytes) -> None:
        """Take what another one has seen."""
        np.maximum(self.most, np.frombuffer(packed, "<i8").reshape(_SHAPE), out=self.most)

    def table(self) -> Mapping[Category, Mapping[Measure, int]]:
        """By category, each measure that is not 0; a category is left out of which no row was measured."""
        lines = {
            category: {measure: int(value) for measure, value in zip(Measure, line, strict=True) if value}
            for category, line in zip(CATEGORIES, self.most, strict=True)
        }
        return {category: line for category, line in lines.items() if line}
