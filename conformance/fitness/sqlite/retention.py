"""Defaults that give a row an end. They are worked out by SQLite itself, beside the moment in which that is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

from conformance.fitness.sqlite.catalogue import Column, Relation

_DAY_S = 86_400
# Numbers below are no seconds since 1970 that anybody means.
_EPOCH_FLOOR = 1_000_000_000
# A default that says when a row was made is not behind this moment by more.
_NOW_DAYS = 60 / _DAY_S
_FAR = ("infinity", "never", "forever")


def defaults_that_end(relation: Relation) -> Iterator[tuple[Column, float]]:
    """Columns whose default lies in the future, with the days until then."""
    for column in relation.columns.values():
        days = _days_ahead(column.default)
        # A fixed instant far away, such as the year 9999, ends nothing that anybody keeps: only what moves along does.
        if days is not None and days > _NOW_DAYS and _moves(column.default):
            yield column, days


def is_endless(relation: Relation, column: Column, horizon: timedelta | None) -> bool:
    """Whether a row that does not say how long it is kept is kept for the horizon; None is for ever."""
    del relation
    if column.default is None or column.default.upper() == "NULL":
        return False
    if column.default.strip("'\"").casefold() in _FAR:
        return True
    days = _days_ahead(column.default)
    if days is None:
        return False
    if horizon is None:
        return not _moves(column.default) and days > 1000 * 365
    return days * _DAY_S >= horizon.total_seconds()


def _moves(default: str | None) -> bool:
    """Whether a default depends on the moment."""
    said = (default or "").casefold()
    return any(word in said for word in ("now", "current_", "unixepoch(", "julianday(", "strftime(", "datetime("))


def _days_ahead(default: str | None) -> float | None:
    """How many days after now the value of a default lies; None if it is no instant."""
    if default is None:
        return None
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            value = connection.execute(f"SELECT ({default})").fetchone()[0]
            if isinstance(value, int | float):
                if value < _EPOCH_FLOOR:
                    return None
                sql = "SELECT (? - strftime('%s', 'now')) / 86400.0"
            else:
                sql = "SELECT julianday(?) - julianday('now')"
            found = connection.execute(sql, (value,)).fetchone()[0]
        except (sqlite3.Error, OverflowError):
            return None
    return None if found is None else float(found)
