"""The loaded values that several bugs of rs4a-replay change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from holdfast.reference_impl.planting import Change, value
from holdfast.reference_impl.rs4a_replay.settings import Settings


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
