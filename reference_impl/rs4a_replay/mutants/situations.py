"""Bugs of the operations beside the main one that show in one situation only: a time, a rival, another process."""

from __future__ import annotations

from typing import Any

from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Store


def _asked(store: Store, statement: str, *values: object) -> Any:
    """The first value that the surface answers a statement with; None if it has none."""
    assert isinstance(store, SqliteStore), "these bugs are planted on SQLite"
    found = store._database.connection().execute(statement, values).fetchone()
    return None if found is None else found[0]


# Issuing


# Validating


# Registering


# Compensating


# The status


# Retention
