"""The tables of an index (source section 9), and whether a database has exactly these.

Of `imported_segments` and `applied_tombstones` the contract pins the names and the columns, of `counters`,
`vault_config` and `node_config` as well. Instants are microseconds since 1970 but for those of `applied_tombstones`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

Catalogue: TypeAlias = Mapping[tuple[str, str], str]

# The tables that are derived from objects, which a rebuild makes anew. Forgotten keys are not among them.
DERIVED = (
    "imported_segments",
    "imported_blobs",
    "manifest_objects",
    "imported_manifests",
    "events",
    "sessions",
    "artifacts",
    "pins",
    "complaints",
    "foreign_objects",
    "withheld_objects",
)


class Schema:
    """The statements that make the database."""

    def vault_config(self) -> str:
        """One row: the vault. Its key is nowhere in the index."""
        return "CREATE TABLE vault_config (\n  vault_id TEXT PRIMARY KEY\n) WITHOUT ROWID"

    def node_config(self) -> str:
        """One row: which device this is."""
        return "CREATE TABLE node_config (\n  node_id TEXT PRIMARY KEY\n) WITHOUT ROWID"

    def imported_segments(self) -> str:
        """Imported objects, by the hash of their bytes."""
        return (
            "CREATE TABLE imported_segments (\n"
            "  segment_id TEXT,\n"
            "  node_id TEXT,\n"
            "  object_hash TEXT NOT NULL,\n"
            "  PRIMARY KEY (node_id, segment_id)\n"
            ") WITHOUT ROWID"
        )

    def applied_tombstones(self) -> str:
        """Forgotten windows: this table is never emptied."""
        return (
            "CREATE TABLE applied_tombstones (\n"
            "  tombstone_id TEXT PRIMARY KEY,\n"
            "  node_id TEXT,\n"
            "  start_ts TEXT NOT NULL,\n"
            "  end_ts TEXT NOT NULL,\n"
            "  object_hash TEXT NOT NULL\n"
            ") WITHOUT ROWID"
        )

    def counters(self) -> str:
        """The counters of the status, updated in the same transactions."""
        return "CREATE TABLE counters (\n  name TEXT PRIMARY KEY,\n  value INTEGER NOT NULL\n) WITHOUT ROWID"

    def imports(self) -> tuple[str, ...]:
        """Blobs and manifests that were imported. `cached` says whether the plain bytes lie in the cache."""
        return (
            "CREATE TABLE imported_blobs (\n"
            "  blob_hash TEXT PRIMARY KEY,\n"
            "  object_hash TEXT,\n"
            "  cached INTEGER\n"
            ") WITHOUT ROWID",
            "CREATE TABLE imported_manifests (\n  node_id TEXT PRIMARY KEY,\n  object_hash TEXT\n) WITHOUT ROWID",
            "CREATE TABLE manifest_objects (\n  node_id TEXT,\n  object_key TEXT\n)",
        )

    def events(self) -> tuple[str, ...]:
        """Every content of every event that is not forgotten, by its digest."""
        return (
            "CREATE TABLE events (\n"
            "  node_id TEXT,\n"
            "  session_id TEXT,\n"
            "  seq INTEGER,\n"
            "  digest TEXT,\n"
            "  at INTEGER,\n"
            "  kind TEXT,\n"
            "  data TEXT,\n"
            "  PRIMARY KEY (node_id, session_id, seq, digest)\n"
            ") WITHOUT ROWID",
            "CREATE INDEX events_by_instant ON events(at)",
        )

    def records(self) -> tuple[str, ...]:
        """The same of sessions and artifacts; pins have no content."""
        return (
            "CREATE TABLE sessions (\n"
            "  node_id TEXT,\n"
            "  session_id TEXT,\n"
            "  digest TEXT,\n"
            "  started_at INTEGER,\n"
            "  title TEXT,\n"
            "  PRIMARY KEY (node_id, session_id, digest)\n"
            ") WITHOUT ROWID",
            "CREATE TABLE artifacts (\n"
            "  node_id TEXT,\n"
            "  artifact_id TEXT,\n"
            "  digest TEXT,\n"
            "  session_id TEXT,\n"
            "  seq INTEGER,\n"
            "  blob_hash TEXT,\n"
            "  name TEXT,\n"
            "  PRIMARY KEY (node_id, artifact_id, digest)\n"
            ") WITHOUT ROWID",
            "CREATE INDEX artifacts_by_event ON artifacts(node_id, session_id, seq)",
            "CREATE INDEX artifacts_by_blob ON artifacts(blob_hash)",
            "CREATE TABLE pins (\n"
            "  node_id TEXT,\n"
            "  session_id TEXT,\n"
            "  seq INTEGER,\n"
            "  PRIMARY KEY (node_id, session_id, seq)\n"
            ") WITHOUT ROWID",
        )

    def forgotten(self) -> tuple[str, ...]:
        """Keys of forgotten events and hashes of their blobs, without any content."""
        return (
            "CREATE TABLE forgotten_events (\n"
            "  node_id TEXT,\n"
            "  session_id TEXT,\n"
            "  seq INTEGER,\n"
            "  PRIMARY KEY (node_id, session_id, seq)\n"
            ") WITHOUT ROWID",
            "CREATE TABLE forgotten_blobs (\n  blob_hash TEXT PRIMARY KEY\n) WITHOUT ROWID",
        )

    def last_import(self) -> tuple[str, ...]:
        """The keys that the last import of everything refused, found out of place, and missed."""
        return (
            "CREATE TABLE complaints (\n  object_key TEXT PRIMARY KEY,\n  reason TEXT\n) WITHOUT ROWID",
            "CREATE TABLE foreign_objects (\n  object_key TEXT PRIMARY KEY\n) WITHOUT ROWID",
            "CREATE TABLE withheld_objects (\n  object_key TEXT PRIMARY KEY\n) WITHOUT ROWID",
        )

    def statements(self) -> tuple[str, ...]:
        """Everything that makes an empty index, in order."""
        return (
            self.vault_config(),
            self.node_config(),
            self.imported_segments(),
            self.applied_tombstones(),
            self.counters(),
            *self.imports(),
            *self.events(),
            *self.records(),
            *self.forgotten(),
            *self.last_import(),
        )

    @cached_property
    def expected(self) -> Catalogue:
        """The catalogue of a database that was made by these statements; every index of a session is held to it."""
        with contextlib.closing(sqlite3.connect(":memory:")) as made:
            for statement in self.statements():
                made.execute(statement)
            return self.catalogue(made)

    def catalogue(self, connection: sqlite3.Connection) -> Catalogue:
        """Every object of a database but SQLite's own, by type and name, with its statement. Raises sqlite3.Error."""
        rows = connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
        return {(str(kind), str(name)): str(text) for kind, name, text in rows.fetchall()}
