"""Strict JSON: one reading of every text, or none."""

from __future__ import annotations

import contextlib
import hashlib
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from holdfast.specs import strictjson
from holdfast.specs.errors import StrictJsonError

SAFE = 2**53 - 1
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not SAFE < abs(number) < 1e21)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":1,"a":1}', "duplicate member name 'a'"),
        ('{"a":1,"\\u0061":2}', "duplicate member name 'a'"),
        ('{"x":[{"\\u00e9":1,"é":2}]}', "duplicate member name 'é'"),
        ('"\\ud800"', "lone surrogate"),
        ('"\\udc00\\ud800"', "lone surrogate"),
        ('{"\\udfff":1}', "lone surrogate"),
        ('[["a",{"b":"\\uD800x"}]]', "lone surrogate"),
        ("NaN", "NaN is not JSON"),
        ('{"a":[Infinity]}', "Infinity is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e400", "number out of range"),
        ("-1e400", "number out of range"),
        (str(SAFE + 1), "beyond 2^53"),
        (str(-SAFE - 1), "beyond 2^53"),
        ("9" * 100_000, "beyond 2^53"),
        ("9007199254740992.0", "beyond 2^53"),
        ("-1e20", "beyond 2^53"),
        ("[" * 201 + "]" * 201, "nested deeper than 200"),
        ("[" * 1_000_000, "nested deeper than 200"),
        ('{"a":' * 201 + "1" + "}" * 201, "nested deeper than 200"),
        ("\ufeff1", "byte order mark"),
        ("[1] x", "at character 4"),
        ("1\n2", "at character 2"),
        ("", "at character 0"),
        ("01", "at character 1"),
        ("'a'", "at character 0"),
        ("[1,]", "at character"),
        ('"a\nb"', "control character"),
        ("// x\n1", "at character 0"),
    ],
)
def test_what_has_two_readings_or_none_is_refused(text: str, why: str) -> None:
    for data in (text, text.encode("utf-8", "surrogatepass")):
        with pytest.raises(StrictJsonError, match=r".*") as caught:
            strictjson.loads(data)
        assert why.lower() in str(caught.value).lower()
        assert len(str(caught.value)) < 300


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    with pytest.raises(StrictJsonError, match="not UTF-8 at byte 2"):
        strictjson.loads(b'"a\xff"')
    with pytest.raises(StrictJsonError, match="not UTF-8 at byte 1"):
        strictjson.loads(b'"\xed\xa0\x80"')
    with pytest.raises(StrictJsonError):
        strictjson.loads('{"a":1}'.encode("utf-16"))


def test_a_text_with_a_raw_surrogate_is_refused() -> None:
    with pytest.raises(StrictJsonError, match="lone surrogate"):
        strictjson.loads('["\ud800"]')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" \t\r\n1 \n", 1),
        (str(SAFE), SAFE),
        (str(-SAFE), -SAFE),
        ("-0", 0),
        ('"\\ud83d\\ude00"', "😀"),
        ('"' + "[" * 500 + '"', "[" * 500),
        ('"\\"' + "[" * 500 + '"', '"' + "[" * 500),
        ('{"A":1,"a":2}', {"A": 1, "a": 2}),
        ("1E5", 1e5),
        ("1e21", 1e21),
    ],
)
def test_what_has_one_reading_is_read(text: str, value: Any) -> None:
    assert strictjson.loads(text) == value
    assert strictjson.loads(text.encode()) == value


@pytest.mark.parametrize("text", ["7.0", "7e0", "0.7e1", "-0.0", f"{SAFE}.0"])
def test_an_integer_is_one_however_it_is_written(text: str) -> None:
    assert type(strictjson.loads(text)) is int
    assert strictjson.loads(text) == float(text)


def test_nesting_is_allowed_up_to_the_limit_and_a_caller_may_lower_it() -> None:
    deep = "[" * 200 + "]" * 200
    assert strictjson.loads(deep) is not None
    with pytest.raises(StrictJsonError, match="nested deeper than 100 levels"):
        strictjson.loads(deep, max_depth=100)


def test_brackets_in_a_string_are_no_nesting_and_those_after_an_escaped_quote_neither() -> None:
    assert strictjson.loads('[ "' + "[" * 300 + '\\"' + "{" * 300 + '\\\\" ]')
    with pytest.raises(StrictJsonError, match="nested deeper than 200 levels"):
        strictjson.loads('["\\\\",' + "[" * 200 + "]" * 201)


@given(JSON)
def test_a_text_has_the_same_value_in_its_canonical_form_and_with_a_blank(value: Any) -> None:
    text = strictjson.canonical(value)
    read, spaced = strictjson.loads(text), strictjson.loads(text + b" ")
    assert repr(read) == repr(spaced)


@given(JSON)
def test_the_canonical_form_is_that_of_rfc_8785_whichever_way_it_was_made(value: Any) -> None:
    assert strictjson.canonical(value) == rfc8785.dumps(value)


@given(st.dictionaries(st.text('aé\uffff\U00010000\x00\x1f\x7f"\\/\b\n\u2028'), st.integers(-SAFE, SAFE)))
def test_names_are_sorted_and_escaped_as_rfc_8785_has_it(value: dict[str, int]) -> None:
    assert strictjson.canonical([value, (*value,)]) == rfc8785.dumps([value, [*value]])


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_and_nothing_else_is_raised(data: bytes) -> None:
    with contextlib.suppress(StrictJsonError):
        strictjson.loads(data)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, 2**53, "\ud800", {"\udfff": 1}, {1: 2}, {"a": {1, 2}}, b"x"], ids=repr
)
def test_what_json_cannot_hold_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(StrictJsonError, match="cannot be canonicalised"):
        strictjson.canonical(value)


def test_a_value_nested_beyond_the_stack_and_one_that_holds_itself_have_no_canonical_form() -> None:
    deep: list[Any] = []
    itself: list[Any] = []
    itself.append(itself)
    for _ in range(20_000):
        deep = [deep]
    for value in (deep, itself):
        with pytest.raises(StrictJsonError, match="cannot be canonicalised"):
            strictjson.canonical(value)


def test_a_digest_names_its_function() -> None:
    expected = "sha256:" + hashlib.sha256(b'{"a":1,"b":2}').hexdigest()
    assert strictjson.digest({"b": 2, "a": 1}) == expected
    assert strictjson.digest_bytes(b'{"a":1,"b":2}') == expected
