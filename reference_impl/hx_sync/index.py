"""The index of one node: connections that are proven before they are trusted, and one transaction each.

Every failure of SQLite is a StoreError: busy, locked, missing, truncated, corrupt, foreign, read-only, full, not in WAL
mode. None of these ever means "absent". No function here makes a database.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from holdfast.reference_impl.hx_sync.schema import STATEMENTS
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import DatabaseFiles, Held, ProvenDatabase, StoreError, connect, verify_tables

NAME = "index.db"


class Index(DatabaseFiles, ProvenDatabase):
    """One connection, opened when first needed, and again when the files are not the same any more."""

    def __init__(self, folder: Path, settings: Settings, patience: Patience) -> None:
        """`folder` is that of the node."""
        super().__init__(folder / NAME)
        self.folder = folder
        self._settings = settings
        self._patience = patience
        self._held: Held | None = None
        self.node_id = ""

    # Connections

    def held(self) -> Held:
        """A proven connection. Raises sqlite3.Error, OSError, StoreError."""
        if self._held is not None and self._held.identity == self.identity():
            return self._held
        self.close()
        connection = connect(self.database, seconds=self._patience.left())
        try:
            self.prepare(connection)
            self.verify(connection)
            self.tighten()
            held = Held(connection, self.identity(), self.schema_version(connection))
        except BaseException:
            connection.close()
            raise
        self._held = held
        return held

    def prepare(self, connection: sqlite3.Connection) -> None:
        """The settings that SQLite loses with each connection. Raises sqlite3.Error."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
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

    def close(self) -> None:
        """Close the connection; an open transaction rolls back. Never raises."""
        held, self._held = self._held, None
        if held is not None:
            with contextlib.suppress(sqlite3.Error):
                held.connection.close()

    # Transactions

    @contextlib.contextmanager
    def _asked(self) -> Iterator[Held]:
        try:
            held = self.held()
            held.connection.execute(f"PRAGMA busy_timeout = {int(self._patience.left() * 1000)}")
            yield held
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StoreError(f"the index of {self.folder.name}: {type(error).__name__}: {error}") from error
        except StoreError:
            self.close()
            raise

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Held]:
        with self._asked() as held:
            held.connection.execute(begin)
            try:
                self.verify_unchanged(held)
                yield held
            finally:
                self.roll_back(held.connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: it commits at the end of the block and rolls back if the block raises.

        Raises StoreError where it did not happen, UncertainError where that is unknown.
        """
        # Take the one write lock before the first read, so that the data does not change between read and write.
        with self._transaction("BEGIN IMMEDIATE") as held:
            yield held.connection
            self.commit(held.connection)
            self._settle(held)

    def _settle(self, held: Held) -> None:
        """Note the files after our own change, so that it does not cause a new connection."""
        with contextlib.suppress(StoreError):
            held.identity = self.identity()

    def purge(self) -> None:
        """Remove deleted rows from the log too, if no reader uses it. Never raises: the deletion itself is durable."""
        with contextlib.suppress(StoreError), self._asked() as held:
            held.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._settle(held)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One read transaction, hence one snapshot. Raises StoreError."""
        with self._transaction("BEGIN") as held:
            yield held.connection
