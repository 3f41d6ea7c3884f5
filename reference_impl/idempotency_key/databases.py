"""SQLite in a file, and PostgreSQL at an address, as `records.Database`. `make` is run once, by an operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import psycopg

from holdfast.reference_impl.idempotency_key.records import MAKE, Database
from holdfast.reference_impl.idempotency_key.terms import StoreError
from holdfast.reference_impl.sqlite import connect
from holdfast.servers.pace import scaled

# Longer than a queue of writers on a busy machine.
_BUSY_S = 15
_PATIENCE_MS = round(scaled(2000))
_TIMEOUTS = f"-c statement_timeout={_PATIENCE_MS} -c lock_timeout={_PATIENCE_MS}"


class _Transaction:
    """Implements `records.Transaction`: each error of the store is a StoreError."""

    error: ClassVar[type[Exception]]
    _connection: Any = None

    def open(self) -> None:
        """Connect, and begin. Raises `error`."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.open()
        except self.error as error:
            self._close()
            raise StoreError(str(error)) from error
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Commit, unless an error came."""
        try:
            if kind is None:
                self._connection.commit()
        except self.error as error:
            raise StoreError(str(error)) from error
        finally:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def execute(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """See `records.Transaction`."""
        try:
            cursor = self._connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
        except self.error as error:
            raise StoreError(str(error)) from error


class SqliteTransaction(_Transaction):
    """A transaction on a file."""

    error = sqlite3.Error
    pragmas: ClassVar[tuple[str, ...]] = ("synchronous = FULL", "cell_size_check = ON")

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> None:
        """Open the file, which has to be there, and take its lock."""
        # Never made here: a store that is gone has to be missed.
        self._connection = connect(self._path, seconds=_BUSY_S)
        for pragma in self.pragmas:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("BEGIN IMMEDIATE")


class Sqlite:
    """Implements `records.Database`."""

    def __init__(self, path: Path) -> None:
        """Look at the whole file once. Raises StoreError for one that is missing or damaged."""
        self._path = path
        with self.transaction() as change:
            if change.execute("PRAGMA integrity_check", ()) != [("ok",)]:
                raise StoreError("the store is damaged")
            change.execute("SELECT count(*) FROM records", ())

    def transaction(self) -> SqliteTransaction:
        """See `records.Database`."""
        return SqliteTransaction(self._path)

    @staticmethod
    def make(path: Path) -> None:
        """Make the store. Raises StoreError if it is there."""
        if path.exists():
            raise StoreError(f"{path} is there already")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(MAKE.format(bytes="BLOB"))
        connection.close()


class PostgresTransaction(_Transaction):
    """A transaction on a server."""

    error = psycopg.Error

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def open(self) -> None:
        """Connect; the first statement begins."""
        self._connection = psycopg.connect(
            self._dsn,
            connect_timeout=_PATIENCE_MS // 1000,
            options=_TIMEOUTS,
            tcp_user_timeout=_PATIENCE_MS,
            sslmode="disable",
            gssencmode="disable",
        )

    def execute(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """See `records.Transaction`. The statements are this package's own."""
        return super().execute(statement.replace("?", "%s"), values)


class Postgres:
    """Implements `records.Database`."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def transaction(self) -> PostgresTransaction:
        """See `records.Database`."""
        return PostgresTransaction(self._dsn)

    @staticmethod
    def make(dsn: str) -> None:
        """Make the table. Raises psycopg.Error."""
        with psycopg.connect(dsn, sslmode="disable", gssencmode="disable") as connection:
            connection.execute(MAKE.format(bytes="BYTEA"))


class Databases:
    """Opens the store that the environment names: STORE_DSN, or the file `keys.db` in DATA."""

    def opened(self, environment: Mapping[str, str]) -> Database:
        """The store. Raises StoreError."""
        dsn = environment.get("STORE_DSN")
        return Postgres(dsn) if dsn else Sqlite(Path(environment["DATA"]) / "keys.db")


def make(environment: Mapping[str, str]) -> None:
    """Make the file that is opened in DATA. Raises StoreError."""
    Sqlite.make(Path(environment["DATA"]) / "keys.db")
