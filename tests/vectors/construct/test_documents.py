"""Documents and expected bytes, checked by parsers and canonicalisers that had no part in making them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785

from holdfast.vectors.jcs.construct import batch, twins
from holdfast.vectors.taxonomy import Category, Profile
from tests.vectors.construct.sample import ROWS, first_rows
from tests.vectors.reference import ask_reference

# Whole rows of a stretch that the other tests do not inspect; the reference is slow.
REFERENCE_ROWS = 1500


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
    answers = ask_reference(profile, [each["document"] for each in made])
    assert len(answers) == len(made)
    for each, (status, body) in zip(made, answers, strict=True):
        if each["refused_by"] & profile.bit:
            assert (status, body.split(b" ")[0].decode()) == (b"R", each["reason"]), each
        else:
            assert (status, body) == (b"C", each["canonical"]), each


def test_reference_accepts_every_twin() -> None:
    documents = twins(0, 50_000, REFERENCE_ROWS).to_pylist()
    assert all(status == b"C" for status, _ in ask_reference(Profile.CORE, documents))
