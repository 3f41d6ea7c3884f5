"""A shelf in a SQLite database, and the session on it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Ok, Refused
from holdfast.specs import kept_terms

CONTRACT = "shelf-once"
_FILE = "shelf.sqlite"


class Store:
    """The names in one SQLite database."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / _FILE, isolation_level=None, timeout=20.0)
        # As SQLite asks of its journals: a commit is durable when it returns, with its folder.
        self._connection.execute("PRAGMA synchronous = EXTRA")

    def make(self) -> None:
        """Make the tables of a fresh shelf."""
        self._connection.execute("CREATE TABLE entry (key TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT")
        self._connection.execute("CREATE TABLE history (key TEXT NOT NULL, name TEXT NOT NULL) STRICT")

    def put(self, key: str, name: str) -> bool:
        """Put a name on the shelf; False if it stands there already."""
        self._connection.execute("BEGIN IMMEDIATE")
        put = self._connection.execute("INSERT INTO entry VALUES (?, ?) ON CONFLICT DO NOTHING", (key, name)).rowcount
        if put:
            self._connection.execute("INSERT INTO history VALUES (?, ?)", (key, name))
        self._connection.execute("COMMIT")
        return put == 1

    def rows(self, table: str, order: str) -> list[Mapping[str, str]]:
        """Every row of one table."""
        found = self._connection.execute(f"SELECT key, name FROM {table} ORDER BY {order}")
        return [{"key": key, "name": name} for key, name in found]

    def close(self) -> None:
        """Give the database back."""
        self._connection.close()


class Service:
    """Implements `session.Session`."""

    place = None

    def __init__(self, store: Store) -> None:
        terms = kept_terms(CONTRACT)
        self._store = store
        self._longest_name = terms.parameters["longest_name"].value
        self._schema = terms.methods["put"].args

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        if method == "state":
            return Ok({"entry": self._store.rows("entry", "key"), "history": self._store.rows("history", "rowid")})
        if method != "put":
            return Fault(f"unknown method {method!r}; known: put, state")
        if not self._schema.is_valid(args):
            return Refused("REQUEST_MALFORMED")
        name = args["name"]
        if len(name) > self._longest_name:
            return Refused("NAME_TOO_LONG")
        key = hashlib.sha256(name.encode()).hexdigest()
        if not self._store.put(key, name):
            return Refused("DUPLICATE")
        return Accepted(Effect.NEW, {"entry": {"key": key, "name": name}})

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing here depends on time."""

    def close(self) -> None:
        """See `session.Session`."""
        self._store.close()
