"""Counterexamples become small, and stay counterexamples of the same kind."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.vectors.fewest import fewest
from holdfast.vectors.jcs.frames import Answered, Exchange, Status
from holdfast.vectors.jcs.spark.kinds import DiffKind, kinds, wanted
from holdfast.vectors.jcs.spark.shrink import Shrinker
from holdfast.vectors.jcs.spark.verify import clause_of
from holdfast.vectors.taxonomy import Category

REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", "core")
NAIVE = (sys.executable, str(Path(__file__).parents[1] / "ladder" / "runner.py"), "naive")


@pytest.fixture(scope="module")
def shrinker() -> Iterator[Shrinker]:
    with Exchange(REFERENCE, deadline=10) as oracle, Exchange(NAIVE, deadline=10) as sdk:
        yield Shrinker(oracle, sdk, until=time.monotonic() + 120)


def test_wrong_bytes_shrink_to_what_makes_them_wrong(shrinker: Shrinker) -> None:
    document = b'{"some": [1, 2, {"deep": "text"}], "numbers" :[3,4,1e2,true], "last":null}'
    canonical = b'{"last":null,"numbers":[3,4,100,true],"some":[1,2,{"deep":"text"}]}'
    found = shrinker.shrink(document, Answered(Status.CANONICAL, canonical))
    assert found is not None
    assert len(found.document) <= len(b"1e2")
    assert found.expected.status is Status.CANONICAL
    assert found.answered.status is Status.CANONICAL
    assert found.expected.body != found.answered.body


def test_an_accepted_defect_keeps_its_reason_while_it_shrinks(shrinker: Shrinker) -> None:
    document = b'[1,{"b":[],"a":1,"x":{"y":2},"a":[1,2,3]},"more",{"and":"more"}]'
    found = shrinker.shrink(document, Answered(Status.REFUSED, b"DUPLICATE_NAME"))
    assert found is not None
    assert found.expected.body.startswith(b"DUPLICATE_NAME")
    assert found.answered.status is Status.CANONICAL
    assert len(found.document) <= len(b'{"a":1,"a":[]}')


def test_what_the_reference_does_not_expect_is_left_as_it_was_generated(shrinker: Shrinker) -> None:
    assert shrinker.shrink(b"[1.0]", Answered(Status.CANONICAL, b"[1.0]")) is None


def test_without_time_the_row_stays_as_it_is() -> None:
    with Exchange(REFERENCE, deadline=10) as oracle, Exchange(NAIVE, deadline=10) as sdk:
        assert Shrinker(oracle, sdk, until=0.0).shrink(b"[1.0]", Answered(Status.CANONICAL, b"[1]")) is None


# The naive SDK writes 100.0 for 1e2, and sorts U+10000 behind U+E000, which UTF-16 sorts before it.
ORDER_AND_NUMBER = '{"\ue000":[1e2,"text"],"𐀀":{"a":null,"b":1e21}}'.encode()
BOTH = Answered(Status.CANONICAL, '{"𐀀":{"a":null,"b":1e+21},"\ue000":[100,"text"]}'.encode())


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        (Category.ORDER_UTF16, {DiffKind.ORDER}),
        (Category.NUMBER_SPELLING, {DiffKind.NUMBER}),
        (None, {DiffKind.ORDER, DiffKind.NUMBER}),
    ],
)
def test_a_counterexample_of_a_category_does_not_shrink_into_another(
    shrinker: Shrinker, category: Category | None, expected: set[DiffKind]
) -> None:
    found = shrinker.shrink(ORDER_AND_NUMBER, BOTH, category)
    assert found is not None
    assert kinds(found.expected.body, found.answered.body) == expected
    assert len(found.document) < len(ORDER_AND_NUMBER)
    if category is Category.ORDER_UTF16:
        assert len(found.document) <= len('{"\ue000":[],"𐀀":{}}'.encode())


@pytest.mark.parametrize(
    ("expected", "answered", "found"),
    [
        (b"[1,20]", b"[1,2e1]", {DiffKind.NUMBER}),
        (b"1", b'"1"', {DiffKind.NUMBER}),
        (b'["a","b"]', b'["a","\\u0062"]', {DiffKind.STRING}),
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}', {DiffKind.ORDER}),
        (b'{"a":1,"b":[2]}', b'{"b":[2.0],"a":1}', {DiffKind.ORDER, DiffKind.NUMBER}),
        (b'{"a":1,"b":2}', b'{"b":2,"\\u0061":1}', {DiffKind.STRING}),
        (b'{"a":1,"b":2}', b'{"a":1}', {DiffKind.OTHER}),
        (b'{"a":1}', b'{"a": 1}', {DiffKind.OTHER}),
        (b"[]", b"{}", {DiffKind.OTHER}),
        (b'{"a":1}', b"{{}:1}", {DiffKind.STRING}),
        (b"[1]", b"[1]]]", {DiffKind.OTHER}),
        (b"[null]", b'["', {DiffKind.OTHER}),
        (b"[" * 50_000 + b"1", b"[" * 50_000 + b"2", {DiffKind.NUMBER}),
        (b'{"":' * 50_000 + b"1", b'{"":' * 50_000 + b"2", {DiffKind.NUMBER}),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else ascii(value)[:24],
)
def test_a_departure_has_kinds(expected: bytes, answered: bytes, found: set[DiffKind]) -> None:
    assert kinds(expected, answered) == found


def test_what_has_kinds_of_other_categories_only_keeps_all_of_them() -> None:
    assert wanted(frozenset({DiffKind.NUMBER, DiffKind.ORDER}), Category.STRING_RAW) == {
        DiffKind.NUMBER,
        DiffKind.ORDER,
    }
    assert wanted(frozenset({DiffKind.OTHER}), Category.STRUCTURE) == {DiffKind.OTHER}


@pytest.mark.parametrize(
    ("own", "expected", "answered", "clause"),
    [
        ("JCS-ORD-01", '{"\u20ac":1}'.encode(), b'{"\\u20ac":1}', "JCS-STR-04"),
        ("JCS-ORD-01", b'{"a":1,"b":2}', b'{"b":2,"a":1}', "JCS-ORD-01"),
        ("JCS-DUP-04", b'{"ab":1}', b'{"a":1}', "JCS-STR-04"),
        ("JCS-UTF8-03", '["\ufeff"]'.encode(), b'[""]', "JCS-STR-04"),
        ("JCS-SUR-03", '["\U0001f600"]'.encode(), b'["?"]', "JCS-SUR-03"),
        ("JCS-DEPTH-02", b"[[1]]", b"[[1.0]]", "JCS-NUM-03"),
        ("JCS-WS-01", b"[1]", b"[1 ]", "JCS-WS-01"),
    ],
)
def test_wrong_bytes_are_under_the_clause_of_the_bytes(own: str, expected: bytes, answered: bytes, clause: str) -> None:
    due = Answered(Status.CANONICAL, expected)
    assert clause_of(own, due, Answered(Status.CANONICAL, answered)) == clause
    assert clause_of(own, due, Answered(Status.REFUSED, b"SYNTAX")) == own


# The one shrinker keeps exactly what a failure needs.


@given(st.integers(0, 40).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, max(size - 1, 0))))))
def test_what_a_failure_needs_is_kept_in_order_and_nothing_else(sized: tuple[int, set[int]]) -> None:
    size, needed = sized[0], sized[1] & set(range(sized[0]))
    assert list(fewest(range(size), lambda kept: needed <= set(kept), tries=10_000)) == sorted(needed)


def test_no_more_is_asked_than_allowed_and_what_was_found_by_then_fails() -> None:
    asked: list[Sequence[int]] = []

    def fails(kept: Sequence[int]) -> bool:
        asked.append(kept)
        return 3 in kept

    assert 3 in fewest(range(1000), fails, tries=7)
    assert len(asked) == 7
