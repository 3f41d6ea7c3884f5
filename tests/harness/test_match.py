"""Matchers: equality as JSON, and what each form takes and leaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conformance.cases.match import mismatch, mismatches, same
from holdfast.conformance.cases.values import CaseError, Scope, at_path
from holdfast.specs.strictjson import canonical

MISSING = at_path({}, "nothing")
NOW = "2026-01-01T00:00:00Z"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "1", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)


@given(JSON, JSON)
def test_equality_is_equality_of_the_canonical_form(left: Any, right: Any) -> None:
    assert same(left, right) is (canonical(left) == canonical(right))


@pytest.mark.parametrize(
    ("left", "right"), [(True, 1), (False, 0), ([True], [1]), ({"a": 0}, {"a": False}), (None, False), ("1", 1)]
)
def test_a_boolean_is_no_number_and_a_text_is_none_either(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert not same(right, left)


def shown(value: Any) -> str:
    """A name for a test that is the same in every process."""
    return "missing" if value is MISSING else repr(value)


ROWS = [{"k": "a", "n": 1}, {"k": "b", "n": 1}]


@pytest.mark.parametrize(
    ("matcher", "value"),
    [
        (1, 1.0),
        ({"a": [1]}, {"a": [1]}),
        ({"$in": [1, 2]}, 2),
        ({"$in": [{"$matches": "^x"}, 7]}, "xyz"),
        ({"$not": 1}, 2),
        ({"$not": 1}, True),
        ({"$not": {"$in": [1, 2]}}, 3),
        ({"$not": {"$absent": True}}, None),
        ({"$not": {"$count": 0}}, [1]),
        ({"$count": 2}, ROWS),
        ({"$count": 0}, []),
        ({"$absent": True}, MISSING),
        ({"$absent": False}, None),
        ({"$any": True}, None),
        ({"$matches": "b+"}, "abc"),
        ({"$contains": {"k": "b"}}, ROWS),
        ({"$contains": {"k": "b", "n": {"$not": 2}}}, ROWS),
        ({"$all": {"n": 1}}, ROWS),
        ({"$all": {"k": {"$in": ["a", "b"]}}}, ROWS),
        ({"$rows": ROWS[::-1]}, ROWS),
        ({"$rows": []}, []),
    ],
    ids=shown,
)
def test_a_matcher_takes_what_fits(matcher: Any, value: Any) -> None:
    assert mismatch(matcher, value) is None


@pytest.mark.parametrize(
    ("matcher", "value"),
    [
        (1, True),
        (1, "1"),
        (1, MISSING),
        (None, MISSING),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ([1, 2], [2, 1]),
        ({"$in": [1, 2]}, True),
        ({"$in": []}, 1),
        ({"$in": [1]}, MISSING),
        ({"$not": 1}, 1.0),
        ({"$not": 1}, MISSING),
        ({"$not": {"$count": 0}}, MISSING),
        ({"$not": {"$absent": True}}, MISSING),
        ({"$count": 1}, ROWS),
        ({"$count": True}, [1]),
        ({"$count": 1}, {"a": 1}),
        ({"$count": 0}, None),
        ({"$count": 0}, MISSING),
        ({"$absent": True}, None),
        ({"$absent": False}, MISSING),
        ({"$any": True}, MISSING),
        ({"$matches": "^b"}, "abc"),
        ({"$matches": "1"}, 1),
        ({"$matches": ""}, MISSING),
        ({"$contains": {"k": "c"}}, ROWS),
        ({"$contains": {"k": "a", "n": 2}}, ROWS),
        ({"$contains": {"k": "a"}}, {"k": "a"}),
        ({"$contains": {}}, []),
        ({"$all": {"n": 2}}, ROWS),
        ({"$all": {"k": "a"}}, ROWS),
        ({"$all": {"n": 1}}, []),
        ({"$all": {"n": 1}}, [{"n": 1}, 7]),
        ({"$rows": ROWS}, ROWS[:1]),
        ({"$rows": ROWS[:1]}, [*ROWS[:1], *ROWS[:1]]),
        ({"$rows": []}, MISSING),
        ({"$rows": []}, {}),
    ],
    ids=shown,
)
def test_a_matcher_leaves_what_does_not_fit_and_says_why(matcher: Any, value: Any) -> None:
    why = mismatch(matcher, value)
    assert why is not None
    assert why.startswith("expected")
    assert "object at 0x" not in why


def test_a_matcher_of_two_forms_is_an_error_of_the_case() -> None:
    with pytest.raises(CaseError, match="one form"):
        mismatch({"$in": [1], "$not": 2}, 1)
    with pytest.raises(CaseError, match="one form"):
        mismatch({"$any": True, "x": 1}, {"x": 1})


def test_the_first_path_that_does_not_fit_is_named() -> None:
    value = {"a": {"b": 1}, "c": [5]}
    assert mismatches({"a.b": 1, "c.0": {"$in": [5]}}, value, under="value") is None
    assert mismatches({"a.b": 1, "c.0": 6}, value, under="value") == "value.c.0: expected 6, got 5"
    assert mismatches({"a.x": 1}, value, under="data") == "data.a.x: expected 1, nothing is there"


@pytest.mark.parametrize(
    "handed", [{"$any": True}, {"$not": 0}, {"$in": ["planted", "other"]}, {"$matches": ""}], ids=repr
)
def test_an_adapter_cannot_hand_in_a_matcher(handed: dict[str, Any]) -> None:
    scope = Scope(seed="s", case="c", side="main", defined={}, opened=NOW, now=NOW, bound={})
    scope = scope.bind("got", handed).bind("many", [handed]).bind("deep", {"x": handed})
    for matcher in ("$got", {"$in": "$many"}, {"$in": ["$got"]}, "$deep.x", {"$from": "got"}):
        resolved = scope.resolve(matcher)
        assert mismatch(resolved, "other") is not None
        assert mismatch(resolved, handed) is None
    assert mismatch(scope.resolve({"$contains": {"k": "$got"}}), [{"k": "other"}]) is not None
    assert mismatch(scope.resolve({"$not": "$got"}), "other") is None
