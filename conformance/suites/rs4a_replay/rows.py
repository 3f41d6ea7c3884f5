"""Rows of rs4a-replay that are due, held against rows that an adapter shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.specs import Relation
from holdfast.specs.strictjson import canonical

Row = Mapping[str, Any]

_KEPT = timedelta(seconds=1)


def instant(text: str) -> datetime:
    """RFC 3339 in UTC with the letter Z."""
    return datetime.fromisoformat(text)


def near(one: str, other: str) -> bool:
    """Whether two instants are the same, as far as stores keep instants: some cut or round them, none by a second."""
    return abs(instant(one) - instant(other)) < _KEPT


def same_rows(relation: Relation, due: Sequence[Row], found: Sequence[Row]) -> bool:
    """Whether the rows of a relation are those that are due, in any order.

    Columns that no due row has, or that an adapter does not show, do not count.
    """
    if len(due) != len(found):
        return False
    columns = [name for name in (due[0] if due else ()) if all(name in row for row in found)]
    instants = [name for name in columns if relation.columns[name].type == "instant"]

    def by_identity(rows: Sequence[Row]) -> list[tuple[str, Row]]:
        named = [repr([_plain(name, row[name]) for name in columns if name not in instants]) for row in rows]
        return sorted(zip(named, rows, strict=True), key=lambda pair: pair[0])

    return all(
        name == other and all(near(row[column], shown[column]) for column in instants)
        for (name, row), (other, shown) in zip(by_identity(due), by_identity(found), strict=True)
    )


def _plain(column: str, value: Any) -> object:
    """A value as it is compared. A binding that is shown as text must stand in RFC 8785 form."""
    if column != "binding":
        return value
    return value.encode() if isinstance(value, str) else canonical(value)


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
    if not near(found["recorded_at"], due["recorded_at"]):
        return False
    return all(value is None or name == "recorded_at" or found.get(name) == value for name, value in due.items())
