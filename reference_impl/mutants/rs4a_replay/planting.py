"""How a bug is planted in rs4a-replay: one part of the blueprint replaced, or one loaded value changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reference_impl.mutants.catalogue import Mutant
from reference_impl.rs4a_replay.blueprint import Blueprint
from reference_impl.rs4a_replay.settings import KeySpec, Settings
from reference_impl.rs4a_replay.terms import CONTRACT
from specs import Relation

Bug = Callable[[Blueprint], Blueprint]


def part(**parts: type[Any]) -> Bug:
    """Replace one part by a subclass that overrides one method."""
    return lambda blueprint: replace(blueprint, **parts)


def value(change: Callable[[Settings], Settings]) -> Bug:
    """Change one loaded value."""
    return lambda blueprint: replace(blueprint, loaded=change)


def key_fields(key: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Bug:
    """Change the list of fields that one key is derived from."""

    def changed(settings: Settings) -> Settings:
        spec = settings.keys[key]
        return replace(settings, keys={**settings.keys, key: KeySpec(spec.tag, change(spec.fields))})

    return value(changed)


def unique(relation: str, constraints: Mapping[str, tuple[str, ...]]) -> Bug:
    """Change the unique constraints of one relation, in the surface and in what the registrar expects of it."""

    def changed(settings: Settings) -> Settings:
        altered: Relation = replace(settings.relations[relation], unique=dict(constraints))
        return replace(settings, relations={**settings.relations, relation: altered})

    return value(changed)


def primary_key(relation: str, columns: tuple[str, ...]) -> Bug:
    """Change the primary key of one relation, in the surface and in what the registrar expects of it."""

    def changed(settings: Settings) -> Settings:
        altered: Relation = replace(settings.relations[relation], primary_key=columns)
        return replace(settings, relations={**settings.relations, relation: altered})

    return value(changed)


def also(reason: str, clauses: str) -> Mapping[str, str]:
    """Clauses, spaces between them, that a bug breaks as well, and the one reason for all of them."""
    return dict.fromkeys(clauses.split(), reason)


def mutant(
    name: str,
    title: str,
    bug: Bug,
    must_fail: Mapping[str, str],
    may_fail: Mapping[str, str] | None = None,
    *,
    store: str = "sqlite",
) -> Mutant:
    """One planted bug; clause ids without the contract's prefix."""
    return Mutant(
        name=name,
        contract=CONTRACT,
        title=title,
        must_fail={f"RS4A-{clause}": verdict for clause, verdict in must_fail.items()},
        may_fail={f"RS4A-{clause}": reason for clause, reason in (may_fail or {}).items()},
        apply=bug,
        store=store,
    )
