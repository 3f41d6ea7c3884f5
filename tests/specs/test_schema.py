"""Published schemas: explanations have a place, and the quick way to a branch says what the whole schema says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.specs import SpecError
from holdfast.specs.schema import (
    Variants,
    compile_schema,
    explain,
    published_schema,
    published_validator,
    published_variants,
)

VALUES: dict[str, tuple[Any, ...]] = {
    "id": ("1", "", 1, None, "x" * 65),
    "op": ("hello", "open", "call", "clock", "close", "bye", "shout", 1, None, ["call"]),
    "outcome": ("accepted", "refused", "indeterminate", "unsupported", "fault", "ok", "odd", True, {}),
    "effect": ("new", "prior", "old", None),
    "reason": ("DUPLICATE", "duplicate", 1),
    "detail": ("words", 7),
    "capability": ("clock", ""),
    "value": (None, {}, {"a": [1]}),
    "data": ({}, [], None),
    "method": ("put", "Put", 3),
    "args": ({}, None),
    "now": ("2026-01-01T00:00:00Z", "yesterday"),
    "protocol": (1, 2, True),
    "kit": ("holdfast/0", ""),
    "challenge": ("0" * 32, "0"),
    "surprise": (1,),
}
MESSAGES = st.one_of(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}),
    st.fixed_dictionaries(
        {"id": st.just("1"), "outcome": st.sampled_from(VALUES["outcome"])},
        optional={n: st.sampled_from(VALUES[n]) for n in ("effect", "reason", "detail", "value", "data", "capability")},
    ),
    st.fixed_dictionaries(
        {"id": st.just("1"), "op": st.sampled_from(VALUES["op"])},
        optional={n: st.sampled_from(VALUES[n]) for n in ("method", "args", "now", "protocol", "kit", "challenge")},
    ),
    st.sampled_from([None, 1, "x", [], [{}]]),
)


@pytest.mark.parametrize("name", ["protocol-request", "protocol-answer"])
@given(message=MESSAGES)
def test_variants_say_what_the_whole_schema_says(name: str, message: Any) -> None:
    assert published_variants(name).explain(message) == explain(published_validator(name), message)


def test_a_schema_that_says_more_than_its_branches_has_no_variants() -> None:
    schema = dict(published_schema("protocol-answer"))
    for change in (
        {"maxProperties": 3},
        {"required": ["id"]},
        {"properties": {"outcome": {"type": "string"}}},
        {"properties": {**schema["properties"], "id": {}}},
        {"allOf": schema["allOf"][1:]},
        {"allOf": [{**schema["allOf"][0], "else": False}, *schema["allOf"][1:]]},
    ):
        with pytest.raises(SpecError, match="expected"):
            Variants({**schema, **change}, name="changed")


def test_an_explanation_has_its_place_and_a_bounded_length() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}}}
    validator = compile_schema(schema, name="mine")
    assert explain(validator, {"a": ["x"]}) is None
    assert explain(validator, {"a": ["x", 7]}) == "at a/1: 7 is not of type 'string'"
    assert (
        explain(compile_schema({"type": "string"}, name="mine"), 7) == "at the whole value: 7 is not of type 'string'"
    )
    long = explain(validator, {"a": [["x" * 5000]]})
    assert long is not None
    assert len(long) < 400


def test_what_is_no_schema_is_named() -> None:
    with pytest.raises(SpecError, match=r"mine: not a JSON Schema: at properties/a/type"):
        compile_schema({"properties": {"a": {"type": "nonsense"}}}, name="mine")
    with pytest.raises(SpecError, match="no published schema is called 'nonsense'"):
        published_schema("nonsense")
