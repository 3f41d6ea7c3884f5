"""The index of one node: connections that are proven before they are trusted, and one transaction each.

Whatever SQLite does not answer is StoreError: busy, locked, missing, truncated, corrupt, foreign, read-only, full, not
in WAL mode. None of these is ever "nothing there", and nothing here makes a database. Nothing here opens the file
beside SQLite either: closing any handle of a file gives up every lock that this process has on it (POSIX).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from reference_impl.hx_sync.schema import Schema
from reference_impl.hx_sync.settings import Settings
from reference_impl.hx_sync.terms import StoreError, UncertainError
from reference_impl.patience import Patience

NAME = "index.db"
BESIDE = ("-wal", "-shm")
FILE_MODE = 0o600
# Up to this size every connection has the whole database checked before it is trusted; beyond it SQLite's own
# checks of each page that it reads have to do.
CHECKED_BYTES = 8 * 1024 * 1024
# PRAGMA synchronous, as SQLite numbers it: a commit is durable when it returns.
SYNCHRONOUS_FULL = 2
# Of an extended result code, the part that names the error.
_PRIMARY_CODE = 0xFF
# Without them the last frame of the log is not whole.
_UNWRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)

Identity: TypeAlias = tuple[int | None, ...]


@dataclass(slots=True)
class _Held:
    connection: sqlite3.Connection
    identity: Identity
    schema_version: int


class Index:
    """One connection, opened when first needed, and again when the files are not the same any more."""

    def __init__(self, folder: Path, schema: Schema, settings: Settings, patience: Patience) -> None:
        """`folder` is that of the node."""
        self.folder = folder
        self.database = folder / NAME
        self._schema = schema
        self._settings = settings
        self._patience = patience
        self._expected = schema.expected()
        self._held: _Held | None = None
        self.node_id = ""

    # Connections

    def connection(self) -> sqlite3.Connection:
        """A proven connection. Raises sqlite3.Error, OSError, StoreError."""
        identity = self.identity()
        if self._held is not None and self._held.identity == identity:
            return self._held.connection
        self.close()
        connection = self.connect()
        try:
            self.prepare(connection)
            self.verify(connection)
            self.tighten()
            self._held = _Held(connection, self.identity(), self.schema_version(connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> sqlite3.Connection:
        """A connection to the file that is there; `mode=rw` never makes one. Raises sqlite3.Error."""
        return sqlite3.connect(
            f"{self.database.absolute().as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=self._patience.left(),
            # A session may be opened in one thread and used in another; only one at a time uses it.
            check_same_thread=False,
        )

    def prepare(self, connection: sqlite3.Connection) -> None:
        """What SQLite forgets with each connection. Raises sqlite3.Error."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        # An index or a page that does not fit is an error, not an answer.
        connection.execute("PRAGMA cell_size_check = ON")
        # In KiB: a segment's transaction stays in memory until it commits.
        connection.execute("PRAGMA cache_size = -32000")
        # What is deleted leaves no plain bytes in free pages.
        connection.execute("PRAGMA secure_delete = ON").fetchone()

    def verify(self, connection: sqlite3.Connection) -> None:
        """The pragmas took, the tables are ours, the pages fit together. Raises sqlite3.Error, StoreError."""
        self.verify_pragmas(self.pragmas(connection))
        self.verify_schema(connection)
        self.verify_integrity(connection)

    def pragmas(self, connection: sqlite3.Connection) -> dict[str, int | str]:
        """What the connection itself answers. Raises sqlite3.Error."""
        return {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("foreign_keys", "journal_mode", "synchronous")
        }

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        """Raise StoreError unless the connection is in WAL mode, syncs, and enforces foreign keys."""
        expected = {"foreign_keys": 1, "journal_mode": "wal", "synchronous": SYNCHRONOUS_FULL}
        if found != expected:
            raise StoreError(f"expected a connection with {expected}, got {dict(found)}")

    def verify_schema(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless the database has exactly our tables, of this vault."""
        found = self._schema.catalogue(connection)
        if found != self._expected:
            differ = {name for (_, name), _ in found.items() ^ self._expected.items()}
            raise StoreError(f"expected the tables of this version, these differ: {', '.join(sorted(differ))}")
        if connection.execute(f"SELECT vault_id FROM {self._schema.vault_table()}").fetchall() != [
            (self._settings.vault_id,)
        ]:
            raise StoreError("expected the index of this vault, got that of another")
        nodes = connection.execute("SELECT node_id FROM node_config").fetchall()
        if len(nodes) != 1:
            raise StoreError(f"expected one row in node_config, got {len(nodes)}")
        self.node_id = str(nodes[0][0])

    def verify_integrity(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless SQLite finds the whole database in order, if it is not too large for that."""
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > CHECKED_BYTES:
            return
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != ("ok",):
            raise StoreError(f"expected a sound database, got: {found[0] if found else 'no answer'}")

    def schema_version(self, connection: sqlite3.Connection) -> int:
        """SQLite's own count of schema changes, of every process. Raises sqlite3.Error."""
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the connection; an open transaction rolls back. Never raises."""
        held, self._held = self._held, None
        if held is not None:
            with contextlib.suppress(sqlite3.Error):
                held.connection.close()

    # Files

    def files(self) -> Iterator[Path]:
        """The database and the files that SQLite keeps beside it."""
        yield self.database
        for ending in BESIDE:
            yield self.database.with_name(self.database.name + ending)

    def identity(self) -> Identity:
        """What changes when somebody puts another file in the place, or writes into it. Raises OSError, StoreError."""
        found = os.lstat(self.database)
        self.check_file(found)
        inodes = [self._inode(path) for path in list(self.files())[1:]]
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, *inodes)

    def _inode(self, path: Path) -> int | None:
        with contextlib.suppress(OSError):
            return os.lstat(path).st_ino
        return None

    def check_file(self, found: os.stat_result) -> None:
        """A regular file of some length that its owner may write. Raises StoreError."""
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"expected a regular file at {NAME}, got something else")
        # root could write it all the same: what is marked read-only is not written to.
        if not found.st_mode & stat.S_IWUSR:
            raise StoreError(f"expected a file that its owner may write, got mode {found.st_mode & 0o7777:04o}")
        # SQLite takes an empty file for a new database.
        if found.st_size == 0:
            raise StoreError("expected a database, got an empty file")

    def tighten(self) -> None:
        """Nobody but the owner reads the database or what lies beside it, whatever the umask is. Raises OSError."""
        for path in self.files():
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(path).st_mode & 0o077:
                    path.chmod(FILE_MODE)

    # Transactions

    @contextlib.contextmanager
    def _asked(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self.connection()
            connection.execute(f"PRAGMA busy_timeout = {int(self._patience.left() * 1000)}")
            yield connection
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StoreError(f"the index of {self.folder.name}: {type(error).__name__}: {error}") from error
        except StoreError:
            self.close()
            raise

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: it commits at the end of the block and rolls back if the block raises.

        Raises StoreError where it did not happen, UncertainError where that cannot be told.
        """
        with self._asked() as connection:
            # The one write lock before anything is read, so that what is read is still so when it is written.
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._verify_unchanged(connection)
                yield connection
            except BaseException:
                self._roll_back(connection)
                raise
            self.commit(connection)
            self._settle()

    def _settle(self) -> None:
        """What we did to the files is no reason to open them anew."""
        with contextlib.suppress(OSError, StoreError):
            if self._held is not None:
                self._held.identity = self.identity()

    def purge(self) -> None:
        """What was deleted leaves the log too, as far as nobody is reading it. Never raises: it is not lost again."""
        with contextlib.suppress(StoreError), self._asked() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._settle()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One read transaction, hence one snapshot. Raises StoreError."""
        with self._asked() as connection:
            connection.execute("BEGIN")
            try:
                self._verify_unchanged(connection)
                yield connection
            finally:
                self._roll_back(connection)

    def _verify_unchanged(self, connection: sqlite3.Connection) -> None:
        """Inside a transaction: raise StoreError if somebody changed the tables since they were last looked at."""
        version = self.schema_version(connection)
        if self._held is not None and version != self._held.schema_version:
            self.verify_schema(connection)
            self._held.schema_version = version

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit. Raises sqlite3.Error where it certainly did not happen, else UncertainError.

        A commit fails for certain while the lock is to be had or the log is written. Whatever fails behind that, a sync
        above all, leaves a log that is whole: SQLite forgets the transaction, and a recovery would bring it back.
        """
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(connection)
            if error.sqlite_errorcode in _UNWRITTEN or error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY:
                raise
            raise UncertainError(f"the commit failed: {error}") from error

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Roll back what is open. Never raises: the connection is dropped where that fails."""
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
