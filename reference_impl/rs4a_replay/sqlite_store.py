"""The surface on SQLite, and its audit in a database file of its own, outside the rolled-back transaction."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.store import (
    AuditError,
    Committed,
    CommitUncertainError,
    Conflict,
    Consumption,
    Insert,
    RolledBackError,
    Row,
    Sight,
    StoreError,
    SurfaceUnreadableError,
)
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceReport, judged
from holdfast.reference_impl.rs4a_replay.terms import SurfaceState
from holdfast.reference_impl.sqlite import connect
from holdfast.specs import Relation

_T = TypeVar("_T")


class Database:
    """One connection to one file, opened when first used, and again when the file is not the same one any more."""

    def __init__(self, path: Path, patience: Patience) -> None:
        self.path = path
        self._patience = patience
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, ...] | None = None

    def connection(self) -> sqlite3.Connection:
        """The connection, which waits for locks as long as the operation may. Raises sqlite3.Error; makes no file."""
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise sqlite3.OperationalError(f"{self.path.name}: {error.strerror}") from error
        # A file that was cut is opened again: the connection would still return lost rows from its cache.
        identity = (found.st_dev, found.st_ino, found.st_size)
        if self._connection is None or identity != self._identity:
            self.drop()
            connection = connect(self.path, seconds=self._patience.left())
            connection.row_factory = sqlite3.Row
            # A commit is durable when it returns.
            connection.execute("PRAGMA synchronous = FULL")
            self._connection, self._identity = connection, identity
        self._connection.execute(f"PRAGMA busy_timeout = {int(self._patience.left() * 1000)}")
        return self._connection

    def drop(self) -> None:
        """Close the connection; an open transaction rolls back. Never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def plain(relation: Relation, row: sqlite3.Row) -> Row:
    """A row as the contract types it: SQLite stores booleans as integers."""
    types = {name: column.type for name, column in relation.columns.items()}
    return {name: bool(row[name]) if types[name] == "boolean" else row[name] for name in types}


def insert_sql(relation: Relation) -> str:
    """INSERT of a whole row, values by the names of their columns."""
    columns = relation.columns
    return f"INSERT INTO {relation.name} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"


def append_sql(relation: Relation) -> str:
    """The same of a row that no stored one conflicts with."""
    return f"{insert_sql(relation)} ON CONFLICT DO NOTHING"


def catalogue(connection: sqlite3.Connection) -> Mapping[str, SeenRelation]:
    """The relations of a file, with the columns of their full unique indexes."""
    seen: dict[str, SeenRelation] = {}
    for name in connection.execute("SELECT name FROM sqlite_schema").fetchall():
        columns = dict(map(tuple, connection.execute('SELECT name, "notnull" FROM pragma_table_info(?)', name)))
        unique: set[tuple[str, ...]] = set()
        for index in connection.execute('SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial', name):
            keys = [key for (key,) in connection.execute("SELECT name FROM pragma_index_info(?)", tuple(index))]
            # An expression has no column name; a nullable column lets equal keys in.
            if all(columns.get(key) for key in keys):
                unique.add(tuple(keys))
        seen[name["name"]] = SeenRelation(frozenset(columns), frozenset(unique), durable=True)
    return seen


class _OnSqlite:
    """A database file of the registrar."""

    def __init__(self, path: Path, settings: Settings, patience: Patience) -> None:
        self._relations = settings.relations
        self._database = Database(path, patience)

    @contextmanager
    def _raising(self, kind: type[StoreError]) -> Iterator[None]:
        """Make an error of SQLite one of this kind. An open transaction is rolled back."""
        try:
            yield
        except sqlite3.Error as error:
            self._database.drop()
            raise kind(error) from error

    def close(self) -> None:
        """See `store.Store` and `store.AuditSink`."""
        self._database.drop()


