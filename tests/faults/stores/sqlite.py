"""A store on SQLite, in its journal and synchronous modes."""

from __future__ import annotations

import contextlib
import os
import sqlite3

from tests.faults.stores.serve import say, seal, sealed, serve

# Journal mode and synchronous of each variant; not named here: WAL and FULL.
MODES = {
    "wal_normal": ("WAL", "NORMAL"),
    "wal_off": ("WAL", "OFF"),
    "delete_off": ("DELETE", "OFF"),
    "delete_full": ("DELETE", "FULL"),
    "delete_extra": ("DELETE", "EXTRA"),
    "memory": ("MEMORY", "FULL"),
}
# A table, and so a page at least, for each of the two facts of a put.
TABLES = ("left", "right")


def write(name: str) -> str:
    """The statement that sets a fact."""
    table = name.rpartition(".")[2]
    return f'INSERT INTO "{table}" VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value'


class Sqlite:
    """Facts as rows."""

    def __init__(self, variant: str, where: str) -> None:
        self._variant = variant
        self.answers_itself = variant == "ack_first"
        journal, synchronous = MODES.get(variant, ("WAL", "FULL"))
        self._db = sqlite3.connect(os.path.join(where, "facts.db"), isolation_level=None)
        # The row has the current mode. SQLite reports an error of the change in no other way.
        row = self._db.execute(f"PRAGMA journal_mode={journal}")
        if variant != "unread_pragma" and row.fetchone() != (journal.lower(),):
            raise RuntimeError(f"the journal mode {journal} cannot be had")
        row.close()
        self._db.execute(f"PRAGMA synchronous={synchronous}")
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables - {*TABLES, "seal"}:
            raise RuntimeError(f"facts.db is not ours, it has tables {sorted(tables)}")
        for table in TABLES:
            self._db.execute(f'CREATE TABLE IF NOT EXISTS "{table}" (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID')
        self._db.execute("CREATE TABLE IF NOT EXISTS seal (one INTEGER PRIMARY KEY CHECK (one = 1), told TEXT)")

    def put(self, facts: dict[str, str]) -> None:
        """One transaction; in `two_commits` each fact is one, in `best_effort` the second may fail."""
        if self.answers_itself:
            say("OK")
        if self._variant in ("two_commits", "best_effort"):
            for number, fact in enumerate(facts.items()):
                with contextlib.suppress(*(sqlite3.OperationalError,) * (self._variant == "best_effort" and number)):
                    self._db.execute(write(fact[0]), fact)
            return
        self._db.execute("BEGIN IMMEDIATE")
        every = {**self.dump(), **facts}
        for fact in facts.items():
            self._db.execute(write(fact[0]), fact)
        self._db.execute("INSERT OR REPLACE INTO seal VALUES (1, ?)", (seal(every),))
        self._db.execute("COMMIT")

    def dump(self) -> dict[str, str]:
        facts = {name: value for table in TABLES for name, value in self._db.execute(f'SELECT * FROM "{table}"')}
        told = self._db.execute("SELECT told FROM seal").fetchone()
        return facts if self._variant in ("two_commits", "best_effort") else sealed(facts, told and told[0])

    def close(self) -> None:
        self._db.close()


if __name__ == "__main__":
    serve(Sqlite)
