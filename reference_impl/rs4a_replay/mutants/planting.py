"""How a bug is planted in rs4a-replay, and the values that several of its bugs change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from holdfast.reference_impl.mutants.planting import Bug, Planting
from holdfast.reference_impl.rs4a_replay.settings import KeySpec, Settings
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT

_PLANTING: Planting[Settings] = Planting(CONTRACT, prefix="RS4A-", store="sqlite")
mutant, value = _PLANTING.mutant, _PLANTING.value


def key_fields(key: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Bug:
    """Change the list of fields that one key is derived from."""

    def changed(settings: Settings) -> Settings:
        spec = settings.keys[key]
        return replace(settings, keys={**settings.keys, key: KeySpec(spec.tag, change(spec.fields))})

    return value(changed)


def unique(relation: str, constraints: Mapping[str, tuple[str, ...]]) -> Bug:
    """Change the unique constraints of one relation, in the surface and in what the registrar expects of it."""
    return _altered(relation, unique=dict(constraints))


def primary_key(relation: str, columns: tuple[str, ...]) -> Bug:
    """Change the primary key of one relation, in the surface and in what the registrar expects of it."""
    return _altered(relation, primary_key=columns)


def _altered(relation: str, **members: Any) -> Bug:
    def changed(settings: Settings) -> Settings:
        altered = structs.replace(settings.relations[relation], **members)
        return replace(settings, relations={**settings.relations, relation: altered})

    return value(changed)