class SqliteStore(_OnSqlite):
    """Implements `store.Store`."""

    def __init__(self, path: Path, settings: Settings, patience: Patience) -> None:
        super().__init__(path, settings, patience)
        self._required = settings.surface
        self._judged: Mapping[tuple[sqlite3.Connection, int], SurfaceReport] = {}

    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        """See `store.Store`."""

        def read(connection: sqlite3.Connection) -> Sight:
            # One read transaction, hence one snapshot.
            connection.execute("BEGIN")
            try:
                return self._sight(connection, logical_request_key, nonce)
            finally:
                connection.execute("COMMIT")

        return self._read(read)

    def _sight(self, connection: sqlite3.Connection, key: str | None, nonce: str | None) -> Sight:
        surface = self._report(connection)
        if surface.state in (SurfaceState.ABSENT, SurfaceState.UNKNOWN):
            return Sight(surface)
        registration = self._row(connection, "registration", "logical_request_key", key)
        decision = None if registration is None else str(registration["decision_id"])
        return Sight(
            surface,
            registration,
            self._row(connection, "verification", "decision_id", decision),
            self._row(connection, "compensation", "decision_id", decision),
            self._row(connection, "nonce_issue", "authorization_nonce", nonce),
            self._row(connection, "nonce_consume", "authorization_nonce", nonce),
        )

    def _report(self, connection: sqlite3.Connection) -> SurfaceReport:
        # The engine itself counts schema changes, of every process.
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        if (connection, version) not in self._judged:
            self._judged = {(connection, version): judged(self._required, catalogue(connection))}
        return self._judged[connection, version]

    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        found = connection.execute(f"SELECT * FROM {relation} WHERE {column} = ?", (value,)).fetchone()
        return found and plain(self._relations[relation], found)

    def _read(self, reading: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._raising(SurfaceUnreadableError):
            return reading(self._database.connection())

    def untombstoned(self) -> Sequence[Row]:
        """See `store.Store`."""
        statement = (
            "SELECT * FROM registration r WHERE NOT EXISTS "
            "(SELECT 1 FROM tombstone t WHERE t.logical_request_key = r.logical_request_key)"
        )
        rows = self._read(lambda connection: connection.execute(statement).fetchall())
        return [plain(self._relations["registration"], row) for row in rows]

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        """See `store.Store`."""
        with self._raising(RolledBackError):
            try:
                connection = self._begin()
                self.insert_all(connection, inserts)
            except sqlite3.IntegrityError:
                self._roll_back()
                return Conflict()
        # An error of COMMIT may be one after the commit record, which the next recovery brings back.
        with self._raising(CommitUncertainError):
            connection.execute("COMMIT")
            return Committed(self.read_back(connection, inserts[-1]))

    def insert_all(self, connection: sqlite3.Connection, inserts: Sequence[Insert]) -> None:
        """Insert rows. Raises sqlite3.Error, of which IntegrityError means that a key is taken."""
        for each in inserts:
            connection.execute(insert_sql(self._relations[each.relation]), each.row)

    def read_back(self, connection: sqlite3.Connection, insert: Insert) -> Row | None:
        """The row as it is stored now. Raises sqlite3.Error."""
        (key,) = self._relations[insert.relation].primary_key
        return self._row(connection, insert.relation, key, str(insert.row[key]))

    def _begin(self) -> sqlite3.Connection:
        """Take the one write lock; waiting for it is waiting for the other's outcome."""
        connection = self._database.connection()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _roll_back(self) -> None:
        # Closing rolls back every open transaction, also where ROLLBACK itself would fail.
        self._database.drop()

    def append(self, inserts: Sequence[Insert]) -> int:
        """See `store.Store`."""
        with self._raising(RolledBackError):
            connection = self._begin()
            added = sum(
                connection.execute(append_sql(self._relations[each.relation]), each.row).rowcount for each in inserts
            )
        with self._raising(CommitUncertainError):
            connection.execute("COMMIT")
        return added

    def settles(self, probe: Insert) -> bool:
        """See `store.Store`."""
        with self._raising(CommitUncertainError):
            try:
                self._begin().execute(insert_sql(self._relations[probe.relation]), probe.row)
            except sqlite3.IntegrityError:
                return False
            finally:
                self._roll_back()
            return True


class SqliteAudit(_OnSqlite):
    """Implements `store.AuditSink` on a database file of its own."""

    def probe(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._insert(record, end="ROLLBACK")

    def write(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._insert(record, end="COMMIT")

    def _insert(self, record: Row, *, end: Literal["COMMIT", "ROLLBACK"]) -> None:
        with self._raising(AuditError):
            connection = self._database.connection()
            connection.execute("BEGIN")
            connection.execute(insert_sql(self._relations["audit"]), record)
            connection.execute(end)


_BROKEN = re.compile("constraint failed: (.+)")


def broken_constraint(relation: Relation, error: sqlite3.Error) -> str | None:
    """The name of the constraint in an error. SQLite names the columns of a UNIQUE, not the constraint."""
    found = _BROKEN.search(str(error))
    if found is None:
        return None
    columns = tuple(part.removeprefix(f"{relation.name}.") for part in found[1].split(", "))
    return {columns: name for name, columns in relation.unique.items()}.get(columns, found[1])
