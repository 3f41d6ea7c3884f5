"""Pieces of the ladder's documents: each has its canonical text and another spelling, put together alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from holdfast.vectors.jcs.construct.characters import SPELLINGS, spellings
from holdfast.vectors.jcs.construct.decimals import Decimal
from holdfast.vectors.jcs.construct.defects import Defect, DefectPlace
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.numbers import reading
from holdfast.vectors.jcs.construct.segments import Reason, Segment
from holdfast.vectors.jcs.construct.stock import Stock
from holdfast.vectors.taxonomy import Category

_SEPARATORS = (b",", b",", b",", b", ", b",\n", b" ,\t", b" \r\n,")
# Of more children than this the whitespace would not fit into one line of the protocol.
_SPACED = 60_000
# What stands beside a defect.
_FILLERS = (b"0", b"7", b'"x"', b"null", b"[]", b"-1.5")


@dataclass(frozen=True, slots=True)
class Piece:
    """A value or a name: canonical, as the document spells it, and the reasons for which strict profiles refuse it."""

    canonical: bytes
    written: bytes
    reasons: frozenset[Reason] = frozenset()


@dataclass(frozen=True, slots=True)
class Defective:
    """A document with one defect, and its twin without it, which profile `core` accepts."""

    document: bytes
    twin: bytes
    reason: Reason
    note: str


Made = Piece | Defective


@dataclass(slots=True)
class Tools:
    """What a rung is made with: draws of its own, the lexemes and defects of the seed, and `turn`.

    `turn` counts the rungs of a category, so that these go through all of its defects one after the other.
    """

    dice: Dice
    stock: Stock
    turn: int

    def lexeme(self, segment: Segment) -> Piece:
        """A value of the segment, in one of its spellings."""
        number = int(self.stock.starts[segment]) + self.dice.below(int(self.stock.sizes[segment]))
        first, chosen = number * SPELLINGS, number * SPELLINGS + self.dice.between(1, SPELLINGS - 1)
        fragments = self.stock.fragments
        reasons = frozenset(reason for reason in Reason if reason.code == self.stock.reasons[chosen])
        return Piece(fragments[first].as_py(), fragments[chosen].as_py(), reasons)

    def defect(self, category: Category, places: Sequence[DefectPlace], fits: Callable[[Defect], bool]) -> Defect:
        """The next defect of the category at one of these places of a document."""
        found = [
            each for each in self.stock.defects if each.category is category and each.place in places and fits(each)
        ]
        return found[self.turn % len(found)]


@dataclass(frozen=True, slots=True)
class Step:
    """One rung: its name, what it is about, and how it is made."""

    name: str
    category: Category
    clause: str
    make: Callable[[Tools], Made] = field(compare=False)


def step(name: str, category: Category, clause: str, make: Callable[..., Made], *args: Any) -> Step:
    """A rung that `make` makes of `args` and its tools."""
    return Step(name, category, clause, partial(make, *args))


_REASONS = {
    Category.DUPLICATE_NAMES: Reason.DUPLICATE_NAME,
    Category.LONE_SURROGATES: Reason.LONE_SURROGATE,
    Category.INVALID_UTF8: Reason.INVALID_UTF8,
    Category.NUMBER_RANGE: Reason.NUMBER_OUT_OF_RANGE,
}


def defective(category: Category, before: bytes, bad: bytes, good: bytes, behind: bytes, note: str) -> Defective:
    """A document with a defect of this category between these, and its twin."""
    reason = _REASONS.get(category, Reason.SYNTAX)
    return Defective(before + bad + behind, before + good + behind, reason, note)


def around(*limits: int) -> tuple[int, ...]:
    """Each limit, one less and one more, in order."""
    return tuple(sorted({limit + step for limit in limits for step in (-1, 0, 1)}))


def within(before: bytes, piece: Piece, behind: bytes) -> Piece:
    """The same between these, which are written as their canonical text."""
    return Piece(before + piece.canonical + behind, before + piece.written + behind, piece.reasons)


def plain(text: bytes) -> Piece:
    """A value that is written as its canonical text."""
    return Piece(text, text)


def run(point: int, count: int = 1, spelling: int = 1) -> Piece:
    """A character `count` times, in one of its spellings (`characters.spellings`): a part of a string."""
    texts = spellings(point)
    return Piece(texts[0] * count, texts[spelling] * count)


def text_of(*parts: Piece) -> Piece:
    """A string or a name of these parts."""
    inside = Piece(b"".join([part.canonical for part in parts]), b"".join([part.written for part in parts]))
    return within(b'"', inside, b'"')


def number_of(sign: str, value: Decimal, written: str) -> Piece:
    """A number that is no greater than all doubles, spelled as `written`."""
    read = reading(sign, value)
    assert read is not None, written
    canonical, reasons = read
    return Piece(canonical.encode("ascii"), f"{sign}{written}".encode("ascii"), frozenset(reasons))


def _reasons(pieces: Iterable[Piece]) -> frozenset[Reason]:
    return frozenset[Reason]().union(*[piece.reasons for piece in pieces])


def array_of(dice: Dice, items: Sequence[Piece]) -> Piece:
    """An array of these, in one of four with whitespace."""
    separator = _separator(dice, len(items))
    return Piece(
        b"[" + b",".join([item.canonical for item in items]) + b"]",
        b"[" + separator.join([item.written for item in items]) + b"]",
        _reasons(items),
    )


def object_of(dice: Dice, members: Sequence[tuple[Piece, Piece]], order: Iterable[int]) -> Piece:
    """An object of these names and values, which come in UTF-16 order; the document has them in `order`."""
    canonical = [name.canonical + b":" + value.canonical for name, value in members]
    written = [members[place][0].written + b":" + members[place][1].written for place in order]
    separator = _separator(dice, len(members))
    return Piece(
        b"{" + b",".join(canonical) + b"}",
        b"{" + separator.join(written) + b"}",
        _reasons(part for member in members for part in member),
    )


def _separator(dice: Dice, children: int) -> bytes:
    return dice.pick(_SEPARATORS) if children <= _SPACED else b","


def shuffled(dice: Dice, count: int) -> list[int]:
    """The numbers below `count` in any order."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = dice.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


