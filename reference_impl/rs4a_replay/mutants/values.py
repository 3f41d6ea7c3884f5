"""The loaded values that several bugs of rs4a-replay change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from holdfast.reference_impl.planting import Change, value
from holdfast.reference_impl.rs4a_replay.settings import KeySpec, Settings


def key_fields(key: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Change:
    """Change the list of fields that one key is derived from."""

    def changed(settings: Settings) -> Settings:
        spec = settings.keys[key]
        return replace(settings, keys={**settings.keys, key: KeySpec(spec.tag, change(spec.fields))})

    return value(changed)


def unique(relation: str, constraints: Mapping[str, tuple[str, ...]]) -> Change:
    """Change the unique constraints of one relation, in the surface and in what the registrar expects of it."""
    return _altered(relation, unique=dict(constraints))


def primary_key(relation: str, columns: tuple[str, ...]) -> Change:
    """Change the primary key of one relation, in the surface and in what the registrar expects of it."""
    return _altered(relation, primary_key=columns)


def _altered(relation: str, **members: Any) -> Change:
    def changed(settings: Settings) -> Settings:
        altered = structs.replace(settings.relations[relation], **members)
        return replace(settings, relations={**settings.relations, relation: altered})

    return value(changed)
