"""Writing drafts down: fragment numbers in the order of the text, gathered at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.construct.characters import SPELLINGS
from holdfast.vectors.jcs.construct.defects import DefectPlace
from holdfast.vectors.jcs.construct.dice import Integers, byte
from holdfast.vectors.jcs.construct.drafts import Drafts
from holdfast.vectors.jcs.construct.fragments import FORMS, Mark, gather, starts_of
from holdfast.vectors.jcs.construct.recipes import CoreKind
from holdfast.vectors.jcs.construct.stock import Plants, Stock

# By kind: its opening, its closing, and the separator of its children.
_OPEN = np.asarray([Mark.NOTHING.fragment, Mark.ARRAY.fragment, Mark.OBJECT.fragment, Mark.QUOTE.fragment])
_CLOSE = np.asarray([Mark.NOTHING.fragment, Mark.ARRAY_END.fragment, Mark.OBJECT_END.fragment, Mark.QUOTE.fragment])
_BETWEEN = np.asarray([Mark.NOTHING.fragment, Mark.COMMA.fragment, Mark.COMMA.fragment, Mark.NOTHING.fragment])


@dataclass(slots=True)
class _Text:
    """Fragments of documents by child, in the order of the text: what follows on a child is in `marks`.

    `members` are the numbers of the children that have a name; `names` and `colons` belong to them. Without `colons`
    the names bring theirs along.
    """

    members: Integers
    names: Integers
    colons: Integers | None
    values: Integers
    marks: Integers


def write_canonical(stock: Stock, drafts: Drafts) -> pa.BinaryArray:
    """The canonical form of each draft."""
    members = drafts.members
    marks = _BETWEEN[drafts.kinds[drafts.rows]]
    marks[drafts.starts[1:] - 1] = _CLOSE[drafts.kinds]
    # A canonical name brings its colon along.
    names = drafts.names[members] * SPELLINGS
    text = _Text(members, names, None, drafts.values * SPELLINGS, marks)
    return _assembled(stock, drafts, text, _OPEN[drafts.kinds], drafts.wrappers * SPELLINGS, None)


def write_documents(stock: Stock, drafts: Drafts, plants: Plants | None) -> tuple[pa.BinaryArray, Integers]:
    """Each draft in its disguise, and the `Reason.code` (or 0) that a strict profile finds in it."""
    rows, members = drafts.rows, drafts.members
    spelling = drafts.name_spelling[members]
    names = drafts.names[members] * SPELLINGS + spelling
    values = drafts.values * SPELLINGS + drafts.value_spelling
    # Marks of spaced documents take any of their forms, those of others the first.
    marked = np.where(drafts.spaced & (drafts.kinds != CoreKind.TEXT), FORMS - 1, 0)
    forms = byte(drafts.draws, 3) & marked[rows]
    # The canonical spelling of a name has the colon in it already.
    colons = np.where(spelling > 0, Mark.COLON.fragment + (byte(drafts.draws, 2)[members] & marked[rows[members]]), 0)
    text = _Text(members, names, colons, values, _BETWEEN[drafts.kinds[rows]] + forms)
    found = _reasons(stock, drafts, text)
    if plants is not None:
        _plant_in_children(drafts, text, plants)
    _disorder(drafts, text)
    last = drafts.starts[1:] - 1
    text.marks[last] = _CLOSE[drafts.kinds] + forms[last]
    opening = _OPEN[drafts.kinds] + forms[drafts.starts[:-1]]
    ends = np.stack([Mark.SPACE.fragment + drafts.lead, Mark.SPACE.fragment + drafts.trail])
    if plants is not None:
        _plant_around(drafts, text.marks, plants, ends)
    wrappers = drafts.wrappers * SPELLINGS + drafts.wrapper_spelling
    return _assembled(stock, drafts, text, opening, wrappers, ends), found


def _reasons(stock: Stock, drafts: Drafts, text: _Text) -> Integers:
    found = stock.reasons[text.values]
    found[text.members] |= stock.reasons[text.names]
    # By construction the reasons of a document are equal, or absent.
    return np.bitwise_or.reduceat(found, drafts.starts[:-1]).astype(np.int64)


def _disorder(drafts: Drafts, text: _Text) -> None:
    """Put the members of objects in their order in the text. Elements of arrays stay where they are."""
    ordering = drafts.ordering[drafts.rows[text.members]]
    places = np.flatnonzero(ordering > 0)
    moved = text.members[places]
    # Sorted by the document first, then by 24 bits of its own, then by the place: never a tie.
    key = drafts.draws[moved] >> np.uint64(40)
    backwards = ordering[places] == 2
    key[backwards] = np.uint64(2**24 - 1) - (moved[backwards] & (2**24 - 1)).astype(np.uint64)
    key |= drafts.rows[moved].astype(np.uint64) << np.uint64(24)
    order = np.argsort(key, kind="stable")
    text.names[places] = text.names[places[order]]
    text.values[moved] = text.values[moved[order]]
    if text.colons is not None:
        text.colons[places] = text.colons[places[order]]


def _plant_in_children(drafts: Drafts, text: _Text, plants: Plants) -> None:
    places, fragments = plants
    at = drafts.starts[:-1] + drafts.planted
    chosen = places == DefectPlace.VALUE
    text.values[at[chosen]] = fragments[chosen]
    assert text.colons is not None
    chosen = places == DefectPlace.NAME
    members = np.searchsorted(text.members, at[chosen])
    text.names[members] = fragments[chosen]
    # A name in its canonical spelling brings a colon along; a planted one does not.
    text.colons[members] = np.maximum(text.colons[members], Mark.COLON.fragment)
    chosen = places == DefectPlace.COLON
    members = np.searchsorted(text.members, at[chosen])
    text.colons[members] = fragments[chosen]
    text.names[members] += drafts.name_spelling[at[chosen]] == 0


def _plant_around(drafts: Drafts, marks: Integers, plants: Plants, ends: npt.NDArray[np.int64]) -> None:
    places, fragments = plants
    first, last = drafts.starts[:-1], drafts.starts[1:] - 1
    chosen = places == DefectPlace.SEPARATOR
    # After any child but the last.
    between = first + np.minimum(drafts.planted, np.maximum(drafts.counts - 2, 0))
    marks[between[chosen]] = fragments[chosen]
    chosen = places == DefectPlace.CLOSE
    marks[last[chosen]] = fragments[chosen]
    for place, row in ((DefectPlace.LEAD, 0), (DefectPlace.TRAIL, 1)):
        chosen = places == place
        ends[row, chosen] = fragments[chosen]


def _assembled(
    stock: Stock,
    drafts: Drafts,
    text: _Text,
    opening: Integers,
    wrappers: Integers,
    ends: npt.NDArray[np.int64] | None,
) -> pa.BinaryArray:
    """Lay the numbers out: lead, wrappers, opening, children, wrappers backwards, trail; and gather them."""
    around = 0 if ends is None else 1
    # A child is its value and a mark, a member has a name before it, and a colon.
    widths: Integers = np.where(drafts.kinds == CoreKind.OBJECT, 3 if text.colons is None else 4, 2)
    bounds = starts_of(1 + 2 * around + 2 * drafts.depths + widths * drafts.counts)
    numbers = np.empty(bounds[-1], dtype=np.int64)
    starts, stops = bounds[:-1], bounds[1:]
    if ends is not None:
        numbers[starts] = ends[0]
        numbers[stops - 1] = ends[1]
    body = starts + around + drafts.depths
    numbers[body] = opening
    wrapper_starts = starts_of(drafts.depths)[:-1]
    level = np.arange(len(wrappers)) - np.repeat(wrapper_starts, drafts.depths)
    numbers[np.repeat(starts + around, drafts.depths) + level] = wrappers
    closing = wrappers + stock.wrapper_count * SPELLINGS
    numbers[np.repeat(stops - around - 1, drafts.depths) - level] = closing
    # Where the mark after each child stands, and before it the value, the colon and the name.
    marks = (body - widths * (drafts.starts[:-1] - 1))[drafts.rows]
    marks += widths[drafts.rows] * np.arange(len(drafts.rows))
    numbers[marks] = text.marks
    numbers[marks - 1] = text.values
    before = marks[text.members] - 2
    if text.colons is not None:
        numbers[before] = text.colons
        before -= 1
    numbers[before] = text.names
    return gather(stock.fragments, numbers, bounds)
