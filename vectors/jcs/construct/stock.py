"""The stock of a block of rows: every fragment that its documents are built from, and its defects as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.construct.defects import Defect, DefectPlace, Host
from holdfast.vectors.jcs.construct.dice import Integers, Words, below
from holdfast.vectors.taxonomy import Category

Flags = npt.NDArray[np.bool_]
# The replacements of generated parts, by document: a `DefectPlace` and a fragment.
Plants = tuple[Integers, Integers]
_CATEGORIES = tuple(Category)


class Side(IntEnum):
    """Which of the two documents: the one with the defect, or its twin."""

    BAD = 0
    TWIN = 1


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a row's defect for its document, by row: a `Host`, and how many children at least.

    `placed` are the rows whose defect stands first, last or alone more often than a draw would put it there.
    """

    hosts: Integers
    children: Integers
    duplicates: Flags
    placed: Flags


@dataclass(frozen=True, slots=True)
class Faults:
    """The defects of a stock as columns: by category where they begin and how many there are, and by defect the rest.

    One entry more than there are defects stands at the end, so that number -1 is a row without one.
    """

    starts: Integers
    sizes: Integers
    places: Integers
    hosts: Integers
    children: Integers
    reasons: Integers

    @staticmethod
    def of(found: Sequence[Defect]) -> Faults:
        """The columns of defects that are sorted by category."""
        names = [each.category for each in found]
        counts = np.asarray([names.count(category) for category in _CATEGORIES], dtype=np.int64)
        firsts = [names.index(category) if category in names else 0 for category in _CATEGORIES]
        return Faults(
            np.asarray(firsts, dtype=np.int64),
            counts,
            np.asarray([each.place for each in found] + [DefectPlace.NONE], dtype=np.int64),
            np.asarray([each.host for each in found] + [0], dtype=np.int64),
            np.asarray([each.children for each in found] + [1], dtype=np.int64),
            np.asarray([each.reason.code for each in found] + [0], dtype=np.int64),
        )

    def drawn(self, categories: Integers, draws: Words) -> Integers:
        """A defect for each row of a negative category, else -1."""
        sizes = self.sizes[categories]
        chosen = self.starts[categories] + below(draws, np.maximum(sizes, 1))
        return np.where(sizes > 0, chosen, -1)

    def needs(self, numbers: Integers, members: Flags) -> Needs:
        """The requirements of these defects for their documents; where `members`, the document needs two members."""
        hosts = np.where(members, Host.OBJECT, self.hosts[numbers])
        children = np.where(members, 2, self.children[numbers])
        return Needs(hosts, children, self.places[numbers] == DefectPlace.DUPLICATE, numbers >= 0)

    def plants(self, defect_start: int, numbers: Integers, side: Side) -> Plants:
        """The replacements for the defects of these numbers."""
        places = self.places[numbers]
        if side is Side.TWIN:
            places = np.where(places == DefectPlace.DUPLICATE, DefectPlace.NAME, places)
        return places, defect_start + 2 * numbers + side


@dataclass(frozen=True, slots=True)
class Stock:
    """Fragments and where what lies among them.

    Fragments 0 … are the marks. From there on a lexeme is four fragments, its spellings, the canonical one first:
    lexeme l is the fragments 4l … 4l + 3. `starts` and `sizes` are lexemes by `Segment`, `family_starts` by `Family`.
    Wrapper w opens with lexeme `wrapper_start` + w and closes with the one `wrapper_count` further. The bad and the
    good text of defect d are the fragments `defect_start` + 2d and the next. `reasons` has the `Reason.code` of each
    fragment or 0. `lengths` are bytes; whitespace beside a mark is at most `most_space` bytes.
    """

    fragments: pa.BinaryArray
    lengths: Integers
    reasons: npt.NDArray[np.uint8]
    starts: Integers
    sizes: Integers
    family_starts: Integers
    wrapper_start: int
    wrapper_count: int
    defect_start: int
    defects: tuple[Defect, ...]
    faults: Faults
    most_space: int
