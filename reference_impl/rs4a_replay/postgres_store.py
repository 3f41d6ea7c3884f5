"""The surface on PostgreSQL, with the rights of the restricted writer, and the audit sink on its own connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from holdfast.reference_impl.patience import AUDIT_RESERVE_S, Patience
from holdfast.reference_impl.postgres import Connection, Link, Preparing, connect, with_settings
from holdfast.reference_impl.postgres_pipeline import Reply, Step, rehearse, run
from holdfast.reference_impl.rs4a_replay import postgres_statements as statements
from holdfast.reference_impl.rs4a_replay.settings import Isolation, Settings
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
from holdfast.servers.environment import scaled

_T = TypeVar("_T")

# The server's own limits, below the patience of an operation, so that a working server reports the timeout itself.
# Reading never waits for a row, only for a table that another session has locked whole.
READ_LOCK_TIMEOUT_MS = round(scaled(400))
# Consuming waits for a concurrent holder of the same key, so that it answers only after that one's outcome.
CONSUME_LOCK_TIMEOUT_MS = round(scaled(1000))
STATEMENT_TIMEOUT_MS = round(scaled(1100))
_POLL_S = 0.02
_LEVELS = {
    Isolation.READ_COMMITTED: "READ COMMITTED",
    Isolation.REPEATABLE_READ: "REPEATABLE READ",
    Isolation.SERIALIZABLE: "SERIALIZABLE",
}
# SQLSTATE classes whose meaning is "the transaction failed", as against "the connection or the server did".
_CERTAIN_CLASSES = ("22", "23", "25", "40", "42", "55")
# At COMMIT only what a deferred check or a concurrent transaction raises: the read-back after it can raise the others.
_CERTAIN_AT_COMMIT = ("23", "40")


class _AgainError(Exception):
    """The database aborted the transaction for a concurrent one; the same transaction may succeed now."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A surface as judged, the numbers of its relations, and the marks that they and their indexes had."""

    oids: str
    marks: str | None
    report: SurfaceReport


