"""The surface on SQLite, and its audit in a database file of its own, outside the rolled-back transaction."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from holdfast.reference_impl.patience import AUDIT_RESERVE_S, Patience
from holdfast.reference_impl.rs4a_replay.ddl import quoted
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
    SurfaceUnreadableError,
)
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceJudge, SurfaceReport
from holdfast.reference_impl.rs4a_replay.terms import SurfaceState
from holdfast.servers.environment import scaled
from holdfast.specs import Relation

_T = TypeVar("_T")

# Reading gives up early; consuming waits for the holder of the one write lock, as long as the operation may wait.
READ_PATIENCE_S = scaled(0.4)
CONSUME_PATIENCE_S = scaled(1.0)


class Database:
    """One connection to one file, opened when first used, and again when the file is not the same one any more."""

    def __init__(self, path: Path, *, patience: Patience, reserve_s: float = 0.0, synchronous: str) -> None:
        self.path = path
        self._patience = patience
        self._reserve_s = reserve_s
        self._synchronous = synchronous
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._size = 0

    def connection(self) -> sqlite3.Connection:
        """The connection. Raises sqlite3.Error; never makes the file."""
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise sqlite3.OperationalError(f"{self.path.name}: {error.strerror}") from error
        identity = (found.st_dev, found.st_ino)
        # A truncated file is opened again: the connection would still return lost rows from its cache.
        cut = found.st_size < self._size
        self._size = found.st_size
        if self._connection is None or identity != self._identity or cut:
            self.drop()
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=min(READ_PATIENCE_S, self._patience.left(self._reserve_s)),
                # A session may be opened in one thread and used in another; only one at a time uses it.
                check_same_thread=False,
            )
            try:
                connection.row_factory = sqlite3.Row
                # REPLACE must fire delete triggers, so that they can refuse.
                connection.execute(f"PRAGMA synchronous = {self._synchronous}")
                connection.execute("PRAGMA recursive_triggers = ON")
            except sqlite3.Error:
                connection.close()
                raise
            self._connection, self._identity = connection, identity
        return self._connection

    def be_patient(self, seconds: float) -> None:
        """How long to wait for a lock from now on, at most what the operation has left. Raises sqlite3.Error."""
        most = min(seconds, self._patience.left(self._reserve_s))
        self.connection().execute(f"PRAGMA busy_timeout = {int(most * 1000)}")

    def drop(self) -> None:
        """Close the connection; an open transaction rolls back. Never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def plain(relation: Relation, row: sqlite3.Row | None) -> Row | None:
    """A row as the contract types it: SQLite stores booleans as integers."""
    if row is None:
        return None
    types = {name: column.type for name, column in relation.columns.items()}
    return {name: bool(row[name]) if types[name] == "boolean" else row[name] for name in types}


def insert_sql(relation: Relation, *, arbiter: tuple[str, ...] | None) -> str:
    """INSERT of a whole row, values in column order, returning a row when it went in."""
    names = ", ".join(map(quoted, relation.columns))
    places = ", ".join("?" * len(relation.columns))
    conflict = "" if arbiter is None else f" ON CONFLICT ({', '.join(map(quoted, arbiter))}) DO NOTHING"
    return f"INSERT INTO {quoted(relation.name)} ({names}) VALUES ({places}){conflict} RETURNING 1"


