"""The planted bugs as declared: one change each, named clauses, and enough of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.mutants import Mutant, all_mutants, find
from holdfast.reference_impl.registry import contract_names, package_of
from holdfast.specs import load_terms
from holdfast.specs.model import Basis, Proof
from holdfast.specs.schema import explain, published_validator

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = all_mutants()
CONTRACTS = contract_names()
# How the values that a factory has loaded are looked at, for the contracts whose mutants change one.
LOADED: Mapping[str, Callable[[Any], Any]] = {
    "rs4a-replay": lambda factory: factory.settings({}),
    "jcs": lambda factory: factory.limits(),
    "calyx-replay": lambda factory: factory.settings({}),
}


def reference(contract: str) -> Any:
    """The factory without a bug."""
    return import_module(f"{package_of(contract)}.factory").REFERENCE


# How many methods a bug may take. The store of calyx-replay checks what its receiver does, so that a bug in one has to
# get past the other, and a schema that lacks something has to be taken for the right one. Objects of hx-sync are
# written and read, and who writes something else has to read it.
MOST_METHODS: Mapping[str, int] = {"calyx-replay": 6, "hx-sync": 3}


def overridden(bug: type[Any], honest: type[Any]) -> set[str]:
    """The methods of the honest class that the bug, or a class between them, has in another form."""
    between = bug.__mro__[: bug.__mro__.index(honest)]
    return {name for one in between for name in vars(one) if not name.startswith("__") and hasattr(honest, name)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_method_or_one_loaded_value(mutant: Mutant) -> None:
    whole = reference(mutant.contract)
    changed = mutant.apply(whole)
    parts = [f.name for f in fields(whole) if getattr(changed, f.name) is not getattr(whole, f.name)]
    if parts == ["loaded"]:
        before, after = LOADED[mutant.contract](whole), LOADED[mutant.contract](changed)
        values = [f.name for f in fields(before) if getattr(before, f.name) != getattr(after, f.name)]
        assert len(values) == 1
        return
    methods = [overridden(getattr(changed, part), getattr(whole, part)) for part in parts]
    assert all(methods), "a part is replaced by one that does the same"
    assert 1 <= sum(map(len, methods)) <= MOST_METHODS.get(mutant.contract, 1), methods


def test_names_are_unique_and_found() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(find(mutant.name) is mutant for mutant in MUTANTS)


def test_declared_clauses_exist_and_can_be_proven_by_a_run() -> None:
    for mutant in MUTANTS:
        contract = load_terms(mutant.contract)
        for clause in (*mutant.must_fail, *mutant.may_fail):
            assert contract.clauses[clause].proof is Proof.RUN, f"{mutant.name}: {clause}"
        assert not set(mutant.must_fail) & set(mutant.may_fail)


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_explicit_clause_that_a_run_can_prove_has_a_mutant(name: str) -> None:
    broken = {clause for mutant in MUTANTS for clause in mutant.must_fail}
    explicit = {
        clause.id
        for clause in load_terms(name).clauses.values()
        if clause.proof is Proof.RUN and clause.basis is Basis.EXPLICIT and clause.unbreakable is None
    }
    assert explicit - broken == set()


def test_the_listing_fits_its_published_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.reference_impl", "mutants", "--json"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert explain(published_validator("mutants"), json.loads(done.stdout)) is None


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_reference_itself_carries_no_change(name: str) -> None:
    whole = reference(name)
    assert replace(whole) == type(whole)()
