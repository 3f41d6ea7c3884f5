"""The planted bugs as declared: one change each, named clauses, and enough of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from reference_impl.mutants import Mutant, all_mutants, find
from reference_impl.rs4a_replay.blueprint import REFERENCE, Blueprint
from specs import load_terms
from specs.model import Basis, Proof
from specs.schema import explain, published_validator

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = all_mutants()
CONTRACT = load_terms("rs4a-replay")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_method_or_one_loaded_value(mutant: Mutant) -> None:
    changed: Blueprint = mutant.apply(REFERENCE)
    parts = [f.name for f in fields(Blueprint) if getattr(changed, f.name) is not getattr(REFERENCE, f.name)]
    (part,) = parts
    if part == "loaded":
        before, after = REFERENCE.settings({}), changed.settings({})
        values = [f.name for f in fields(before) if getattr(before, f.name) != getattr(after, f.name)]
        assert len(values) == 1
        return
    bug, honest = getattr(changed, part), getattr(REFERENCE, part)
    assert bug.__mro__[1] is honest
    overridden = [name for name in vars(bug) if not name.startswith("__")]
    (name,) = overridden
    assert hasattr(honest, name), f"{name} is new; a mutant overrides"


def test_names_are_unique_and_found() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(find(mutant.name) is mutant for mutant in MUTANTS)


def test_declared_clauses_exist_and_can_be_proven_by_a_run() -> None:
    for mutant in MUTANTS:
        for clause in (*mutant.must_fail, *mutant.may_fail):
            assert CONTRACT.clauses[clause].proof is Proof.RUN, f"{mutant.name}: {clause}"
        assert not set(mutant.must_fail) & set(mutant.may_fail)


def test_every_explicit_clause_that_a_run_can_prove_has_a_mutant() -> None:
    broken = {clause for mutant in MUTANTS for clause in mutant.must_fail}
    explicit = {
        clause.id
        for clause in CONTRACT.clauses.values()
        if clause.proof is Proof.RUN and clause.basis is Basis.EXPLICIT and clause.unbreakable is None
    }
    assert explicit - broken == set()


def test_the_listing_fits_its_published_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reference_impl", "mutants", "--json"], cwd=ROOT, capture_output=True, check=True
    )
    assert explain(published_validator("mutants"), json.loads(done.stdout)) is None


def test_the_reference_itself_carries_no_change() -> None:
    assert replace(REFERENCE) == Blueprint()
