"""The index of one node. No failure of it ever means "absent"."""

from __future__ import annotations

import contextlib
import sqlite3
from enum import Enum
from pathlib import Path

from holdfast.reference_impl.hx_sync.schema import STATEMENTS
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import DatabaseFiles, ProvenDatabase, StoreError, verify_tables

NAME = "index.db"


class Index(ProvenDatabase):
    """The database, with one connection."""

    def __init__(self, folder: Path, settings: Settings, patience: Patience) -> None:
        """`folder` is that of the node."""
        super().__init__(DatabaseFiles(folder / NAME), patience, f"the index of {folder.name}")
        self.folder = folder
        self._settings = settings
        self.node_id = ""

    def prepare(self, connection: sqlite3.Connection, purpose: Enum | None) -> None:
        """See `ProvenDatabase`."""
        super().prepare(connection, purpose)
        # A wrong index or a damaged page is an error, not an answer.
        connection.execute("PRAGMA cell_size_check = ON")
        # In KiB: a segment's transaction stays in memory until it commits.
        connection.execute("PRAGMA cache_size = -32000")
        # Deleted rows leave no plain bytes in free pages.
        connection.execute("PRAGMA secure_delete = ON").fetchone()

    def verify_schema(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless the database has exactly our tables, of this vault."""
        verify_tables(connection, STATEMENTS)
        if connection.execute("SELECT vault_id FROM vault_config").fetchall() != [(self._settings.vault_id,)]:
            raise StoreError("expected the index of this vault, got that of another")
        nodes = connection.execute("SELECT node_id FROM node_config").fetchall()
        if len(nodes) != 1:
            raise StoreError(f"expected one row in node_config, got {len(nodes)}")
        self.node_id = str(nodes[0][0])

    def purge(self) -> None:
        """Remove deleted rows from the log too, if no reader uses it. Never raises: the deletion itself is durable."""
        with contextlib.suppress(StoreError), self.asked() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self.settle()
