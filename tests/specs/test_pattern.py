"""Patterns mean what ECMA 262 says, wherever the kit uses one."""

from __future__ import annotations

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.pattern import found
from holdfast.specs.schema import compile_schema, explain

PRINTABLE = {"type": "string", "pattern": "^[!-~]+$"}


def test_a_newline_at_the_end_is_not_let_through_by_a_schema() -> None:
    validator = compile_schema(PRINTABLE, name="printable")
    assert validator.is_valid("abc")
    assert str(explain(validator, "abc\n")).startswith("at the whole value: ")


def test_a_newline_at_the_end_is_not_let_through_inside_a_larger_schema() -> None:
    inside = {"type": "array", "items": {"$ref": "#/$defs/name"}, "$defs": {"name": PRINTABLE}}
    assert not compile_schema(inside, name="inside").is_valid(["abc", "abc\n"])


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("a$", "a\n", False),
        ("a$", "a", True),
        ("a|b$", "ab", True),
        (r"a\$", "a$b", True),
        ("[$]", "a$\n", True),
        (r"[\]$]b", "$b", True),
        (r"\\$", "\\", True),
        (r"\\$", "\\\n", False),
        ("b", "abc", True),
    ],
)
def test_a_dollar_is_the_end_unless_escaped_or_in_a_class(text: str, value: str, fits: bool) -> None:
    assert found(text, value) is fits


@pytest.mark.parametrize(("text", "value"), [(r"^\d$", "\u0663"), (r"^\w$", "\u00e9")])
def test_digits_and_word_characters_are_those_of_ascii(text: str, value: str) -> None:
    assert not found(text, value)


def test_what_is_no_regular_expression_is_an_error_of_the_contract() -> None:
    with pytest.raises(SpecError, match="not a regular expression"):
        found("(", "x")