@lru_cache(maxsize=64)
def names_of(count: int) -> tuple[Piece, ...]:
    """`count` names in UTF-16 order, by construction: of one length in ASCII, and for large enough objects the edges.

    In UTF-16 the empty name comes first, then controls, ASCII, the surrogates of U+1F600, and U+FB33 after them.
    """
    low = ["", "\t", '"'] if count > 8 else []
    high = ["\u00f6", "\u20ac", "\U0001f600", "\ufb33"] if count > 8 else []
    first, last = ([text_of(*[run(ord(each)) for each in name]) for name in names] for names in (low, high))
    middle = [plain(b'"k%05d"' % number) for number in range(count - len(low) - len(high))]
    return (*first, *middle, *last)


def hosted(dice: Dice, defect: Defect, count: int, at: int, *, members: bool) -> Defective:
    """The defect in child number `at` of `count` of an object (`members`) or an array, or around them."""

    shift = dice.below(len(_FILLERS))
    # In the order of the text: what opens, then of each child its name, colon, value and separator.
    usual = [b"", b"{" if members else b"["]
    for child, name in enumerate(names_of(count)):
        named = [name.written, b":"] if members else [b"", b""]
        usual += [*named, _FILLERS[(child + shift) % len(_FILLERS)], b","]
    usual[-1:] = [b"}" if members else b"]", b""]
    place = {
        DefectPlace.LEAD: 0,
        DefectPlace.NAME: 4 * at + 2,
        DefectPlace.COLON: 4 * at + 3,
        DefectPlace.VALUE: 4 * at + 4,
        DefectPlace.SEPARATOR: 4 * min(at, count - 2) + 5,
        DefectPlace.CLOSE: len(usual) - 2,
        DefectPlace.TRAIL: len(usual) - 1,
    }[defect.place]
    bad, good = (b"".join([*usual[:place], text, *usual[place + 1 :]]) for text in (defect.bad, defect.good))
    return Defective(bad, good, defect.reason, defect.note)
