"""How a bug is planted in jcs: one part of the blueprint replaced, or one loaded value changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reference_impl.jcs.blueprint import Blueprint
from reference_impl.jcs.terms import CONTRACT, Limits
from reference_impl.mutants.catalogue import Mutant
from specs import load_terms

# Stands for every clause, where a bug changes every canonical form.
EVERYTHING = "EVERYTHING"

Bug = Callable[[Blueprint], Blueprint]


def part(**parts: type[Any]) -> Bug:
    """Replace one part by a subclass that overrides one method."""
    return lambda blueprint: replace(blueprint, **parts)


def value(change: Callable[[Limits], Limits]) -> Bug:
    """Change one loaded value."""
    return lambda blueprint: replace(blueprint, loaded=change)


def also(reason: str, clauses: str) -> dict[str, str]:
    """Clauses, spaces between them, that a bug breaks as well, and the one reason for all of them."""
    return dict.fromkeys(clauses.split(), reason)


def mutant(
    name: str,
    title: str,
    bug: Bug,
    must_fail: Mapping[str, str],
    may_fail: Mapping[str, str] | None = None,
) -> Mutant:
    """One planted bug; clause ids without the contract's prefix, EVERYTHING for all that it need not break."""
    may = dict(may_fail or {})
    if EVERYTHING in may:
        reason = may.pop(EVERYTHING)
        may = {clause.removeprefix("JCS-"): reason for clause in load_terms(CONTRACT).clauses} | may
    return Mutant(
        name=name,
        contract=CONTRACT,
        title=title,
        must_fail={f"JCS-{clause}": verdict for clause, verdict in must_fail.items()},
        may_fail={f"JCS-{clause}": reason for clause, reason in may.items() if clause not in must_fail},
        apply=bug,
        store="none",
    )
