"""Blocks of rows. All rows of a block share one stock of fragments, made from the seed and the number of the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa

from holdfast.vectors.jcs.construct.characters import SPELLINGS, alphabet
from holdfast.vectors.jcs.construct.defects import Defect, defects
from holdfast.vectors.jcs.construct.dice import Dice, Integers, derive, keys_of
from holdfast.vectors.jcs.construct.drafts import Menu, draw, menu
from holdfast.vectors.jcs.construct.faults import Faults
from holdfast.vectors.jcs.construct.fragments import interleave, lengths
from holdfast.vectors.jcs.construct.marks import FORMS, Mark, marks
from holdfast.vectors.jcs.construct.names import Family, Names, names_of
from holdfast.vectors.jcs.construct.numbers import number_lexemes
from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.construct.recipes import CONTAINERS
from holdfast.vectors.jcs.construct.segments import Lexeme, Segment
from holdfast.vectors.jcs.construct.stock import Stock
from holdfast.vectors.jcs.construct.strings import STYLES, Spelling
from holdfast.vectors.jcs.construct.writing import write_canonical, write_documents

# Wrappers around the innermost part of a document: an array or an object with one hole in it

# How many a block has. Opening and closing of a wrapper have the same spelling, so members may go from one to the
# other.
WRAPPERS = 128
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Hole:
    """Makes wrappers. Every wrapper adds one level."""

    def __init__(self, dice: Dice, marks: list[bytes], siblings: list[Lexeme]) -> None:
        self._dice = dice
        self._marks = marks
        self._siblings = siblings

    def wrappers(self) -> tuple[list[Lexeme], list[Lexeme]]:
        """The openings and the closings."""
        openings: list[Lexeme] = []
        closings: list[Lexeme] = []
        for _ in range(WRAPPERS):
            pairs = list(self._array() if self._dice.one_in(2) else self._object())
            for made, side in ((openings, 0), (closings, 1)):
                first, second, third, fourth = (pair[side] for pair in pairs)
                made.append(Lexeme((first, second, third, fourth)))
        return openings, closings

    def _mark(self, mark: Mark, spelling: int) -> bytes:
        # The first spelling is canonical, the second has no whitespace either.
        return self._marks[mark.fragment + (self._dice.below(FORMS) if spelling > 1 else 0)]

    def _array(self) -> Iterator[tuple[bytes, bytes]]:
        before = [self._dice.pick(self._siblings) for _ in range(self._dice.between(-2, 2))]
        after = [self._dice.pick(self._siblings) for _ in range(self._dice.between(-2, 2))]
        for spelling in range(4):
            opening, closing = self._mark(Mark.ARRAY, spelling), b""
            for sibling in before:
                opening += sibling.texts[spelling] + self._mark(Mark.COMMA, spelling)
            for sibling in after:
                closing += self._mark(Mark.COMMA, spelling) + sibling.texts[spelling]
            yield opening, closing + self._mark(Mark.ARRAY_END, spelling)

    def _object(self) -> Iterator[tuple[bytes, bytes]]:
        # A prefix sorts before the name, and what begins with the name after it (RFC 8785 section 3.2.3).
        name = "".join(self._dice.pick(_LETTERS) for _ in range(self._dice.between(5, 8)))
        low = (name[: self._dice.between(1, 3)], self._dice.pick(self._siblings), self._dice.one_in(3))
        high = (name + "-after", self._dice.pick(self._siblings), self._dice.one_in(3))
        for spelling in range(4):
            moved = spelling > 1 and self._dice.one_in(2)
            before = [each for each in (low,) if each[2]]
            after = [each for each in (high,) if each[2]]
            if moved:
                before, after = after, before
            opening, closing = self._mark(Mark.OBJECT, spelling), b""
            for text, sibling, _ in before:
                opening += self._member(text, spelling) + sibling.texts[spelling] + self._mark(Mark.COMMA, spelling)
            opening += self._member(name, spelling)
            for text, sibling, _ in after:
                closing += self._mark(Mark.COMMA, spelling) + self._member(text, spelling) + sibling.texts[spelling]
            yield opening, closing + self._mark(Mark.OBJECT_END, spelling)

    def _member(self, name: str, spelling: int) -> bytes:
        letters = (f"\\u{ord(each):04x}" if spelling > 1 and self._dice.one_in(6) else each for each in name)
        return f'"{"".join(letters)}"'.encode("ascii") + self._mark(Mark.COLON, spelling)


# Rows that share a stock, and so its words, numbers, names and defects: a million rows have thirty of them. Making one
# takes the time of these rows. Slices that begin and end at a multiple of this make each stock once.
STOCK_ROWS = 32768
# A slice seldom meets more than two blocks, and a stock takes a few megabytes.
_KEPT = 3
_LITERALS: tuple[tuple[bytes, ...], ...] = (
    (b"null",), (b"true",), (b"false",), (b'""',), (b"0",), (b"[]", b"[]", b"[ ]", b"[\n]"),
    (b"{}", b"{}", b"{ }", b"{\t}"), (b"[[]]", b"[[]]", b"[[ ]]", b"[ []]"), (b"[{}]", b"[{}]", b"[{} ]", b"[\r\n{}]"),
)  # fmt: skip


@lru_cache(maxsize=_KEPT)
def stock_of(seed: int, block: int) -> Stock:
    """The stock of a block; the last few stay in memory."""
    key = derive(seed, block)
    texts = marks()
    space = max(map(len, texts[Mark.SPACE.fragment : Mark.ARRAY.fragment]))
    numbers = number_lexemes(Dice(derive(key, 1)), block)
    spelling = Spelling(alphabet(Dice(derive(key, 2))))
    literals = [_lexeme(each) for each in _LITERALS]
    names = names_of(spelling, derive(key, 3))
    siblings = literals + numbers[Segment.HUMAN][:32] + numbers[Segment.INTEGERS][:32]
    wrappers = Hole(Dice(derive(key, 4)), texts, siblings).wrappers()
    faults = _by_category(defects(Dice(derive(key, 5))))
    shelf = _Shelf(texts)
    for segment in Segment:
        if segment in numbers:
            shelf.add_lexemes(segment, numbers[segment])
        elif segment in STYLES:
            shelf.add(segment, spelling.strings(segment, derive(key, 6, segment)))
        elif segment is Segment.LITERALS:
            shelf.add_lexemes(segment, literals)
    stock = shelf.stock(names, wrappers, faults, space)
    tables = _containers()
    for place, (segment, recipe) in enumerate(CONTAINERS.items()):
        stock = _with_containers(stock, segment, tables, place, recipe.share, derive(key, 7, segment))
    return stock


@cache
def _containers() -> Menu:
    return menu(list(CONTAINERS.values()))


def _by_category(found: Iterable[Defect]) -> tuple[Defect, ...]:
    return tuple(sorted(found, key=lambda each: each.category.value))


def _lexeme(texts: tuple[bytes, ...]) -> Lexeme:
    first, second, third, fourth = texts if len(texts) == SPELLINGS else texts * SPELLINGS
    return Lexeme((first, second, third, fourth))


class _Shelf:
    """Collects fragments and remembers where each segment lies."""

    def __init__(self, texts: list[bytes]) -> None:
        self._parts = [pa.array(texts, pa.binary())]
        self._reasons = [np.zeros(len(texts), dtype=np.uint8)]
        self._lexemes = len(texts) // SPELLINGS
        self._starts = np.zeros(len(Segment), dtype=np.int64)
        self._sizes = np.zeros(len(Segment), dtype=np.int64)

    def add(self, segment: Segment, fragments: pa.BinaryArray) -> None:
        self._starts[segment] = self._lexemes
        self._sizes[segment] = len(fragments) // SPELLINGS
        code = Reason.NONCHARACTER.code if segment is Segment.NONCHARACTER else 0
        self._put(fragments, np.full(len(fragments), code, dtype=np.uint8))

    def add_lexemes(self, segment: Segment, lexemes: list[Lexeme]) -> None:
        self._starts[segment] = self._lexemes
        self._sizes[segment] = len(lexemes)
        self._put_lexemes(lexemes)

    def _put_lexemes(self, lexemes: list[Lexeme]) -> None:
        texts = [text for lexeme in lexemes for text in lexeme.texts]
        codes = [code for lexeme in lexemes for code in lexeme.reasons]
        self._put(pa.array(texts, pa.binary()), np.asarray(codes, dtype=np.uint8))

    def _put(self, fragments: pa.BinaryArray, reasons: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
        self._parts.append(fragments)
        self._reasons.append(reasons)
        self._lexemes += len(fragments) // SPELLINGS

    def stock(
        self,
        names: Names,
        wrappers: tuple[list[Lexeme], list[Lexeme]],
        faults: tuple[Defect, ...],
        most_space: int,
    ) -> Stock:
        families = np.asarray([self._lexemes + names.starts[family] for family in Family], dtype=np.int64)
        codes = np.zeros(len(names.fragments), dtype=np.uint8)
        codes.reshape(-1, SPELLINGS)[names.noncharacters] = Reason.NONCHARACTER.code
        self._put(names.fragments, codes)
        wrapper_start = self._lexemes
        for side in wrappers:
            self._put_lexemes(side)
        defect_start = self._lexemes * SPELLINGS
        texts = [text for each in faults for text in (each.bad, each.good)]
        texts += [b""] * (-len(texts) % SPELLINGS)
        self._put(pa.array(texts, pa.binary()), np.zeros(len(texts), dtype=np.uint8))
        fragments = pa.concat_arrays(self._parts)
        return Stock(
            fragments=fragments,
            lengths=lengths(fragments),
            reasons=np.concatenate(self._reasons),
            starts=self._starts,
            sizes=self._sizes,
            family_starts=families,
            wrapper_start=wrapper_start,
            wrapper_count=len(wrappers[0]),
            defect_start=defect_start,
            defects=faults,
            faults=Faults.of(faults),
            most_space=most_space,
        )


def _with_containers(stock: Stock, segment: Segment, tables: Menu, recipe: int, count: int, key: int) -> Stock:
    """The stock with `count` containers more, each in all its spellings."""
    keys = keys_of(key, np.arange(count, dtype=np.int64))
    recipes = np.full(count, recipe, dtype=np.int64)
    spelled = [write_canonical(stock, draw(stock, tables, recipes, keys, keys))]
    for number in range(1, SPELLINGS):
        guise = keys_of(derive(key, number), np.arange(count, dtype=np.int64))
        spelled.append(write_documents(stock, draw(stock, tables, recipes, keys, guise), None)[0])
    added = interleave(spelled)
    starts, sizes = stock.starts.copy(), stock.sizes.copy()
    starts[segment], sizes[segment] = len(stock.fragments) // SPELLINGS, count
    fragments = pa.concat_arrays([stock.fragments, added])
    return replace(
        stock,
        fragments=fragments,
        lengths=np.concatenate([stock.lengths, lengths(added)]),
        reasons=np.concatenate([stock.reasons, np.zeros(len(added), dtype=np.uint8)]),
        starts=starts,
        sizes=sizes,
    )


def blocks_of(start: int, count: int) -> Iterator[tuple[int, Integers]]:
    """The blocks that the rows from `start` on meet, each with the numbers of its rows."""
    while count > 0:
        block = start // STOCK_ROWS
        here = min(count, (block + 1) * STOCK_ROWS - start)
        yield block, np.arange(start, start + here, dtype=np.int64)
        start, count = start + here, count - here
