"""Names of members in families. Each family is made of groups; the names of a group are distinct and in UTF-16 order.

An object draws its names from one group, in order, so its canonical member order is known without sorting anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct.characters import Alphabet, Plane, is_noncharacter, utf16_order
from holdfast.vectors.jcs.construct.dice import Dice, Integers, derive
from holdfast.vectors.jcs.construct.strings import Quotes, Spelling

Name = tuple[int, ...]


class Family(IntEnum):
    """What the names of a group have to do with each other."""

    PLAIN = 0
    TEXT = 1
    UTF16 = 2
    PREFIX = 3
    TRAPS = 4
    UNNORMALISED = 5
    NONCHARACTER = 6


_PLAIN = "id name type value kind data user total price unit items tags next state".split()
# The ends of names that differ in nothing else: absent, NUL, C0, what is escaped, what sorts around quotes and
# brackets, DEL, C1, digits, letters with accents, and beyond.
_ENDINGS = (
    "", "\0", "\0\0", "\x01", "\x1f", " ", "!", '"', "#", "/", "0", "1", "10", "2", ":", "A", "[", "\\", "]", "_", "a",
    "aa", "~", "\x7f", "\x80", "\n", "\r", "\t", "\b", "\u00f6", "\u20ac", "\u2028", "\ud7ff", "\ue000", "\ufb33",
    "\uff20", "\U0001f600",
)  # fmt: skip
# Integer-like names come first in JavaScript objects; others are special in some language, or sort by locale.
_TRAPS = (
    "", "0", "1", "2", "9", "10", "11", "100", "-1", "-0", "01", "1.0", "1e1", "1E1", "4294967294", "4294967295",
    "4294967296", "9007199254740993", "__proto__", "constructor", "prototype", "toString", "toJSON", "valueOf",
    "hasOwnProperty", "length", "__class__", "__dict__", "$ref", "$type", "@type", "NaN", "Infinity", "null", "true",
    "false", "undefined", "Z", "z", "A", "a", "B", "b", "\u00e4", "\u00c4", "\u00e5", "\u00f6", "e", "\u00e9",
    "e\u0301", "\u00df", "ss", "SS", "I", "i", "\u0130", "\u0131", "co-op", "coop", "co op", "Coop", "_", "-", "\u4e00",
    "\u00b2", "\u0661", "ch", "cz", "ll", "lz", "\ufb01", "fi",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a block, all spellings side by side, and where each family begins."""

    fragments: pa.BinaryArray
    starts: dict[Family, int]
    noncharacters: Integers  # numbers of the names that have one


def names_of(spelling: Spelling, key: int) -> Names:
    """All families of a block."""
    alphabet = spelling.alphabet
    places = {point: place for place, point in enumerate(alphabet.points)}
    names: list[Name] = []
    starts = {}
    for family, shape in SHAPES.items():
        dice = Dice(derive(key, family))
        starts[family] = len(names)
        for _ in range(shape.groups):
            names += _group(shape.names(dice, alphabet), shape.size)
    characters = np.asarray([places[point] for name in names for point in name], dtype=np.int64)
    counts = np.asarray([len(name) for name in names], dtype=np.int64)
    special = [number for number, name in enumerate(names) if any(map(is_noncharacter, name))]
    fragments = spelling.spelled(characters, counts, Quotes.NAME, derive(key, len(Family)))
    return Names(fragments, starts, np.asarray(special, dtype=np.int64))


def _group(source: Iterator[Name], size: int) -> list[Name]:
    found: dict[Name, None] = {}
    while len(found) < size:
        found[next(source)] = None
    return sorted(found, key=utf16_order)


def _draw(dice: Dice, alphabet: Alphabet, planes: tuple[Plane, ...], most: int) -> Name:
    return tuple(alphabet.points[alphabet.draw(dice, dice.pick(planes))] for _ in range(dice.between(0, most)))


def _plain(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    while True:
        yield tuple(map(ord, dice.pick(_PLAIN))) + _draw(dice, alphabet, (Plane.LETTERS,), 4)


_TEXT = (Plane.LETTERS, Plane.LETTERS, Plane.LETTERS, Plane.PUNCTUATION, Plane.LATIN, Plane.BASIC, Plane.ASTRAL,
         Plane.QUOTES, Plane.BASIC_HIGH, Plane.CONTROLS)  # fmt: skip


def _text(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    while True:
        yield _draw(dice, alphabet, _TEXT, 9)


def _utf16(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    # After a common beginning, characters above and below the surrogates: code point order puts U+E000 … U+FFFF
    # before all astral characters, UTF-16 order after them. In order, the first seven are astral or below.
    begin = _draw(dice, alphabet, (Plane.LETTERS,), 2)
    for plane, count in ((Plane.BASIC, 2), (Plane.ASTRAL, 6), (Plane.BASIC_HIGH, 8)):
        firsts: set[int] = set()
        while len(firsts) < count:
            firsts.add(alphabet.points[alphabet.draw(dice, plane)])
        for first in sorted(firsts):
            yield (*begin, first, *_draw(dice, alphabet, (Plane.LETTERS, Plane.ASTRAL, Plane.BASIC_HIGH), 2))


def _prefix(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    begin = _draw(dice, alphabet, (Plane.LETTERS, Plane.LETTERS, Plane.ASTRAL, Plane.QUOTES), 3)
    yield begin
    while True:
        yield (*begin, *map(ord, dice.pick(_ENDINGS)))


def _traps(dice: Dice, _alphabet: Alphabet) -> Iterator[Name]:
    while True:
        if dice.one_in(4):
            yield tuple(map(ord, str(dice.below(10 ** dice.between(1, 11)))))
        else:
            yield tuple(map(ord, dice.pick(_TRAPS)))


def _unnormalised(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    while True:
        # Both forms of a letter, so that a normaliser makes them one name.
        letter, mark, composed = dice.pick(((0x65, 0x301, 0xE9), (0x41, 0x30A, 0xC5), (0x6E, 0x303, 0xF1)))
        rest = _draw(dice, alphabet, (Plane.LETTERS, Plane.COMBINING, Plane.UNNORMALISED), 2)
        yield (letter, mark, *rest)
        yield (composed, *rest)


def _noncharacters(dice: Dice, alphabet: Alphabet) -> Iterator[Name]:
    while True:
        name = _draw(dice, alphabet, _TEXT, 4)
        yield name
        yield (*name, alphabet.points[alphabet.draw(dice, Plane.NONCHARACTERS)])


@dataclass(frozen=True, slots=True)
class Shape:
    """How many groups a family has in a block, how many names a group, and where these come from."""

    groups: int
    size: int
    names: Callable[[Dice, Alphabet], Iterator[Name]]


SHAPES = {
    Family.PLAIN: Shape(3, 96, _plain),
    Family.TEXT: Shape(3, 96, _text),
    Family.UTF16: Shape(24, 16, _utf16),
    Family.PREFIX: Shape(20, 16, _prefix),
    Family.TRAPS: Shape(20, 16, _traps),
    Family.UNNORMALISED: Shape(10, 16, _unnormalised),
    Family.NONCHARACTER: Shape(4, 16, _noncharacters),
}
