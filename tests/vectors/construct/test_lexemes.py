"""Lexemes: every spelling means the same, the first is the canonical one, and every stratum has some."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache
from itertools import pairwise

import pytest

from holdfast.vectors.jcs.construct.characters import SPELLINGS, Plane, alphabet
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.names import SHAPES, Family, names_of
from holdfast.vectors.jcs.construct.numbers import COUNTS, STRATA, number_lexemes, stratum
from holdfast.vectors.jcs.construct.segments import TEXT_OF_CODE, Lexeme, Reason, Segment
from holdfast.vectors.jcs.construct.strings import Spelling
from tests.vectors.es6.oracle import text as number_text

BLOCKS = (0, 7)


@cache
def numbers() -> tuple[tuple[Segment, Lexeme], ...]:
    """The number lexemes of some blocks."""
    made = [number_lexemes(Dice(block), block) for block in BLOCKS]
    return tuple((segment, each) for block in made for segment, found in block.items() for each in found)


def reason_of(text: bytes) -> str | None:
    """Why a strict profile refuses a number literal, reckoned anew."""
    literal = Decimal(text.decode())
    digits = "".join(map(str, literal.as_tuple().digits)).strip("0")
    value = float(text)
    shown = number_text(value)
    found = []
    if len(digits) > 17:
        found.append("NUMBER_TOO_PRECISE")
    if literal != 0 and value == 0:
        found.append("NUMBER_UNDERFLOW")
    if "e" not in shown and "." not in shown and abs(int(shown)) > 2**53 - 1:
        found.append("UNSAFE_INTEGER")
    assert len(found) <= 1, text
    return found[0] if found else None


def test_reasons_of_number_spellings_follow_from_the_profiles() -> None:
    for _, each in numbers():
        assert [TEXT_OF_CODE[code] for code in each.reasons] == [reason_of(text) for text in each.texts], each


def test_numbers_are_spelled_in_many_ways() -> None:
    texts = [text for _, each in numbers() for text in each.texts[1:]]
    for pattern in (
        rb"-?\d+E\+\d+", rb"-?\d+e-0\d+", rb"-?0\.0+\d+(?:e.*)?", rb"-?\d+\.\d*0", rb"-?\d\.\d+e\d+", rb"-0",
        rb"-?\d+0+\.0+", rb".*[eE][+-]?0+", rb"-?\d{16,17}.*", rb"-?\d{30,}.*",
    ):  # fmt: skip
        assert any(re.fullmatch(pattern, text) for text in texts), pattern


@pytest.mark.parametrize("segment", COUNTS)
def test_every_segment_of_numbers_has_enough_different_ones(segment: Segment) -> None:
    found = {each.texts for kind, each in numbers() if kind is segment}
    assert len(found) > 0.75 * len(BLOCKS) * COUNTS[segment] or segment is Segment.UNDERFLOW


def test_walk_meets_every_stratum_of_sign_digits_and_exponent() -> None:
    dice = Dice(5)
    seen = set()
    for place in range(STRATA):
        sign, literal = stratum(dice, place)
        value = literal.stripped()
        seen.add((sign, len(str(literal.digits)), literal.exponent + len(str(literal.digits)) - 1))
        assert value.digits > 0
    assert len(seen) == STRATA == 2 * 17 * 633


def test_planes_have_the_characters_that_canonicalisers_stumble_over() -> None:
    found = alphabet(Dice(2))
    points = {
        plane: set(found.points[found.starts[plane] : found.starts[plane] + found.sizes[plane]]) for plane in Plane
    }
    assert points[Plane.CONTROLS] == set(range(32))
    assert points[Plane.DELETE_C1] == set(range(0x7F, 0xA0))
    assert {0x2028, 0x2029, 0xFEFF} <= points[Plane.SEPARATORS]
    assert all(0xE000 <= point <= 0xFFFD for point in points[Plane.BASIC_HIGH])
    assert all(point > 0xFFFF for point in points[Plane.ASTRAL])
    assert len(points[Plane.NONCHARACTERS]) == 66
    others = {point for plane in points for point in points[plane] if plane is not Plane.NONCHARACTERS}
    assert not points[Plane.NONCHARACTERS] & others


@pytest.mark.parametrize("family", Family)
def test_groups_of_names_are_distinct_and_in_utf16_order(family: Family) -> None:
    made = names_of(Spelling(alphabet(Dice(4))), 4)
    texts = made.fragments.to_pylist()
    shape = SHAPES[family]
    for group in range(shape.groups):
        first = made.starts[family] + group * shape.size
        names = [json.loads(texts[number * SPELLINGS + 1]) for number in range(first, first + shape.size)]
        assert texts[first * SPELLINGS].endswith(b'":')
        keys = [name.encode("utf-16-be") for name in names]
        assert all(low < high for low, high in pairwise(keys))


def test_names_of_the_utf16_family_sort_otherwise_by_code_point() -> None:
    made = names_of(Spelling(alphabet(Dice(4))), 4)
    texts = made.fragments.to_pylist()
    for group in range(SHAPES[Family.UTF16].groups):
        first = made.starts[Family.UTF16] + group * SHAPES[Family.UTF16].size
        names = [json.loads(texts[number * SPELLINGS + 1]) for number in range(first, first + 16)]
        assert sorted(names) != names


def test_reason_codes_name_their_reasons() -> None:
    assert [TEXT_OF_CODE[reason.code] for reason in Reason] == list(Reason)
    assert TEXT_OF_CODE[0] is None
    assert Lexeme((b"0", b"0", b"0", b"0")).reasons == (0, 0, 0, 0)
