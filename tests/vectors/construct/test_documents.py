"""Documents and expected bytes, checked by parsers and canonicalisers that had no part in making them."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
import rfc8785

from holdfast.vectors.jcs.construct import batch, twins
from holdfast.vectors.jcs.construct.blocks import stock_of
from holdfast.vectors.jcs.construct.defects import DefectPlace
from holdfast.vectors.jcs.construct.recipes import RECIPES
from holdfast.vectors.jcs.frames import Status, run
from holdfast.vectors.jcs.opening import opening_of
from holdfast.vectors.jcs.sdk import find, reference
from holdfast.vectors.taxonomy import Category, Profile

ROWS = 12_000
# Whole rows of a stretch that the other tests do not inspect; the reference is slow.
REFERENCE_ROWS = 1500


@cache
def first_rows() -> tuple[dict[str, Any], ...]:
    """The first ROWS rows of seed 0."""
    return tuple(batch(0, 0, ROWS).to_pylist())


def of_category(category: Category) -> list[dict[str, Any]]:
    """The rows of a category."""
    return [each for each in first_rows() if each["category"] == category]


POSITIVE = [category for category in Category if not category.refused]


@pytest.mark.parametrize("category", POSITIVE)
def test_expected_bytes_are_those_of_another_library(category: Category) -> None:
    for each in of_category(category):
        # That library refuses integers beyond 2^53 unless they come as doubles, which is what the core profile reads.
        value = json.loads(each["document"], parse_int=float)
        assert rfc8785.dumps(value) == each["canonical"], each
        assert rfc8785.dumps(json.loads(each["canonical"], parse_int=float)) == each["canonical"], each


def test_documents_of_p16_are_canonical_and_those_of_n9_are_not() -> None:
    assert all(each["document"] == each["canonical"] for each in of_category(Category.IDEMPOTENCE))
    assert all(each["document"] != each["canonical"] for each in of_category(Category.NOT_CANONICAL))


def shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def test_twins_are_their_documents_but_for_one_short_stretch() -> None:
    for each, twin in zip(first_rows(), twins(0, 0, ROWS).to_pylist(), strict=True):
        document, category = each["document"], Category(each["category"])
        if not category.refused:
            assert twin == document
            continue
        assert twin != document
        if category is not Category.ENCODING:
            begin = shared(document, twin)
            end = shared(document[begin:][::-1], twin[begin:][::-1])
            assert max(len(document), len(twin)) - begin - end < 350, each


@pytest.mark.parametrize("profile", Profile)
def test_reference_answers_as_each_profile_is_defined(profile: Profile) -> None:
    made = batch(0, 50_000, REFERENCE_ROWS).to_pylist()
    answers = run(find(reference(profile)).command, [each["document"] for each in made], deadline=60)
    for each, (status, body) in zip(made, answers, strict=True):
        if each["refused_by"] & profile.bit:
            assert (status, body.split(b" ")[0].decode()) == (Status.REFUSED, each["reason"]), each
        else:
            assert (status, body) == (Status.CANONICAL, each["canonical"]), each


def test_reference_accepts_every_twin() -> None:
    documents = twins(0, 50_000, REFERENCE_ROWS).to_pylist()
    answers = run(find("reference").command, documents, deadline=60)
    assert [each.status for each in answers] == [Status.CANONICAL] * REFERENCE_ROWS


# What a slice of the stream has in it: categories, reasons, sizes, depths, strata, disguises.


def test_every_category_has_its_share() -> None:
    counts = Counter(each["category"] for each in first_rows())
    total = sum(recipe.share for recipe in RECIPES.values())
    assert set(counts) == set(Category)
    for category, recipe in RECIPES.items():
        assert 0.6 < counts[category] * total / (recipe.share * ROWS) < 1.5, category


def test_every_reason_and_every_defect_comes_up() -> None:
    reasons = Counter(each["reason"] for each in first_rows())
    assert set(reasons) >= {
        "INVALID_UTF8", "BYTE_ORDER_MARK", "SYNTAX", "DUPLICATE_NAME", "LONE_SURROGATE", "NUMBER_OUT_OF_RANGE",
        "NONCHARACTER", "NUMBER_TOO_PRECISE", "NUMBER_UNDERFLOW", "UNSAFE_INTEGER", None,
    }  # fmt: skip
    defects = stock_of(0, 0).defects
    assert {each.place for each in defects} == set(DefectPlace) - {DefectPlace.NONE}
    assert {each.category for each in defects} == {category for category in Category if category.refused}
    assert len({(each.category, each.note, each.place) for each in defects}) > 180


def test_sizes_go_from_two_bytes_to_64_kib_with_a_mean_of_a_few_hundred() -> None:
    sizes = [len(each["document"]) for each in first_rows()]
    assert max(sizes) <= 65536
    assert 200 < sum(sizes) / len(sizes) < 500
    by_power = Counter(size.bit_length() for size in sizes)
    assert all(by_power[power] for power in range(2, 17))


def test_nesting_goes_to_the_depth_that_every_implementation_accepts_and_no_deeper() -> None:
    levels = {depth(json.loads(each["canonical"])) for each in first_rows() if each["canonical"] is not None}
    assert {0, 1, 2, 3, 4, 5, 10} <= levels
    assert max(levels) > 55
    assert max(levels) <= opening_of(0).floor


def depth(value: Any) -> int:
    """How many containers are around the innermost value."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(depth, children), default=0)


def test_every_kind_of_disguise_comes_up() -> None:
    documents = [each["document"] for each in first_rows() if not Category(each["category"]).refused]
    for pattern in (
        rb"^[ \t\r\n]", rb"[ \t\r\n]$", rb"\\u00[0-9a-f][a-f]", rb"\\u[0-9A-F]*[A-F]", rb"\\/", rb"\\ud8\w\w\\ud",
        rb"\dE\+\d", rb"\de\d", rb"\d\.\d+0[,\]}]", rb": *-0[,.\]}e]", rb"\r\n", rb",\t", rb"\[ *\]",
    ):  # fmt: skip
        assert sum(re.search(pattern, document) is not None for document in documents) > 20, pattern
