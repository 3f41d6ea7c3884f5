"""What an operator of the store may do and the registrar may not: look at everything, and break things on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Protocol

from reference_impl.rs4a_replay.store import Row
from specs import Relation


@unique
class Breakage(Enum):
    """How a surface can be broken."""

    UNREACHABLE = "unreachable"
    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class RawInsert:
    """What the store itself said to a row; `constraint` is the one it broke, where the store names one."""

    inserted: bool
    constraint: str | None = None


class Operator(Protocol):
    """Observations and provocations on a store, past the registrar."""

    def rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        """Every row of each relation by name, ordered by primary key; none for a relation that is not there."""

    def catalogue(self) -> Sequence[str]:
        """Names of every relation, index, trigger and constraint, sorted."""

    def raw_insert(self, relation: Relation, row: Row) -> RawInsert:
        """Insert one row as given, past every check of code."""

    def break_surface(self, how: Breakage, relations: Mapping[str, Relation]) -> None:
        """Break the surface for the registrar; the operator goes on seeing it."""

    def break_audit(self, relation: Relation) -> None:
        """Make the audit sink refuse writes."""

    def mend_audit(self, relation: Relation) -> None:
        """Make the audit sink work again."""

    def close(self) -> None:
        """Give back connections. Never raises."""
