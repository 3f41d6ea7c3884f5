"""Characters: planes that canonicalisers treat differently, and the ways JSON can spell each character in a string."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from holdfast.vectors.jcs.construct.dice import Dice

# RFC 8785 section 3.2.2.2: these have a short escape, other control characters a lower-case \u one.
SHORT_ESCAPES = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
# The spellings of a character, and of everything that is made of characters: the canonical one and three others.
SPELLINGS = 4


class Plane(IntEnum):
    """A set of characters to draw from."""

    LETTERS = 0
    PUNCTUATION = 1
    CONTROLS = 2
    QUOTES = 3
    DELETE_C1 = 4
    LATIN = 5
    ALPHABETS = 6
    COMBINING = 7
    UNNORMALISED = 8
    SEPARATORS = 9
    BASIC = 10
    BASIC_HIGH = 11
    ASTRAL = 12
    NONCHARACTERS = 13


def is_noncharacter(point: int) -> bool:
    """Whether Unicode reserves the code point for internal use (RFC 7493 section 2.1 forbids it)."""
    return 0xFDD0 <= point <= 0xFDEF or point & 0xFFFE == 0xFFFE


# Letters with several spellings in Unicode, and targets of case folding and compatibility mappings: é ñ Å; Kelvin,
# Ohm and Ångström signs; ß and capital ß; dotted and dotless i; long s; ligatures; Hangul syllables and jamo;
# compatibility ideographs; Greek oxia and tonos; half-width forms; superscript two.
_UNNORMALISED = (
    0xE9, 0xF1, 0xC5, 0x212A, 0x2126, 0x212B, 0xDF, 0x1E9E, 0x130, 0x131, 0x17F, 0xFB00, 0xFB01, 0xFB06, 0x1E9B,
    0xAC00, 0xAC01, 0xD7A3, 0x1100, 0x1161, 0x11A8, 0xF900, 0xFA0E, 0x1FD3, 0x390, 0x1FBE, 0x3B9, 0xFF21, 0xFF76,
    0xB2, 0x2F8A6, 0x1D15E, 0x958, 0x915, 0x93C, 0x344,
)  # fmt: skip
# U+2028 and U+2029 end lines in JavaScript before ES2019, U+FEFF is a byte order mark elsewhere; the rest is space
# or control in some language, or stands beside a surrogate or a noncharacter.
_SEPARATORS = (0x2028, 0x2029, 0xFEFF, 0x85, 0xA0, 0x1680, 0x2003, 0x200B, 0x200D, 0x200E, 0x202E, 0x2060, 0x3000,
               0xAD, 0x61C, 0xFFFC, 0xFFFD, 0xE000, 0xFDCF, 0xFDF0)  # fmt: skip
_COMBINING = (*range(0x300, 0x370), 0x5B0, 0x64B, 0x94D, 0x20D0, 0x3099, 0xFE0F, 0x1D165, 0xE0100)
_NONCHARACTERS = tuple(point for point in range(0xFDD0, 0x110000) if is_noncharacter(point))
# The ends of each encoded length and of the surrogate gap, which a random sample would miss, and the characters for the
# traps of `names`.
_EDGES = {
    Plane.ALPHABETS: (0x100, 0x661, 0x7FF),
    Plane.BASIC: (0x800, 0xFFF, 0x1000, 0x20AC, 0x4E00, 0xD7FF),
    Plane.BASIC_HIGH: (0xE000, 0xFB33, 0xFF20, 0xFFFD),
    Plane.ASTRAL: (0x10000, 0x103FF, 0x10400, 0x1F600, 0x1F602, 0x3FFFD, 0x40000, 0xFFFFD, 0x100000, 0x10FFFD),
}
_DRAWN = {
    Plane.ALPHABETS: (0x100, 0x7FF, 128),
    Plane.BASIC: (0x800, 0xD7FF, 256),
    Plane.BASIC_HIGH: (0xE000, 0xFFFD, 128),
    Plane.ASTRAL: (0x10000, 0x10FFFD, 256),
}
_FIXED: dict[Plane, tuple[int, ...]] = {
    Plane.LETTERS: tuple(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _"),
    Plane.PUNCTUATION: tuple(b"!#$%&'()*+,-./:;<=>?@[]^`{|}~"),
    Plane.CONTROLS: tuple(range(0x20)),
    Plane.QUOTES: tuple(b'"\\/\b\t\n\f\r'),
    Plane.DELETE_C1: tuple(range(0x7F, 0xA0)),
    Plane.LATIN: tuple(range(0xA0, 0x100)),
    Plane.COMBINING: _COMBINING,
    Plane.UNNORMALISED: _UNNORMALISED,
    Plane.SEPARATORS: _SEPARATORS,
    Plane.NONCHARACTERS: _NONCHARACTERS,
}


@cache
def spellings(point: int) -> tuple[bytes, bytes, bytes, bytes]:
    """The canonical spelling of a character and three legal ones, which may be equal to it.

    The second is the character itself where JSON allows that, so that most text has its usual spelling.
    """
    lower = "".join(f"\\u{unit:04x}" for unit in units(point))
    upper = "".join(f"\\u{unit:04X}" for unit in units(point))
    short = SHORT_ESCAPES.get(point, "\\/" if point == 0x2F else "")
    if point in SHORT_ESCAPES:
        texts = (short, short, lower, upper)
    elif point < 0x20:
        texts = (lower, upper, lower, upper)
    else:
        texts = (chr(point), chr(point), lower, short or upper)
    first, second, third, fourth = (text.encode("utf-8") for text in texts)
    return first, second, third, fourth


def units(point: int) -> tuple[int, ...]:
    """The UTF-16 code units of a scalar value."""
    if point < 0x10000:
        return (point,)
    return (0xD800 | ((point - 0x10000) >> 10), 0xDC00 | ((point - 0x10000) & 0x3FF))


def utf16_order(points: Iterable[int]) -> tuple[int, ...]:
    """The sort key of a name: its UTF-16 code units, unsigned (RFC 8785 section 3.2.3)."""
    return tuple(unit for point in points for unit in units(point))


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The characters that one block of rows draws from.

    `points` are all of them, plane after plane; plane p has `sizes[p]` of them from `starts[p]` on.
    """

    points: tuple[int, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    def draw(self, dice: Dice, plane: Plane) -> int:
        """The place in `points` of a character of the plane."""
        return self.starts[plane] + dice.below(self.sizes[plane])


def alphabet(dice: Dice) -> Alphabet:
    """Small planes whole, large ones as a sample with their edges, without noncharacters but in their own plane."""
    points: list[int] = []
    starts, sizes = [], []
    for plane in Plane:
        starts.append(len(points))
        points += _FIXED[plane] if plane in _FIXED else _sample(dice, plane)
        sizes.append(len(points) - starts[-1])
    return Alphabet(tuple(points), tuple(starts), tuple(sizes))


def _sample(dice: Dice, plane: Plane) -> list[int]:
    low, high, count = _DRAWN[plane]
    found = dict.fromkeys(_EDGES[plane])
    while len(found) < count:
        point = dice.between(low, high)
        if not is_noncharacter(point):
            found[point] = None
    return list(found)
