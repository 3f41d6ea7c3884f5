"""Drawing documents: which children, which names, in which disguise. Columnar, a pure function of the rows' keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.vectors.jcs.construct.characters import SPELLINGS
from holdfast.vectors.jcs.construct.defects import Host
from holdfast.vectors.jcs.construct.dice import Integers, Words, below, byte, keys_of, lane, mix
from holdfast.vectors.jcs.construct.fragments import FORMS, places_within, starts_of
from holdfast.vectors.jcs.construct.names import SHAPES, Family
from holdfast.vectors.jcs.construct.recipes import CoreKind, Guise, Recipe, Weights
from holdfast.vectors.jcs.construct.segments import Segment
from holdfast.vectors.jcs.construct.stock import Flags, Needs, Stock

# The draws of a row and of a child, by what they decide.
_LANE_SHAPE, _LANE_PLANT, _LANE_SIZE, _LANE_NAMES, _LANE_CHILD, _LANE_WRAPPER = range(6)
_LANE_GUISE, _LANE_FORMS, _LANE_ENDS = range(16, 19)
# Guesses at the bytes of a child, and of a piece of a long string, to draw enough of them for the wanted size. Where
# one is too great, the document is smaller than wanted.
_BYTES_OF_CHILD = 110
_BYTES_OF_PIECE = 60
# The number of parts of a draw that distinguish the children of a row. No document has more children.
_PLACE_KEYS = keys_of(0, np.arange(2**16 // _BYTES_OF_PIECE + 2, dtype=np.int64))
# The least that a child costs in a document: a comma and a colon.
_BYTES_OF_MARKS = 2
# Of 256 defects that need no neighbour, how many have none; of 256 planted children, how many are the first, the last.
_ALONE_OF_256 = 24
_FIRST_OF_256 = _LAST_OF_256 = 64
# By family: how many groups of names it has, and how many names a group.
_GROUPS = np.asarray([SHAPES[family].groups for family in Family], dtype=np.int64)
_GROUP_SIZES = np.asarray([SHAPES[family].size for family in Family], dtype=np.int64)


# Recipes as tables: by choice, for each recipe and each random byte, what it chooses.
Menu = Mapping[str, Integers]


def menu(recipes: Sequence[Recipe]) -> Menu:
    """The tables of these recipes, one row each."""
    choices = ("planted", "company", "kinds", "counts", "families", "depths", "guises")
    bits = np.asarray([max(each.largest.bit_length() - 1, 0) for each in recipes], dtype=np.int64)
    return {name: np.stack([table(getattr(each, name)) for each in recipes]) for name in choices} | {"size_bits": bits}


def table(weights: Weights) -> Integers:
    """256 choices in the proportions of the weights; each has at least its rounded-down part."""
    ends = np.cumsum(list(weights.values())) * 256 // sum(weights.values())
    return np.asarray(list(weights), dtype=np.int64)[np.searchsorted(ends, np.arange(256), side="right")]


@dataclass(slots=True)
class Drafts:
    """Documents before they are written. `starts` has the first child of each, and the number of all at the end.

    By document: `kinds`, `depths`, `counts`, `planted` (which child is the planted one), `spaced`, `ordering` (0 as
    drawn, 1 shuffled, 2 reversed), `lead` and `trail` (forms of the whitespace around it).
    By child, in canonical order: `rows` (its document), `values` and `names` as lexemes, `value_spelling`,
    `name_spelling`, and `draws`, random bits for its marks and its place. `members` are the numbers of the children
    that are in objects; names only mean something for them.
    By wrapper: `wrappers`, `wrapper_spelling`.
    """

    kinds: Integers
    depths: Integers
    counts: Integers
    starts: Integers
    rows: Integers
    planted: Integers
    spaced: Flags
    ordering: Integers
    values: Integers
    names: Integers
    members: Integers
    value_spelling: Integers
    name_spelling: Integers
    draws: Words
    wrappers: Integers
    wrapper_spelling: Integers
    lead: Integers
    trail: Integers


def draw(
    stock: Stock, tables: Menu, recipes: Integers, keys: Words, guise_keys: Words, needs: Needs | None = None
) -> Drafts:
    """Draw a document for each key, after the recipe of that number. `guise_keys` decide only the disguise."""
    shape = lane(keys, _LANE_SHAPE)
    kinds = tables["kinds"][recipes, byte(shape, 0)]
    families = tables["families"][recipes, byte(shape, 1)]
    depths = tables["depths"][recipes, byte(shape, 2)]
    counts = tables["counts"][recipes, byte(shape, 3)]
    plant = lane(keys, _LANE_PLANT)
    if needs is not None:
        kinds, depths = _hosted(kinds, depths, needs, shape)
        counts = np.maximum(np.where(needs.placed & (byte(plant, 2) < _ALONE_OF_256), 1, counts), needs.children)
    sizes = _sizes(tables["size_bits"][recipes], lane(keys, _LANE_SIZE))
    pieces = np.where(kinds == CoreKind.TEXT, _BYTES_OF_PIECE, _BYTES_OF_CHILD)
    counts = np.where(sizes > 0, sizes // pieces + 1, counts)
    counts = np.where(kinds == CoreKind.SCALAR, 1, counts)
    counts = np.where(kinds == CoreKind.OBJECT, np.minimum(counts, _GROUP_SIZES[families]), counts)

    guise = tables["guises"][recipes, byte(lane(guise_keys, _LANE_GUISE), 0)]
    spelled = (guise & Guise.SPELLED) != 0
    # The children.
    rows = np.repeat(np.arange(len(keys)), counts)
    starts = starts_of(counts)
    places = np.arange(len(rows)) - starts[rows]
    draws = _each(lane(keys, _LANE_CHILD), rows, places)
    segments = tables["company"].ravel()[(recipes * 256)[rows] + byte(draws, 0)]
    segments[(kinds == CoreKind.TEXT)[rows]] = Segment.BODY
    planted = _planted(plant, counts)
    loose = kinds != CoreKind.TEXT
    segments[(starts[:-1] + planted)[loose]] = tables["planted"][recipes, byte(plant, 0)][loose]
    values = stock.starts[segments] + below(draws, stock.sizes[segments])
    members = np.flatnonzero((kinds == CoreKind.OBJECT)[rows])
    names = np.zeros(len(rows), dtype=np.int64)
    bits = byte(draws, 1)[members]
    names[members] = _names(stock, families, counts, lane(keys, _LANE_NAMES), rows[members], places[members], bits)
    forms = _each(lane(guise_keys, _LANE_FORMS), rows, places)
    # SPELLINGS is a power of two.
    most = np.where(spelled, SPELLINGS - 1, 0)[rows]
    value_spelling = byte(forms, 0) & most
    name_spelling = byte(forms, 1) & most
    if needs is not None:
        _duplicate(names, values, starts, planted, needs, plant)

    wrapped, levels = np.repeat(np.arange(len(keys)), depths), places_within(depths)
    wrapper_draws = _each(lane(keys, _LANE_WRAPPER), wrapped, levels)
    wrapper_guise = _each(lane(guise_keys, _LANE_WRAPPER), wrapped, levels)
    ends = lane(guise_keys, _LANE_ENDS)
    spaced = (guise & Guise.SPACED) != 0
    drafts = Drafts(
        kinds=kinds,
        depths=depths,
        counts=counts,
        starts=starts,
        rows=rows,
        planted=planted,
        spaced=spaced,
        ordering=np.where((guise & Guise.SHUFFLED) != 0, 1, 0),
        values=values,
        names=names,
        members=members,
        value_spelling=value_spelling,
        name_spelling=name_spelling,
        draws=forms,
        wrappers=stock.wrapper_start + below(wrapper_draws, stock.wrapper_count),
        wrapper_spelling=np.where((spelled | spaced)[wrapped], byte(wrapper_guise, 0) % SPELLINGS, 0),
        lead=np.where(spaced, byte(ends, 0) % FORMS, 0),
        trail=np.where(spaced, byte(ends, 1) % FORMS, 0),
    )
    if sizes.any():
        _cut(stock, drafts, sizes)
    return drafts


def _hosted(kinds: Integers, depths: Integers, needs: Needs, shape: Words) -> tuple[Integers, Integers]:
    hosts = needs.hosts
    either = np.where(byte(shape, 4) & 1, CoreKind.ARRAY, CoreKind.OBJECT)
    kinds = np.select(
        [
            hosts == Host.SCALAR,
            hosts == Host.ARRAY,
            hosts == Host.OBJECT,
            (hosts == Host.CONTAINER) & (kinds != CoreKind.ARRAY) & (kinds != CoreKind.OBJECT),
        ],
        [np.int64(CoreKind.SCALAR), np.int64(CoreKind.ARRAY), np.int64(CoreKind.OBJECT), either],
        default=kinds,
    )
    return kinds, np.where(hosts == Host.SCALAR, 0, depths)


def _planted(draws: Words, counts: Integers) -> Integers:
    """Which child is the planted one: the first or the last in half of the documents, however many there are."""
    choice = byte(draws, 3)
    ends = np.where(choice < _FIRST_OF_256, 0, counts - 1)
    return np.where(choice < _FIRST_OF_256 + _LAST_OF_256, ends, below(draws, counts))


def _sizes(bits: Integers, draws: Words) -> Integers:
    # Evenly over the powers of two below 2^bits, and evenly within each; 0 where no size is wanted.
    power = np.int64(1) << (1 + byte(draws, 0) % np.maximum(bits - 1, 1))
    return np.where(bits > 0, power + below(draws, power), 0)


def _each(keys: Words, rows: Integers, places: Integers) -> Words:
    """A draw for each thing under the key of its row, by its place in the row."""
    return mix(keys[rows] + _PLACE_KEYS[places])


def _names(
    stock: Stock, families: Integers, counts: Integers, draws: Words, rows: Integers, places: Integers, bits: Integers
) -> Integers:
    # The group is divided into as many parts as there are names, and each part gives one: so they come in order.
    sizes = _GROUP_SIZES[families]
    bases = stock.family_starts[families] + below(draws, _GROUPS[families]) * sizes
    # Half of the objects draw from a window of the group that is just large enough, so that neighbours meet. Only the
    # whole group shows the order that the family UTF16 tests.
    windowed = ((byte(draws, 0) & 1) == 1) & (families != Family.UTF16)
    narrow = np.where(windowed, np.minimum(counts + 1, sizes), sizes)
    bases += byte(draws, 1) % (sizes - narrow + 1)
    count, size = counts[rows], narrow[rows]
    first = places * size // count
    after = (places + 1) * size // count
    names: Integers = bases[rows] + first + (bits * (after - first) >> 8)
    return names


def _duplicate(
    names: Integers, values: Integers, starts: Integers, planted: Integers, needs: Needs, plant: Words
) -> None:
    # The planted child takes the name of a neighbour, and in one of three the value, too.
    at = (starts[:-1] + planted)[needs.duplicates]
    other = np.where(planted[needs.duplicates] > 0, at - 1, at + 1)
    names[at] = names[other]
    same = byte(plant[needs.duplicates], 1) % 3 == 0
    values[at[same]] = values[other[same]]


def _cut(stock: Stock, drafts: Drafts, sizes: Integers) -> None:
    """Leave out the children that would make a document longer than its size; the first always stays."""
    sized = np.flatnonzero(sizes > 0)
    counts = drafts.counts[sized]
    starts = starts_of(counts)
    places = places_within(counts)
    rows = np.repeat(sized, counts)
    at = np.repeat(drafts.starts[sized], counts) + places
    costs = stock.lengths[drafts.values[at] * SPELLINGS + drafts.value_spelling[at]] + _BYTES_OF_MARKS
    names = stock.lengths[drafts.names[at] * SPELLINGS + drafts.name_spelling[at]]
    costs += np.where(drafts.kinds[rows] == CoreKind.OBJECT, names, 0)
    costs += np.where(drafts.spaced[rows] & (drafts.kinds[rows] != CoreKind.TEXT), stock.most_space * 2, 0)
    sums = starts_of(costs)
    reached = sums[1:] - np.repeat(sums[starts[:-1]], counts)
    room = sizes - _outside(stock, drafts)
    dropped = at[(reached > room[rows]) & (places > 0)]
    kept = np.ones(len(drafts.rows), dtype=np.bool_)
    kept[dropped] = False
    drafts.counts = drafts.counts - np.bincount(drafts.rows[dropped], minlength=len(sizes))
    drafts.starts = starts_of(drafts.counts)
    drafts.planted = np.minimum(drafts.planted, drafts.counts - 1)
    for name in ("rows", "values", "names", "value_spelling", "name_spelling", "draws"):
        setattr(drafts, name, getattr(drafts, name)[kept])
    drafts.members = np.flatnonzero((drafts.kinds == CoreKind.OBJECT)[drafts.rows])


def _outside(stock: Stock, drafts: Drafts) -> Integers:
    """The bytes around the children of each document: its wrappers, brackets, and whitespace at the ends."""
    opening = drafts.wrappers * SPELLINGS + drafts.wrapper_spelling
    both = stock.lengths[opening] + stock.lengths[opening + stock.wrapper_count * SPELLINGS]
    sums = starts_of(both)[starts_of(drafts.depths)]
    return np.diff(sums) + 2 + np.where(drafts.spaced, 4 * stock.most_space, 0)
