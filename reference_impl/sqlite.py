"""SQLite databases of references: files and connections are checked before they are used.

Only SQLite opens a database file. Closing any other handle of it gives up every lock of this process on it (POSIX), and
another process could then remove the log that our connections use.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TypeAlias

from holdfast.reference_impl.patience import Patience

FILE_MODE = 0o600
# The write-ahead log and its index hold the same data as the database.
BESIDE = ("-wal", "-shm")
# Up to this size every connection checks the whole database first; an operation can wait that long. A larger database
# relies on SQLite's own checks of each page that it reads.
CHECKED_BYTES = 8_388_608
# PRAGMA synchronous, as SQLite numbers it: a commit is durable when it returns.
SYNCHRONOUS_FULL = 2

Identity: TypeAlias = tuple[int | None, ...]


class StoreError(Exception):
    """A store cannot be read or written now, and nothing was written."""


class UncertainError(StoreError):
    """A write failed, and it is unknown whether it took effect."""


@dataclass(slots=True)
class Held:
    """A proven connection, and what of its files and tables it was proven with."""

    connection: sqlite3.Connection
    identity: Identity
    schema_version: int


class DatabaseFiles:
    """A database and what SQLite keeps beside it."""

    def __init__(self, database: Path) -> None:
        self.database = database

    def files(self) -> Iterator[Path]:
        """The database and the files that SQLite keeps beside it."""
        yield self.database
        for ending in BESIDE:
            yield self.database.with_name(self.database.name + ending)

    def identity(self) -> Identity:
        """A mark that changes when another file takes the place, or when the file is written. Raises StoreError."""
        try:
            found = os.lstat(self.database)
        except OSError as error:
            raise StoreError(f"expected a database at {self.database.name}: {error.strerror}") from error
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
            raise StoreError(f"expected a regular file at {self.database.name}, got something else")
        # root can write to a read-only file, but this code does not.
        if not found.st_mode & stat.S_IWUSR:
            raise StoreError(f"expected a file that its owner may write, got mode {found.st_mode & 0o7777:04o}")
        # SQLite takes an empty file for a new database.
        if found.st_size == 0:
            raise StoreError("expected a database, got an empty file")

    def tighten(self) -> None:
        """Only the owner can read the database and the files beside it. The umask does not matter. Raises OSError."""
        for path in self.files():
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(path).st_mode & 0o077:
                    path.chmod(FILE_MODE)


class ProvenDatabase:
    """Connections that are proven before they are trusted, one for each purpose, and one transaction each.

    A connection is opened when first needed, and again when the files are not the same any more. Every failure of
    SQLite is a StoreError: busy, locked, missing, truncated, corrupt, foreign, read-only, full, not in WAL mode. No
    method makes a database. An heir with one purpose does not name it.
    """

    def __init__(self, location: DatabaseFiles, patience: Patience, called: str) -> None:
        """Errors say that the database is `called` so."""
        self.location, self.patience, self.called = location, patience, called
        self._held: dict[Enum | None, Held] = {}

    def connection(self, purpose: Enum | None = None) -> sqlite3.Connection:
        """A proven connection. Raises sqlite3.Error, OSError, StoreError."""
        identity, held = self.location.identity(), self._held.get(purpose)
        if held is not None and held.identity == identity:
            return held.connection
        self.drop(purpose)
        connection = self.connect()
        try:
            self.prepare(connection, purpose)
            self.verify(connection)
            self.location.tighten()
            self._held[purpose] = Held(
                connection=connection,
                identity=self.location.identity(),
                schema_version=self.schema_version(connection),
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> sqlite3.Connection:
        """A connection to the existing file. Raises sqlite3.Error."""
        return connect(self.location.database, seconds=self.waits())

    def waits(self) -> float:
        """How many seconds a statement may wait for a lock."""
        return self.patience.left()

    def prepare(self, connection: sqlite3.Connection, purpose: Enum | None) -> None:  # noqa: ARG002 - all are alike
        """The settings that SQLite loses with each connection. Raises sqlite3.Error."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")

    def drop(self, purpose: Enum | None) -> None:
        """Close a connection; an open transaction rolls back. Never raises."""
        held = self._held.pop(purpose, None)
        if held is not None:
            with contextlib.suppress(sqlite3.Error):
                held.connection.close()

    def close(self) -> None:
        """Close every connection. Never raises."""
        for purpose in tuple(self._held):
            self.drop(purpose)

    # Transactions

    @contextlib.contextmanager
    def asked(self, purpose: Enum | None = None) -> Iterator[sqlite3.Connection]:
        """A connection without a transaction, given up after an error. Raises StoreError."""
        try:
            connection = self.connection(purpose)
            connection.execute(f"PRAGMA busy_timeout = {int(self.waits() * 1000)}")
            yield connection
        except (sqlite3.Error, OSError, StoreError) as error:
            self.drop(purpose)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{self.called}: {type(error).__name__}: {error}") from error

    @contextlib.contextmanager
    def writing(self, purpose: Enum | None = None) -> Iterator[sqlite3.Connection]:
        """One transaction: it commits at the end of the block and rolls back if the block raises.

        Raises StoreError where it did not happen, UncertainError where that is unknown.
        """
        with self.asked(purpose) as connection:
            self.begin(connection)
            try:
                self.verify_unchanged(self._held[purpose])
                yield connection
            except BaseException:
                self.roll_back(connection)
                raise
            self.commit(connection)
            self.settle(purpose)

    def settle(self, purpose: Enum | None = None) -> None:
        """Note the files after our own change, so that it does not cause a new connection."""
        with contextlib.suppress(StoreError):
            self._held[purpose].identity = self.location.identity()

    @contextlib.contextmanager
    def reading(self, purpose: Enum | None = None) -> Iterator[sqlite3.Connection]:
        """One read transaction, hence one snapshot. Raises StoreError."""
        with self.asked(purpose) as connection:
            connection.execute("BEGIN")
            try:
                self.verify_unchanged(self._held[purpose])
                yield connection
            finally:
                self.roll_back(connection)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Take the one write lock before the first read, so that the data does not change between read and write."""
        connection.execute("BEGIN IMMEDIATE")

    # Checks

    def verify_schema(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless the database has exactly our tables and indexes. Raises sqlite3.Error."""
        raise NotImplementedError

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

    def verify_unchanged(self, held: Held) -> None:
        """Inside a transaction: raise StoreError if the tables have changed since the last check."""
        version = self.schema_version(held.connection)
        if version != held.schema_version:
            self.verify_schema(held.connection)
            held.schema_version = version

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit. Raises sqlite3.Error where it certainly did not happen, else UncertainError.

        A failure while SQLite takes the lock or writes the log certainly means: no commit. A later failure, above all
        of a sync, leaves a complete log: SQLite drops the transaction, but a recovery brings it back.
        """
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.roll_back(connection)
            if _is_unwritten(error.sqlite_errorcode):
                raise
            raise UncertainError(f"the commit failed: {error}") from error

    def roll_back(self, connection: sqlite3.Connection) -> None:
        """Roll back what is open. Never raises: the connection is dropped where that fails."""
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _is_unwritten(code: int) -> bool:
    """Whether a COMMIT that failed so has not happened: the lock was not had, or the last frame is not in the log."""
    # The last byte of an extended result code names the error.
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE) or code & 0xFF == sqlite3.SQLITE_BUSY


def connect(database: Path, *, seconds: float) -> sqlite3.Connection:
    """A connection to the existing file, which waits so long for a lock; it never makes one. Raises sqlite3.Error."""
    return sqlite3.connect(
        f"{database.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=seconds,
        # A session may be opened in one thread and used in another; only one at a time uses it.
        check_same_thread=False,
    )


def enter_wal(connection: sqlite3.Connection) -> None:
    """Put a new database into WAL mode. Raises sqlite3.Error, StoreError."""
    # SQLite answers with the mode that it has now. It raises no error if it could not change the mode.
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"expected journal mode wal, got {mode}; this file system may not allow it")


def verify_tables(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    """Raise StoreError unless a database has exactly what these statements make. Raises sqlite3.Error."""
    found, expected = _catalogue(connection), _made_by(statements)
    if found != expected:
        differ = {name for (_, name), _ in found.items() ^ expected.items()}
        raise StoreError(f"expected the tables of this version, these differ: {', '.join(sorted(differ))}")


@cache
def _made_by(statements: tuple[str, ...]) -> Mapping[tuple[str, str], str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        for statement in statements:
            made.execute(statement)
        return _catalogue(made)


def _catalogue(connection: sqlite3.Connection) -> Mapping[tuple[str, str], str]:
    """Every object of a database but SQLite's own, by type and name, with its statement."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'")
    return {(str(kind), str(name)): str(text) for kind, name, text in rows.fetchall()}
