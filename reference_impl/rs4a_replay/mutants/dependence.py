"""Bugs that appear when the store is lost: no sync, a new empty store, a guess, or a wait without end."""

from __future__ import annotations

import contextlib
import sqlite3

from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore


def made_anew(store: SqliteStore) -> None:
    """Make a store that is gone, as CREATE TABLE IF NOT EXISTS does each time one is opened."""
    path = store._database.path
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode = WAL").fetchone()
        surface = {name: relation for name, relation in store._relations.items() if not relation.audit}
        for statement in SqliteDialect().statements(surface):
            made.execute(statement)
