"""What an operator of the store may do and the registrar may not: look at everything, and break things on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Protocol

from holdfast.reference_impl.rs4a_replay.store import Row, StoreError
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.specs import Relation


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
        """Every row of each relation by name, ordered by primary key. Raises StoreError.

        A relation that is not there has no rows to name: it is left out, and where there is none at all that should
        be, nobody can tell what was stored. Where no surface was asked for, every relation is empty.
        """

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


def there(
    relations: Sequence[Relation], found: Mapping[str, Sequence[Row]], expected: SurfaceWanted
) -> Mapping[str, Sequence[Row]]:
    """What was found of `relations`, as `Operator.rows` has it. Raises StoreError."""
    if expected is SurfaceWanted.ABSENT:
        return {relation.name: found.get(relation.name, []) for relation in relations}
    if not found:
        names = ", ".join(relation.name for relation in relations)
        raise StoreError(f"expected the relations {names}, found none of them; is this the store of this contract?")
    return found
