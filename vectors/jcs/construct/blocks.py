"""Blocks of rows. All rows of a block share one stock of fragments, made from the seed and the number of the block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.construct.characters import SPELLINGS, alphabet
from holdfast.vectors.jcs.construct.defects import defects
from holdfast.vectors.jcs.construct.dice import Dice, Integers, derive, keys_of
from holdfast.vectors.jcs.construct.drafts import Menu, draw, menu
from holdfast.vectors.jcs.construct.fragments import FORMS, Mark, interleave, lengths, marks
from holdfast.vectors.jcs.construct.names import Family, names_of
from holdfast.vectors.jcs.construct.numbers import number_lexemes
from holdfast.vectors.jcs.construct.recipes import CONTAINERS
from holdfast.vectors.jcs.construct.segments import Lexeme, Reason, Segment
from holdfast.vectors.jcs.construct.stock import Faults, Stock
from holdfast.vectors.jcs.construct.strings import STYLES, Spelling
from holdfast.vectors.jcs.construct.writing import write_canonical, write_documents

# How many wrappers a block has: an array or an object with one hole in it. Opening and closing of a wrapper have the
# same spelling, so members may go from one to the other.
WRAPPERS = 128
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Writes a member or an element in one of the spellings.
_Written = Callable[[int], bytes]


def _wrappers(dice: Dice, marks: list[bytes], siblings: list[Lexeme]) -> list[list[Lexeme]]:
    """The openings and the closings of wrappers. Every wrapper adds one level."""

    def mark(kind: Mark, spelling: int) -> bytes:
        # The first spelling is canonical, the second has no whitespace either.
        return marks[kind.fragment + (dice.below(FORMS) if spelling > 1 else 0)]

    def named(name: str, sibling: Lexeme | None) -> _Written:
        def written(spelling: int) -> bytes:
            letters = (f"\\u{ord(each):04x}" if spelling > 1 and dice.one_in(6) else each for each in name)
            member = f'"{"".join(letters)}"'.encode("ascii") + mark(Mark.COLON, spelling)
            return member if sibling is None else member + sibling.texts[spelling]

        return written

    def wrapper() -> Iterator[tuple[bytes, bytes]]:
        before: list[_Written] = []
        after: list[_Written] = []
        is_array = dice.one_in(2)
        if is_array:
            for side in (before, after):
                chosen = [dice.pick(siblings) for _ in range(dice.between(-2, 2))]
                side += [each.texts.__getitem__ for each in chosen]
        else:
            # A prefix sorts before the name, and what begins with the name after it (RFC 8785 section 3.2.3).
            name = "".join(dice.pick(_LETTERS) for _ in range(dice.between(5, 8)))
            low = named(name[: dice.between(1, 3)], dice.pick(siblings))
            before += [low] if dice.one_in(3) else []
            high = named(name + "-after", dice.pick(siblings))
            after += [high] if dice.one_in(3) else []
            hole = named(name, None)
        for spelling in range(SPELLINGS):
            moved = not is_array and spelling > 1 and dice.one_in(2)
            first, last = (after, before) if moved else (before, after)
            opening, closing = mark(Mark.ARRAY if is_array else Mark.OBJECT, spelling), b""
            for each in first:
                opening += each(spelling) + mark(Mark.COMMA, spelling)
            if not is_array:
                opening += hole(spelling)
            for each in last:
                closing += mark(Mark.COMMA, spelling) + each(spelling)
            yield opening, closing + mark(Mark.ARRAY_END if is_array else Mark.OBJECT_END, spelling)

    made = [list(wrapper()) for _ in range(WRAPPERS)]
    return [[Lexeme(tuple(pair[side] for pair in each)) for each in made] for side in (0, 1)]


# Rows that share a stock, and so its words, numbers, names and defects: a million rows have thirty of them. Making one
# takes the time of these rows. Slices that begin and end at a multiple of this make each stock once.
STOCK_ROWS = 32768
# A slice seldom meets more than two blocks, and a stock takes a few megabytes.
_KEPT = 3
_LITERALS: tuple[tuple[bytes, ...], ...] = (
    (b"null",), (b"true",), (b"false",), (b'""',), (b"0",), (b"[]", b"[]", b"[ ]", b"[\n]"),
    (b"{}", b"{}", b"{ }", b"{\t}"), (b"[[]]", b"[[]]", b"[[ ]]", b"[ []]"), (b"[{}]", b"[{}]", b"[{} ]", b"[\r\n{}]"),
)  # fmt: skip


class _Shelf:
    """Collects fragments with the reasons for which they are refused."""

    def __init__(self) -> None:
        self.parts: list[pa.BinaryArray] = []
        self.reasons: list[npt.NDArray[np.uint8]] = []
        self.lexemes = 0

    def put(self, fragments: pa.BinaryArray, codes: npt.ArrayLike = 0) -> int:
        """The number of the first lexeme of these."""
        first = self.lexemes
        self.parts.append(fragments)
        self.reasons.append(np.full(len(fragments), codes, dtype=np.uint8))
        self.lexemes += len(fragments) // SPELLINGS
        return first

    def put_lexemes(self, lexemes: list[Lexeme]) -> int:
        """The number of the first of these."""
        texts = [text for lexeme in lexemes for text in lexeme.texts]
        return self.put(pa.array(texts, pa.binary()), [code for lexeme in lexemes for code in lexeme.reasons])


@lru_cache(maxsize=_KEPT)
def stock_of(seed: int, block: int) -> Stock:
    """The stock of a block; the last few stay in memory."""
    key = derive(seed, block)
    texts = marks()
    numbers = number_lexemes(Dice(derive(key, 1)), block)
    spelling = Spelling(alphabet(Dice(derive(key, 2))))
    literals = [Lexeme(each if len(each) == SPELLINGS else each * SPELLINGS) for each in _LITERALS]
    names = names_of(spelling, derive(key, 3))
    siblings = literals + numbers[Segment.HUMAN][:32] + numbers[Segment.INTEGERS][:32]
    openings, closings = _wrappers(Dice(derive(key, 4)), texts, siblings)
    found = tuple(sorted(defects(Dice(derive(key, 5))), key=lambda each: each.category.value))
    shelf = _Shelf()
    shelf.put(pa.array(texts, pa.binary()))
    starts, sizes = np.zeros((2, len(Segment)), dtype=np.int64)
    for segment in Segment:
        if segment in STYLES:
            code = Reason.NONCHARACTER.code if segment is Segment.NONCHARACTER else 0
            starts[segment] = shelf.put(spelling.strings(segment, derive(key, 6, segment)), code)
            sizes[segment] = shelf.lexemes - starts[segment]
        elif segment in numbers or segment is Segment.LITERALS:
            starts[segment] = shelf.put_lexemes(numbers.get(segment, literals))
            sizes[segment] = shelf.lexemes - starts[segment]
    special = np.zeros((len(names.fragments) // SPELLINGS, SPELLINGS), dtype=np.uint8)
    special[names.noncharacters] = Reason.NONCHARACTER.code
    first_name = shelf.put(names.fragments, special.ravel())
    wrapper_start = shelf.put_lexemes(openings)
    shelf.put_lexemes(closings)
    both = [text for each in found for text in (each.bad, each.good)]
    defect_start = shelf.put(pa.array(both + [b""] * (-len(both) % SPELLINGS), pa.binary())) * SPELLINGS
    fragments = pa.concat_arrays(shelf.parts)
    stock = Stock(
        fragments=fragments,
        lengths=lengths(fragments),
        reasons=np.concatenate(shelf.reasons),
        starts=starts,
        sizes=sizes,
        family_starts=np.asarray([first_name + names.starts[family] for family in Family], dtype=np.int64),
        wrapper_start=wrapper_start,
        wrapper_count=WRAPPERS,
        defect_start=defect_start,
        defects=found,
        faults=Faults.of(found),
        most_space=max(map(len, texts[Mark.SPACE.fragment : Mark.ARRAY.fragment])),
    )
    tables = _containers()
    for place, (segment, recipe) in enumerate(CONTAINERS.items()):
        stock = _with_containers(stock, segment, tables, place, recipe.share, derive(key, 7, segment))
    return stock


@cache
def _containers() -> Menu:
    return menu(list(CONTAINERS.values()))


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
