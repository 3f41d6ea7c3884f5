"""What fits a schema: the answer is that of another draft 2020-12 validator, for contracts and for made-up schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.specs import load_terms
from holdfast.specs.schema import Validator, compile_schema, explain
from tests.specs.draft import Draft

VALIDATORS = {name: method.args for name, method in load_terms("rs4a-replay").methods.items()}
DRAFTS = {name: Draft(validator.schema) for name, validator in VALIDATORS.items()}
HASH = "ab" * 32
GOOD: Mapping[str, Any] = {
    "protocol_version": "rs4a/0.2",
    "operation": "register_dot",
    "canonical_target": "dot://acme/thing",
    "owner_or_approval_binding": "owner-1",
    "principal": "agent-1",
    "run_id": "run-1",
    "deployed_artifact_hash": HASH,
    "authorization_nonce": "n" * 16,
    "attempt_id": "try-1",
    "issued_at": "2026-01-01T00:00:00Z",
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["", " ", "x", "x\n", HASH + "\n", "é" * 1024, "n" * 257, None, 1, True, [], {}, {"principal": "a"}]
)
REQUESTS = st.builds(
    lambda changed, gone: {name: value for name, value in {**GOOD, **changed}.items() if name not in gone},
    st.dictionaries(st.sampled_from([*GOOD, "artifact_hash", "surprise"]), ODD | st.just(HASH), max_size=2),
    st.sets(st.sampled_from(sorted(GOOD)), max_size=1),
)
ARGUMENTS = st.one_of(
    ODD,
    st.fixed_dictionaries({"request": REQUESTS, "trusted_attested": st.just({"artifact_hash": HASH}) | ODD}),
    st.fixed_dictionaries(
        {},
        optional={
            "binding": st.sampled_from([{}, {"principal": "a"}, {"principal": ""}, {"canonical_target": "x", "y": 1}]),
            "window": st.just({"not_before": GOOD["issued_at"], "not_after": GOOD["issued_at"]}) | ODD,
            "nonce": ODD | st.just("n" * 16),
            "logical_request_key": ODD | st.just(HASH),
            "point": st.sampled_from(["before_commit", "nowhere"]),
            "fault": st.sampled_from(["hold", "drop"]),
            "broken": st.booleans() | ODD,
            "how": st.sampled_from(["slow", "fast"]),
        },
    ),
)


@pytest.mark.parametrize("name", VALIDATORS)
@given(args=ARGUMENTS)
def test_the_arguments_of_a_method_fit_as_another_validator_says(name: str, args: Any) -> None:
    assert VALIDATORS[name].is_valid(args) is DRAFTS[name].fits(args)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_good_submission_fits_and_one_with_a_member_too_many_does_not(*, wanted: bool) -> None:
    sent = {"request": GOOD if wanted else {**GOOD, "surprise": "x"}, "trusted_attested": {"artifact_hash": HASH}}
    assert VALIDATORS["register"].is_valid(sent) is wanted


# What answers and observations are made of: numbers, lists, records whose members are not declared, one of several.
PARTS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            True,
            False,
            {},
            {"type": "null"},
            {"type": "boolean"},
            {"type": "integer"},
            {"type": "integer", "minimum": 0, "maximum": 9},
            {"type": "number", "minimum": 0.5},
            {"type": ["integer", "null"], "minimum": 1},
            {"type": ["string", "number"]},
            {"type": "string", "maxLength": 1},
            {"type": "string", "pattern": "^a$"},
            {"type": "integer", "multipleOf": 2},
            {"pattern": "^a$"},
            {"required": ["a"]},
            {"enum": ["a", "b"]},
            {"$ref": "#/$defs/b"},
        ]
    ),
    lambda part: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": part,
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(0, 2),
                "uniqueItems": st.booleans(),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "required": st.lists(st.sampled_from("ab"), unique=True),
                "properties": st.dictionaries(st.sampled_from("ab"), part),
                "additionalProperties": part,
                "propertyNames": part,
                "minProperties": st.just(1),
                "maxProperties": st.just(1),
                "maxContains": st.just(1),
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.just("object"),
                "anyOf": st.lists(part, min_size=1, max_size=3),
                "oneOf": st.lists(part, min_size=1, max_size=3),
                "dependentSchemas": st.dictionaries(st.sampled_from("ab"), part),
                "if": part,
                "then": part,
                "else": part,
                "unevaluatedProperties": st.just(False),
            },
        ),
    ),
    max_leaves=6,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, 9, 10, -1, 0.5, 1.0, 9.5, 1e300, "", "a", "b", "a\n", "ab"]),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.sampled_from("abc"), value, max_size=3),
    max_leaves=6,
)


@given(part=PARTS, value=VALUES)
def test_a_value_fits_any_schema_as_another_validator_says(part: Any, value: Any) -> None:
    definitions = {"b": {"type": "array", "items": {"type": "boolean"}}}
    whole = {**part, "$defs": definitions} if isinstance(part, dict) else {"allOf": [part], "$defs": definitions}
    validator, fits = compile_schema(whole, name="mine"), Draft(whole).fits(value)
    assert validator.is_valid(value) is fits
    assert (explain(validator, value) is None) is fits


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {"const": 1},
        {"enum": ["a", 1]},
        {"type": ["string", "null"], "maxLength": 1},
        {"type": "string", "format": "date-time", "maxLength": 1},
        {"pattern": "^a$"},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
        {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "properties": {"a": {"$ref": "#/$defs/b"}},
        },
        {"$ref": "#/$defs/b", "maxLength": 1},
        {"$ref": "#/$defs/again"},
    ],
)
def test_a_value_fits_a_keyword_as_another_validator_says(schema: Any) -> None:
    again = {"type": "object", "additionalProperties": False, "properties": {"a": {"$ref": "#/$defs/again"}}}
    whole: dict[str, Any] = {"$defs": {"b": {"type": "string", "pattern": "b"}, "again": again}}
    whole = {**schema, **whole} if isinstance(schema, dict) else {**whole, "allOf": [schema]}
    validator, draft = Validator(whole), Draft(whole)
    objects: tuple[Any, ...] = ({}, {"a": 1}, {"a": "b"}, {"a": {"a": {}}}, {"a": {"b": {}}})
    for value in (*objects, [], "a", "b", "bb", "", 1, 1.0, True, None):
        assert validator.is_valid(value) is draft.fits(value)
