"""Rows of rs4a-replay that are due, held against rows that an adapter shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.specs import Relation
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads

Row = Mapping[str, Any]


def instant(text: str) -> datetime:
    """RFC 3339 in UTC with the letter Z."""
    return datetime.fromisoformat(text)


def same_rows(relation: Relation, due: Sequence[Row], found: Sequence[Row]) -> bool:
    """Whether the rows of a relation are those that are due, in any order. Columns that no due row has do not count."""

    def plain(rows: Sequence[Row]) -> list[str]:
        columns = due[0] if due else ()
        return sorted(
            repr([_plain(name, relation.columns[name].type, row.get(name)) for name in columns]) for row in rows
        )

    return plain(due) == plain(found)


def _plain(column: str, kind: str, value: Any) -> object:
    """A stored value in the one form in which it is compared."""
    try:
        if kind == "instant":
            return instant(value)
        return canonical(loads(value) if isinstance(value, str) else value) if column == "binding" else value
    except (TypeError, ValueError, StrictJsonError):
        return value


def accounted(records: Sequence[Row], due: Sequence[Row], maybe: Sequence[Row]) -> bool:
    """Whether the audit has one record for each that is due, and no other but those that may be.

    A member that is None can be anything.
    """
    left = list(records)

    def take(row: Row) -> bool:
        for place, found in enumerate(left):
            if _is_like(row, found):
                del left[place]
                return True
        return False

    # What says most is taken first, so that no other takes its place.
    ordered = sorted(due, key=lambda row: sum(value is not None for value in row.values()), reverse=True)
    return all(map(take, ordered)) and all(any(_is_like(row, each) for row in maybe) for each in left)


def _is_like(due: Row, found: Row) -> bool:
    if instant(found["recorded_at"]) != instant(due["recorded_at"]):
        return False
    return all(value is None or name == "recorded_at" or found.get(name) == value for name, value in due.items())
