"""What the leaves of arguments say of themselves, and what the linter asks of a contract that sweeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.attacks import mark_of
from holdfast.conformance.run.plan import suite_modules, suite_tests
from holdfast.specs import SpecError, contract_names, load_contract
from holdfast.specs.leaves import leaves
from holdfast.specs.lint import unswept
from tests.specs.conftest import Spoilt

SWEPT = [name for name in contract_names() if load_contract(name).neighbours is not None]
CALL = {"call": "put", "args": {"key": "lamp", "nonce": "n-${rand:nonce}"}}
SWEEP = {
    "clause": "TOY-01",
    "title": "A near miss of a key is another key",
    "leaves": ["put:key", "put:nonce"],
    "probe": CALL,
    "due": {"other": {"outcome": "accepted"}, "malformed": {"outcome": "refused", "reason": "REQUEST_MALFORMED"}},
}


def with_sweep(toy: Spoilt, **changes: Any) -> Spoilt:
    """The toy contract with one sweep of both of its leaves."""
    toy.methods["$defs"]["name"]["x-leaf"] = {"kind": "identifier"}
    sweep = {name: value for name, value in {**SWEEP, **changes}.items() if value is not None}
    (toy.folder / "neighbours.yaml").write_text(json.dumps({"contract": "toy", "sweeps": {"keys": sweep}}))
    return toy


def test_paths_lead_into_objects_arrays_and_encoded_texts() -> None:
    schema = {
        "type": "object",
        "properties": {
            "plain": {"$ref": "#/$defs/word"},
            "many": {"type": "array", "items": {"properties": {"each": {"type": "integer"}}}},
            "sealed": {"type": "string", "x-leaf": {"kind": "base64url", "inside": "letter"}},
        },
        "$defs": {
            "word": {"type": "string", "x-leaf": {"kind": "text"}},
            "letter": {
                "x-leaf": {"kind": "document"},
                "properties": {"to": {"$ref": "#/$defs/word"}},
                "additionalProperties": {"type": "string"},
            },
        },
    }
    found = {place.path: None if place.leaf is None else place.leaf.kind for place in leaves(schema)}
    assert found == {
        "plain": "text",
        "many.*.each": None,
        "sealed": "base64url",
        "sealed/": "document",
        "sealed/to": "text",
        "sealed/*": None,
    }


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(SpecError, match="kind"):
        leaves({"properties": {"key": {"type": "string", "x-leaf": {"kind": "opaque"}}}})


def test_a_contract_without_sweeps_owes_no_kinds(toy: Spoilt) -> None:
    assert list(unswept(toy.read())) == []


@pytest.mark.parametrize(
    ("leaves", "nonce", "problems"),
    [
        (["put:key", "put:nonce"], {"$ref": "#/$defs/name"}, []),
        (["put:key"], {"$ref": "#/$defs/name"}, ["leaf put:nonce: no sweep of neighbours.yaml varies it"]),
        (
            ["put:key"],
            {"type": "string"},
            ["leaf put:nonce: says not what it is; give its schema in methods.yaml"],
        ),
    ],
)
def test_a_leaf_that_has_no_kind_or_that_no_sweep_varies_is_found(
    toy: Spoilt, leaves: list[str], nonce: Any, problems: list[str]
) -> None:
    with_sweep(toy, leaves=leaves)
    toy.methods["$defs"]["entry"]["properties"]["nonce"] = nonce
    assert [found[: len(due)] for found, due in zip(unswept(toy.read()), problems, strict=True)] == problems


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"clause": "TOY-99"}, "TOY-99"),
        ({"leaves": ["put:colour"]}, "put:colour"),
        ({"probe": {"call": "state"}}, "state"),
        ({"given": [{"provoke": "put"}]}, "put"),
        ({"due": {"same": {"outcome": "accepted"}}}, "other"),
        ({"leaves": None}, "value"),
    ],
)
def test_a_sweep_that_names_what_is_not_there_does_not_load(toy: Spoilt, changes: Any, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        with_sweep(toy, **changes).read()


@pytest.mark.parametrize("name", SWEPT)
def test_every_sweep_is_run_by_one_suite_test_of_its_clause(name: str) -> None:
    declared = load_contract(name).neighbours
    assert declared is not None
    (module,) = (module for module in suite_modules(name) if Path(str(module.__file__)).stem == "neighbours")
    marks = [mark_of(test) for test, _ in suite_tests(name) if test.__module__ == module.__name__]
    clauses = [mark.clauses[0] for mark in marks if mark is not None]
    assert sorted(clauses) == sorted({sweep.clause for sweep in declared.sweeps.values()})
