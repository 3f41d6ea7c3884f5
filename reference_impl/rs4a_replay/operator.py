"""The operations of an operator of the store that the registrar lacks: read everything, and break parts on purpose."""

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
    """The store's own answer to a row; `constraint` is the broken constraint, if the store names one."""

    inserted: bool
    constraint: str | None = None


class Operator(Protocol):
    """Observations and provocations on a store, past the registrar."""

    def rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        """Every row of each relation by name, ordered by primary key. Raises StoreError.

        An absent relation is left out. If all relations are absent that should be there, the stored state is unknown.
        Without a configured surface, every relation is empty.
        """

    def catalogue(self) -> Sequence[str]:
        """Names of every relation, index, trigger and constraint, sorted."""

    def raw_insert(self, relation: Relation, row: Row) -> RawInsert:
        """Insert one row as given, past every check of code."""

    def break_surface(self, how: Breakage) -> None:
        """Break the surface for the registrar; the operator can still read it."""

    def break_audit(self) -> None:
        """Make the audit sink refuse writes."""

    def mend_audit(self) -> None:
        """Make the audit sink work again."""

    def close(self) -> None:
        """Give back connections. Never raises."""


def there(
    relations: Sequence[Relation], found: Mapping[str, Sequence[Row]], expected: SurfaceWanted
) -> Mapping[str, Sequence[Row]]:
    """The rows of those `relations` that exist, in the form of `Operator.rows`. Raises StoreError."""
    if expected is SurfaceWanted.ABSENT:
        return {**{relation.name: [] for relation in relations}, **found}
    if not found:
        raise StoreError(
            f"expected the relations {', '.join(relation.name for relation in relations)}, found none of them; "
            "is this the store of this contract?"
        )
    return found
