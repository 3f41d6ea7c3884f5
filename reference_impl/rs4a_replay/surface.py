"""Judging a surface by its structure, never by its name. An unknown or incomplete part counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.reference_impl.rs4a_replay.terms import SurfaceState
from holdfast.specs import Relation


@dataclass(frozen=True, slots=True)
class SeenRelation:
    """One relation of the catalogue: its columns, and the column lists of its *sound* unique indexes.

    Sound: valid, immediate, unconditional, over plain columns. `durable` is false for what a crash may empty.
    """

    columns: frozenset[str]
    unique: frozenset[tuple[str, ...]]
    durable: bool


@dataclass(frozen=True, slots=True)
class SurfaceReport:
    """The state of a surface, with its first defect."""

    state: SurfaceState
    detail: str = ""


def judged(required: Mapping[str, Relation], seen: Mapping[str, SeenRelation]) -> SurfaceReport:
    """ABSENT if nothing required is there, UNKNOWN if something is missing, NOT_FIT if it cannot hold keys."""
    if not any(name in seen for name in required):
        return SurfaceReport(SurfaceState.ABSENT, "none of the required relations is there; provision a surface")
    return missing(required, seen) or unfit(required, seen) or SurfaceReport(SurfaceState.PRESENT_UNPROVEN)


def missing(required: Mapping[str, Relation], seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
    """A surface with missing parts is UNKNOWN."""
    for name, relation in required.items():
        if name not in seen:
            return SurfaceReport(SurfaceState.UNKNOWN, f"the required relation {name} is not there")
        gone = set(relation.columns) - seen[name].columns
        if gone:
            return SurfaceReport(SurfaceState.UNKNOWN, f"{name} lacks the columns {', '.join(sorted(gone))}")
    return None


def unfit(required: Mapping[str, Relation], seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
    """Without exactly the required unique constraints a consumed key can be consumed again."""
    for name, relation in required.items():
        if not seen[name].durable:
            return SurfaceReport(SurfaceState.NOT_FIT, f"{name} does not survive a crash")
        for constraint, columns in {**relation.unique, "primary key": relation.primary_key}.items():
            if tuple(sorted(columns)) not in {tuple(sorted(found)) for found in seen[name].unique}:
                return SurfaceReport(
                    SurfaceState.NOT_FIT,
                    f"{name} has no full, immediate unique constraint {constraint} on ({', '.join(columns)})",
                )
    return None