class PostgresStore:
    """Implements `store.Store`. All access is INSERT and SELECT under the restricted role."""

    # Durable when acknowledged, for every default of the server.
    synchronous_commit = "on"

    def __init__(self, dsn: str, settings: Settings, judge: SurfaceJudge, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._dsn = with_settings(
            dsn,
            synchronous_commit=self.synchronous_commit,
            lock_timeout=str(READ_LOCK_TIMEOUT_MS),
            statement_timeout=str(STATEMENT_TIMEOUT_MS),
            # Every statement reads one key; planning it anew each time takes longer than running it.
            plan_cache_mode="force_generic_plan",
            # Nor does any need more than a few rows; of a catalogue this small the planner would read all.
            enable_seqscan="off",
            enable_bitmapscan="off",
        )
        self._link = Link(self._dsn, patience=patience, reserve_s=AUDIT_RESERVE_S, preparing=Preparing.ON_REQUEST)
        self._judge = judge
        self._judged: _Judged | None = None

    # Reading

    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        """See `store.Store`. Rows and the catalogue's marks are read anew each time, in one statement."""

        def read(connection: Connection) -> Sight:
            if self._judged is None:
                self._judged = self._judge_catalogue(connection)
            found = self._marks_and_rows(self._judged, logical_request_key, nonce)
            if found[0] != self._judged.marks:
                # A part of the surface was made, dropped or altered: judge it again, and read again.
                self._judged = self._judge_catalogue(connection)
                found = self._marks_and_rows(self._judged, logical_request_key, nonce)
                self._judged = replace(self._judged, marks=found[0])
            return Sight(self._judged.report, *found[1:])

        try:
            return self._read(read)
        except errors.UndefinedTable:
            self._judged = None
            return Sight(self._read(self._judge_catalogue).report)

    def _marks_and_rows(self, judged: _Judged, logical_request_key: str | None, nonce: str | None) -> tuple[Any, ...]:
        look = Step(statements.LOOK, (judged.oids, logical_request_key, nonce))
        (reply,) = run(self._link.connection(), look)
        return reply.row or (None,)

    def _judge_catalogue(self, connection: Connection) -> _Judged:
        """Read the whole catalogue of the surface and judge it."""
        found: list[Any] = connection.execute(statements.CATALOGUE).fetchall()
        seen = {
            name: SeenRelation(frozenset(columns), frozenset(map(tuple, unique or ())), durable=bool(durable))
            for name, durable, columns, unique, _ in found
        }
        oids = ",".join(str(oid) for *_, oid in found)
        return _Judged("{" + oids + "}", None, self._judge.judge(seen))

    def _read(self, reading: Callable[[Connection], _T]) -> _T:
        try:
            try:
                return reading(self._link.connection())
            except psycopg.OperationalError:
                # A connection that died since the last request says nothing about the surface; one try more.
                if self._link.is_open:
                    raise
                self._link.drop()
                return reading(self._link.connection())
        except errors.UndefinedTable:
            raise
        except psycopg.Error as error:
            raise SurfaceUnreadableError(_first_line(error)) from error

    def untombstoned(self) -> Sequence[Row]:
        """See `store.Store`."""
        return [row for (row,) in self._read(lambda c: c.execute(statements.UNTOMBSTONED).fetchall())]  # type: ignore[misc]

    # Writing

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        """See `store.Store`. Serialization failures are run again inside, the whole transaction each time."""
        for _ in range(self._settings.serialization_retries + 1):
            try:
                return self._transaction(inserts)
            except _AgainError:
                continue
        raise RolledBackError("the database aborted every try for a concurrent transaction")

    def _transaction(self, inserts: Sequence[Insert]) -> Consumption:
        xids: list[str] = []
        try:
            connection = self._link.connection()
            if not self.insert_all(connection, inserts, xids):
                self._roll_back(xids)
                return Conflict()
            # A lost connection is found here at no cost; then the commit is certainly not sent. Twice: the first call
            # may only read the server's last message.
            connection.pgconn.consume_input()
            connection.pgconn.consume_input()
        except errors.UniqueViolation:
            # A unique index that is no arbiter (replay_key) may notice a concurrent twin first.
            self._roll_back(xids)
            return Conflict()
        except (errors.SerializationFailure, errors.DeadlockDetected) as error:
            self._roll_back(xids)
            raise _AgainError from error
        except psycopg.Error as error:
            self._roll_back(xids)
            raise RolledBackError(_first_line(error)) from error
        return self._commit(connection, self._read_back(inserts[-1]))

    def insert_all(self, connection: Connection, inserts: Sequence[Insert], xids: list[str]) -> bool:
        """Insert rows in one message, in a transaction that begins with it if none is open; whether all of them are in.

        `xids` takes the number of the transaction for each row that is. Raises psycopg.Error.
        """
        begin = [
            Step(f"BEGIN ISOLATION LEVEL {_LEVELS[self._settings.isolation]}"),
            Step(f"SET LOCAL lock_timeout = {CONSUME_LOCK_TIMEOUT_MS}"),
        ]
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            begin = []
        ready = [Step(self.insert_statement(each), self._values(each.relation, each.row)) for each in inserts]
        rows = [reply.row for reply in run(connection, *begin, *ready)[len(begin) :]]
        xids += [str(row[0]) for row in rows if row is not None]
        return None not in rows

    def insert_statement(self, insert: Insert) -> str:
        """The INSERT with its named arbiter: only a conflict with it means that another transaction was first."""
        return statements.insert(self._settings.relations[insert.relation], arbiter=insert.arbiter)

    def _values(self, relation: str, row: Row) -> tuple[str | bool | None, ...]:
        return tuple(row[column] for column in self._settings.relations[relation].columns)

    def _read_back(self, insert: Insert) -> Step:
        relation = self._settings.relations[insert.relation]
        return Step(statements.read_back(relation), [insert.row[relation.primary_key[0]]])

    def _commit(self, connection: Connection, read_back: Step) -> Consumption:
        try:
            committed, durable = self.send_commit(connection, read_back)
        except (errors.SerializationFailure, errors.DeadlockDetected) as error:
            raise _AgainError from error
        except psycopg.Error as error:
            self._link.drop()
            if (error.sqlstate or "")[:2] in _CERTAIN_AT_COMMIT:
                raise RolledBackError(_first_line(error)) from error
            raise CommitUncertainError(_first_line(error)) from error
        if committed.tag != "COMMIT":
            # psycopg forgets at a ROLLBACK which statements are prepared, and within a pipeline it does so too late.
            self._link.drop()
            raise RolledBackError(f"the database answered {committed.tag} to COMMIT")
        return Committed(None if durable.row is None else durable.row[0])

    def send_commit(self, connection: Connection, read_back: Step) -> Sequence[Reply]:
        """Commit, and read the last row back in the same message: after the COMMIT, hence as durable."""
        return run(connection, Step("COMMIT"), read_back)

    def _roll_back(self, xids: Sequence[str]) -> None:
        """Roll back, and where the connection is lost, prove it. Raises CommitUncertainError without a proof."""
        try:
            self._link.connection().execute("ROLLBACK") if self._link.is_open else None
        except psycopg.Error:
            self._link.drop()
        if not self._link.is_open:
            for xid in xids[:1]:
                self._prove_aborted(xid)

    def _prove_aborted(self, xid: str) -> None:
        while self._patience.left(AUDIT_RESERVE_S):
            try:
                with connect(self._dsn, patience=self._patience, reserve_s=AUDIT_RESERVE_S) as connection:
                    row: Any = connection.execute("SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
            except errors.InvalidParameterValue:
                return  # "in the future": a crash took the number back, so it was never committed
            except psycopg.Error:
                row = ("unknown",)
            if row[0] == "aborted":
                return
            time.sleep(_POLL_S)
        raise CommitUncertainError(f"it was not known in time whether transaction {xid} was committed or aborted")

    def append(self, relation: str, rows: Sequence[Row]) -> int:
        """See `store.Store`."""
        statement = statements.insert(self._settings.relations[relation], arbiter=None)
        complete = False
        try:
            connection = self._link.connection()
            with connection.transaction(), connection.cursor() as cursor:
                # In one batch: a round trip for each of a thousand rows takes longer than an operation may.
                cursor.executemany(statement, [self._values(relation, row) for row in rows])
                added = cursor.rowcount if rows else 0
                # What leaves the block from here on is the COMMIT.
                complete = True
        except psycopg.Error as error:
            if not complete or (error.sqlstate or "")[:2] in _CERTAIN_CLASSES:
                raise RolledBackError(_first_line(error)) from error
            self._link.drop()
            raise CommitUncertainError(_first_line(error)) from error
        return added

    def settles(self, probe: Insert) -> bool:
        """See `store.Store`. Inserting waits for the holder of the key. The row is always rolled back."""
        statement = self.insert_statement(probe)
        try:
            connection = self._link.connection()
            with connection.transaction(force_rollback=True):
                connection.execute(f"SET LOCAL lock_timeout = {CONSUME_LOCK_TIMEOUT_MS}")
                return connection.execute(statement, self._values(probe.relation, probe.row)).fetchone() is not None
        except psycopg.Error as error:
            raise CommitUncertainError(_first_line(error)) from error

    def close(self) -> None:
        """See `store.Store`."""
        self._link.drop()


class PostgresAudit:
    """Implements `store.AuditSink` on its own autocommit connection, outside every transaction that it records."""

    def __init__(self, dsn: str, settings: Settings, patience: Patience) -> None:
        (self._relation,) = (relation for relation in settings.relations.values() if relation.audit)
        self._statement = statements.insert(self._relation, arbiter=None)
        self._link = Link(
            with_settings(
                dsn,
                synchronous_commit="on",
                lock_timeout=str(READ_LOCK_TIMEOUT_MS),
                statement_timeout=str(STATEMENT_TIMEOUT_MS),
                plan_cache_mode="force_generic_plan",
            ),
            patience=patience,
        )

    def probe(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._try(lambda connection: rehearse(connection, self._insertion(record)))

    def write(self, record: Row) -> None:
        """See `store.AuditSink`. Written twice after a lost answer, it still is one record: its id is the key."""
        self._try(lambda connection: run(connection, self._insertion(record)))

    def _insertion(self, record: Row) -> Step:
        return Step(self._statement, [record[column] for column in self._relation.columns])

    def _try(self, action: Callable[[Connection], object]) -> None:
        try:
            try:
                action(self._link.connection())
            except psycopg.OperationalError:
                if self._link.is_open:
                    raise
                action(self._link.connection())
        except psycopg.Error as error:
            raise AuditError(_first_line(error)) from error

    def close(self) -> None:
        """See `store.AuditSink`."""
        self._link.drop()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
