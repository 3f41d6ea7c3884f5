"""Schemas: what fits the protocol, and what is said of a value that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.publish import FILES, schema_of
from holdfast.specs.schema import Validator, check_schema, explain, found, published_schema


def test_an_explanation_has_its_place_and_a_bounded_length() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}}}
    validator = Validator(schema)
    assert explain(validator, {"a": ["x"]}) is None
    assert str(explain(validator, {"a": ["x", 7]})).startswith("at a/1: 7 ")
    assert str(explain(Validator({"type": "string"}), 7)).startswith("at the whole value: 7 ")
    long = explain(validator, {"a": [["x" * 5000]]})
    assert long is not None
    assert len(long) < 400


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"properties": {"a": {"type": "nonsense"}}}, "properties/a/type"),
        ({"$ref": "#/$defs/nowhere"}, "the whole value"),
        ({"$ref": "https://example.org/elsewhere.json"}, "the whole value"),
    ],
)
def test_what_is_no_schema_is_named_with_its_place(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError, match=f"mine: not a JSON Schema: at {place}: "):
        check_schema(schema, name="mine")


def test_a_published_schema_that_is_not_there_is_named() -> None:
    with pytest.raises(SpecError, match="no published schema is called 'nonsense'"):
        published_schema("nonsense")


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        ({"kind": "c"}, "kind", ('"c"', '"a"', '"b"', '"d"', '"e"')),
        ({"kind": "a", "more": 1}, "the whole value", ("'more'",)),
        ({}, "the whole value", ('"kind"',)),
        ({"kind": "a", "size": {"least": "x"}}, "size/least", ('"x"', "integer")),
        ({"kind": "a", "size": True}, "size", ("true",)),
        ({"kind": "a", "name": "B\n"}, "name", ("B\\n", "^[A-Z]$")),
        ({"kind": "a", "name": "\ud800"}, "", ("lone surrogate",)),
    ],
)
def test_an_explanation_names_what_came_and_what_was_expected(value: Any, place: str, words: tuple[str, ...]) -> None:
    record = {"type": "object", "properties": {"least": {"type": "integer"}}, "required": ["least"]}
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": ["a", "b", "d", "e"]},
            "size": {"anyOf": [{"type": "integer"}, record]},
            "name": {"type": "string", "pattern": "^[A-Z]$"},
        },
        "required": ["kind"],
    }
    said = str(explain(Validator(schema), value))
    assert said.startswith(f"at {place}")
    assert not [word for word in words if word not in said], said


def test_a_long_repetition_in_a_pattern_is_judged_exactly() -> None:
    validator = Validator({"type": "string", "pattern": "^[a-z]{0,4000000}$"})
    assert [validator.is_valid("a" * count) for count in (0, 4_000_000, 4_000_001)] == [True, True, False]


# Patterns mean what ECMA 262 says, wherever the kit uses one.


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("a$", "a\n", False),
        ("a$", "a", True),
        (r"^\d$", "\u0663", False),
        (r"^\w$", "\u00e9", False),
        ("a|b$", "ab", True),
        (r"a\$", "a$b", True),
        ("[$]", "a$\n", True),
        (r"[\]$]b", "$b", True),
        (r"\\$", "\\", True),
        (r"\\$", "\\\n", False),
        ("b", "abc", True),
    ],
)
def test_a_dollar_is_the_end_unless_escaped_or_in_a_class_and_digits_are_ascii(
    text: str, value: str, fits: bool
) -> None:
    assert found(text, value) is fits


def test_what_is_no_regular_expression_is_an_error_of_the_contract() -> None:
    with pytest.raises(SpecError, match="not a regular expression"):
        found("(", "x")


# The published schemas of a contract's files are those of their types.


@pytest.mark.parametrize("name", FILES)
def test_a_published_schema_is_that_of_its_types(name: str) -> None:
    assert published_schema(name) == schema_of(name), "run `python -m holdfast.specs.publish`"
