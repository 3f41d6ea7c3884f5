"""String lexemes, columnar: characters chosen from planes, each string in four spellings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct.characters import SPELLINGS, Alphabet, Plane, spellings
from holdfast.vectors.jcs.construct.dice import Integers, below, byte, derive, keys_of, lane
from holdfast.vectors.jcs.construct.fragments import gather, interleave, starts_of
from holdfast.vectors.jcs.construct.segments import Segment


@dataclass(frozen=True, slots=True)
class Style:
    """How strings of a kind are made: planes with their weights (in sum at most 256), and lengths in characters."""

    count: int
    weights: dict[Plane, int]
    shortest: int
    longest: int


# Half of the strings are at most a quarter of the longest.
STYLES = {
    Segment.TEXT: Style(
        1536,
        {Plane.LETTERS: 150, Plane.PUNCTUATION: 12, Plane.QUOTES: 4, Plane.LATIN: 20, Plane.ALPHABETS: 20,
         Plane.BASIC: 20, Plane.BASIC_HIGH: 6, Plane.ASTRAL: 12, Plane.COMBINING: 6, Plane.DELETE_C1: 2,
         Plane.CONTROLS: 2, Plane.SEPARATORS: 2},
        0, 32,
    ),
    Segment.ESCAPED: Style(512, {Plane.CONTROLS: 96, Plane.QUOTES: 80, Plane.LETTERS: 60, Plane.DELETE_C1: 20}, 1, 16),
    Segment.RAW: Style(
        512,
        {Plane.DELETE_C1: 40, Plane.SEPARATORS: 60, Plane.PUNCTUATION: 40, Plane.LATIN: 20, Plane.BASIC: 20,
         Plane.BASIC_HIGH: 20, Plane.ASTRAL: 30, Plane.LETTERS: 26},
        1, 16,
    ),
    Segment.UNNORMALISED: Style(512, {Plane.LETTERS: 70, Plane.COMBINING: 96, Plane.UNNORMALISED: 90}, 1, 12),
    Segment.NONCHARACTER: Style(128, {Plane.LETTERS: 150, Plane.BASIC: 30, Plane.ASTRAL: 20}, 0, 12),
    Segment.ASCII: Style(192, {Plane.LETTERS: 226, Plane.PUNCTUATION: 20, Plane.QUOTES: 10}, 0, 16),
    Segment.BODY: Style(
        192,
        {Plane.LETTERS: 160, Plane.PUNCTUATION: 20, Plane.QUOTES: 10, Plane.LATIN: 20, Plane.BASIC: 20,
         Plane.ASTRAL: 16, Plane.CONTROLS: 10},
        4, 96,
    ),
}  # fmt: skip
# Of 256 characters, how many are escaped in each of the spellings; the first is the canonical one.
_ESCAPED_OF_256 = (0, 16, 128, 256)


class Quotes(Enum):
    """What stands around the characters: the opening, the canonical closing, the closing of the other spellings."""

    VALUE = (1, 1, 1)
    NAME = (1, 2, 1)  # a canonical name brings its colon along
    NONE = (0, 0, 0)


class Spelling:
    """Writes strings over an alphabet. Strings come as places in `alphabet.points`, one after the other."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        texts = [text for point in alphabet.points for text in spellings(point)]
        self._marks = len(texts)
        self._characters = pa.array([*texts, b"", b'"', b'":'], pa.binary())

    def spelled(self, characters: Integers, counts: Integers, quotes: Quotes, key: int) -> pa.BinaryArray:
        """All spellings of each string, side by side; `counts` has the number of characters of each."""
        opening, closing, other = quotes.value
        bounds = starts_of(counts + 2)
        inside = np.ones(bounds[-1], dtype=np.bool_)
        inside[bounds[:-1]] = False
        inside[bounds[1:] - 1] = False
        draws = keys_of(key, np.arange(len(characters), dtype=np.int64))
        made = []
        for number in range(SPELLINGS):
            chosen = lane(draws, number)
            escaped = byte(chosen, 0) < _ESCAPED_OF_256[number]
            shape = np.where(escaped, 2 + (byte(chosen, 1) & 1), min(number, 1))
            run = np.empty(bounds[-1], dtype=np.int64)
            run[inside] = characters * SPELLINGS + shape
            run[bounds[:-1]] = self._marks + opening
            run[bounds[1:] - 1] = self._marks + (closing if number == 0 else other)
            made.append(gather(self._characters, run, bounds))
        return interleave(made)

    def draw(self, style: Style, key: int) -> tuple[Integers, Integers]:
        """Characters and counts of `style.count` strings."""
        keys = keys_of(key, np.arange(style.count, dtype=np.int64))
        first = lane(keys, 0)
        span = style.longest - style.shortest
        reach = np.where(byte(first, 0) < 128, span // 4, span) + 1
        counts = style.shortest + below(first, reach)
        table = np.zeros(256, dtype=np.int64)
        table[:] = next(iter(style.weights))
        table[: sum(style.weights.values())] = np.repeat(list(style.weights), list(style.weights.values()))
        starts = starts_of(counts)
        draws = keys_of(derive(key, 1), np.arange(starts[-1], dtype=np.int64))
        planes = table[byte(draws, 0)]
        sizes = np.asarray(self.alphabet.sizes, dtype=np.int64)
        characters = np.asarray(self.alphabet.starts, dtype=np.int64)[planes] + below(draws, sizes[planes])
        return characters, counts

    def planted(self, characters: Integers, counts: Integers, plane: Plane, key: int) -> tuple[Integers, Integers]:
        """The same strings, each with one more character, of `plane`, somewhere in it."""
        draws = keys_of(key, np.arange(len(counts), dtype=np.int64))
        places = starts_of(counts)[:-1] + below(draws, counts + 1)
        added = self.alphabet.starts[plane] + below(lane(draws, 1), self.alphabet.sizes[plane])
        return np.insert(characters, places, added), counts + 1

    def strings(self, segment: Segment, key: int) -> pa.BinaryArray:
        """The string lexemes of a segment, all spellings side by side; bodies of long strings are without quotes."""
        characters, counts = self.draw(STYLES[segment], key)
        if segment is Segment.NONCHARACTER:
            characters, counts = self.planted(characters, counts, Plane.NONCHARACTERS, derive(key, 2))
        quotes = Quotes.NONE if segment is Segment.BODY else Quotes.VALUE
        return self.spelled(characters, counts, quotes, derive(key, 3))