def catalogue(connection: sqlite3.Connection) -> Mapping[str, SeenRelation]:
    """The relations of a file, with the columns of their full unique indexes."""
    seen: dict[str, SeenRelation] = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = {row["name"]: row["notnull"] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")}
        unique: set[tuple[str, ...]] = set()
        for index in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
            keys = [row["name"] for row in connection.execute(f"PRAGMA index_info({quoted(index['name'])})")]
            # An expression has no column name; a nullable column lets equal keys in.
            if index["unique"] and not index["partial"] and all(key is not None and columns[key] for key in keys):
                unique.add(tuple(keys))
        seen[name] = SeenRelation(frozenset(columns), frozenset(unique), durable=True)
    return seen


class SqliteStore:
    """Implements `store.Store`."""

    # A commit is durable when it returns.
    synchronous = "FULL"

    def __init__(self, path: Path, settings: Settings, judge: SurfaceJudge, patience: Patience) -> None:
        self._relations = settings.relations
        self._database = Database(path, patience=patience, reserve_s=AUDIT_RESERVE_S, synchronous=self.synchronous)
        self._judge = judge
        self._judged: tuple[sqlite3.Connection, int, SurfaceReport] | None = None

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
        if self._judged is None or self._judged[:2] != (connection, version):
            self._judged = (connection, version, self._judge.judge(catalogue(connection)))
        return self._judged[2]

    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        if value is None:
            return None
        found = connection.execute(
            f"SELECT * FROM {quoted(relation)} WHERE {quoted(column)} = ? LIMIT 1", (value,)
        ).fetchone()
        return plain(self._relations[relation], found)

    def _read(self, reading: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            self._database.be_patient(READ_PATIENCE_S)
            return reading(self._database.connection())
        except sqlite3.Error as error:
            self._database.drop()
            raise SurfaceUnreadableError(str(error)) from error

    def untombstoned(self) -> Sequence[Row]:
        """See `store.Store`."""
        statement = (
            "SELECT * FROM registration r WHERE NOT EXISTS "
            "(SELECT 1 FROM tombstone t WHERE t.logical_request_key = r.logical_request_key)"
        )
        relation = self._relations["registration"]
        rows = self._read(lambda connection: connection.execute(statement).fetchall())
        return [row for row in (plain(relation, found) for found in rows) if row is not None]

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        """See `store.Store`."""
        try:
            connection = self._begin()
            if not self.insert_all(connection, inserts):
                self._roll_back()
                return Conflict()
        except sqlite3.IntegrityError:
            self._roll_back()
            return Conflict()
        except sqlite3.Error as error:
            self._roll_back()
            raise RolledBackError(str(error)) from error
        self._commit(connection)
        try:
            return Committed(self.read_back(connection, inserts[-1]))
        except sqlite3.Error as error:
            raise CommitUncertainError(str(error)) from error

    def insert_all(self, connection: sqlite3.Connection, inserts: Sequence[Insert]) -> bool:
        """Insert rows until one finds its key taken; whether all of them are in. Raises sqlite3.Error."""
        return all(
            connection.execute(self.insert_statement(each), self._values(each)).fetchone() is not None
            for each in inserts
        )

    def read_back(self, connection: sqlite3.Connection, insert: Insert) -> Row | None:
        """The row as it is stored now. Raises sqlite3.Error."""
        (key,) = self._relations[insert.relation].primary_key
        return self._row(connection, insert.relation, key, str(insert.row[key]))

    def _begin(self) -> sqlite3.Connection:
        """Take the one write lock; waiting for it is waiting for the other's outcome."""
        self._database.be_patient(CONSUME_PATIENCE_S)
        connection = self._database.connection()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def insert_statement(self, insert: Insert) -> str:
        """The INSERT with its named arbiter: only a conflict with it means that another transaction was first."""
        relation = self._relations[insert.relation]
        if insert.arbiter is None:
            return insert_sql(relation, arbiter=relation.primary_key)
        return insert_sql(relation, arbiter=relation.unique.get(insert.arbiter))

    def _values(self, insert: Insert) -> tuple[str | bool | None, ...]:
        return tuple(insert.row[column] for column in self._relations[insert.relation].columns)

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.ProgrammingError as error:
            raise RolledBackError(f"the connection was closed before the commit: {error}") from error
        except sqlite3.Error as error:
            # The statement returned an error before the commit record was durable: SQLite is still inside.
            inside = connection.in_transaction
            self._roll_back()
            if not inside:
                raise CommitUncertainError(str(error)) from error
            raise RolledBackError(str(error)) from error

    def _roll_back(self) -> None:
        # Closing rolls back every open transaction, also where ROLLBACK itself would fail.
        try:
            self._database.connection().rollback()
        except sqlite3.Error:
            self._database.drop()

    def append(self, relation: str, rows: Sequence[Row]) -> int:
        """See `store.Store`."""
        statement = insert_sql(self._relations[relation], arbiter=self._relations[relation].primary_key)
        try:
            connection = self._begin()
            added = 0
            for row in rows:
                values = self._values(Insert(relation, row))
                added += connection.execute(statement, values).fetchone() is not None
        except sqlite3.Error as error:
            self._roll_back()
            raise RolledBackError(str(error)) from error
        self._commit(connection)
        return added

    def settles(self, probe: Insert) -> bool:
        """See `store.Store`."""
        try:
            connection = self._begin()
        except sqlite3.Error as error:
            raise CommitUncertainError(str(error)) from error
        try:
            return connection.execute(self.insert_statement(probe), self._values(probe)).fetchone() is not None
        except sqlite3.IntegrityError:
            return False
        except sqlite3.Error as error:
            raise CommitUncertainError(str(error)) from error
        finally:
            self._roll_back()

    def close(self) -> None:
        """See `store.Store`."""
        self._database.drop()


class SqliteAudit:
    """Implements `store.AuditSink` on a database file of its own."""

    # A record is durable before its answer is sent.
    synchronous = "FULL"

    def __init__(self, path: Path, settings: Settings, patience: Patience) -> None:
        (self._relation,) = (relation for relation in settings.relations.values() if relation.audit)
        self._statement = insert_sql(self._relation, arbiter=self._relation.primary_key)
        self._database = Database(path, patience=patience, synchronous=self.synchronous)

    def probe(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._insert(record, end="ROLLBACK")

    def write(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._insert(record, end="COMMIT")

    def _insert(self, record: Row, *, end: str) -> None:
        try:
            self._database.be_patient(CONSUME_PATIENCE_S)
            connection = self._database.connection()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(self._statement, tuple(record[column] for column in self._relation.columns)).fetchone()
            connection.execute(end)
        except sqlite3.Error as error:
            self._database.drop()
            raise AuditError(str(error)) from error

    def close(self) -> None:
        """See `store.AuditSink`."""
        self._database.drop()


_BROKEN = re.compile(r"(?P<kind>[A-Z ]+) constraint failed: (?P<what>.+)")


def broken_constraint(relation: Relation, error: sqlite3.Error) -> str | None:
    """The name of the constraint in an error. SQLite names the columns of a UNIQUE, not the constraint."""
    match = _BROKEN.search(str(error))
    if match is None:
        return None
    columns = tuple(part.rpartition(".")[2] for part in match["what"].split(", "))
    names = {tuple(columns): name for name, columns in relation.unique.items()}
    return names.get(columns, match["what"])
