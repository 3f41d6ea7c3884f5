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


class SurfaceJudge:
    """Judges a catalogue against the relations of the contract."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self._required = {name: relation for name, relation in relations.items() if not relation.audit}

    def judge(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport:
        """ABSENT if nothing required is there, UNKNOWN if something is missing, NOT_FIT if it cannot hold keys."""
        if not any(name in seen for name in self._required):
            return SurfaceReport(SurfaceState.ABSENT, "none of the required relations is there; provision a surface")
        return self.missing(seen) or self.unfit(seen) or SurfaceReport(SurfaceState.PRESENT_UNPROVEN)

    def missing(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
        """A surface with missing parts is UNKNOWN."""
        for name, relation in self._required.items():
            if name not in seen:
                return SurfaceReport(SurfaceState.UNKNOWN, f"the required relation {name} is not there")
            gone = set(relation.columns) - seen[name].columns
            if gone:
                return SurfaceReport(SurfaceState.UNKNOWN, f"{name} lacks the columns {', '.join(sorted(gone))}")
        return None

    def unfit(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
        """Without exactly the required unique constraints a consumed key can be consumed again."""
        for name, relation in self._required.items():
            if not seen[name].durable:
                return SurfaceReport(SurfaceState.NOT_FIT, f"{name} does not survive a crash")
            for constraint, columns in {**relation.unique, "primary key": relation.primary_key}.items():
                if tuple(sorted(columns)) not in {tuple(sorted(found)) for found in seen[name].unique}:
                    return SurfaceReport(
                        SurfaceState.NOT_FIT,
                        f"{name} has no full, immediate unique constraint {constraint} on ({', '.join(columns)})",
                    )
        return None
