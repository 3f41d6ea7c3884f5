"""The surface on PostgreSQL, with the rights of the restricted writer, and the audit sink on its own connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Connection, Link, connect, with_settings
from holdfast.reference_impl.postgres_pipeline import Reply, Step, rehearse, run
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
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
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceReport, judged
from holdfast.servers.pace import scaled
from holdfast.specs import Relation

# What stands in the configured schema, and which *sound* unique indexes each relation has: valid, immediate,
# unconditional, over plain columns. A foreign, unlogged or partitioned relation is not durable in the needed sense.
# The last column is the number of the relation, for LOOK.
CATALOGUE = f"""
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p',
  (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT jsonb_agg((SELECT jsonb_agg(a.attname) FROM pg_catalog.pg_attribute a
                      WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])))
     FROM pg_catalog.pg_index i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL),
  c.oid
FROM pg_catalog.pg_class c
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = '{SCHEMA}')
  AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
"""

# One statement, hence one snapshot: what is stored about one key and one nonce, and before it the marks of the
# catalogue: which transaction wrote each of the relations that CATALOGUE found, and each of their indexes, and thus
# whether any was dropped or altered since. Reading the marks takes a tenth of the time of reading the catalogue.
LOOK = f"""
SELECT
  ARRAY (SELECT k.xmin FROM pg_catalog.pg_class k WHERE k.oid = ANY (q.oids))::text
  || ARRAY (SELECT x.xmin FROM pg_catalog.pg_index x WHERE x.indrelid = ANY (q.oids))::text,
  to_jsonb(r), to_jsonb(v), to_jsonb(c), to_jsonb(i), to_jsonb(n)
FROM (SELECT %s::oid[] AS oids, %s::text AS logical_request_key, %s::text AS nonce) q
LEFT JOIN {SCHEMA}.registration r ON r.logical_request_key = q.logical_request_key
LEFT JOIN {SCHEMA}.verification v ON v.decision_id = r.decision_id
LEFT JOIN {SCHEMA}.compensation c ON c.decision_id = r.decision_id
LEFT JOIN {SCHEMA}.nonce_issue i ON i.authorization_nonce = q.nonce
LEFT JOIN {SCHEMA}.nonce_consume n ON n.authorization_nonce = q.nonce
LIMIT 1
"""

UNTOMBSTONED = f"""
SELECT to_jsonb(r) FROM {SCHEMA}.registration r
WHERE NOT EXISTS (SELECT 1 FROM {SCHEMA}.tombstone t WHERE t.logical_request_key = r.logical_request_key)
"""


_RETURNING = "RETURNING pg_catalog.pg_current_xact_id()::text"


def _into(relation: Relation) -> str:
    names, places = ", ".join(relation.columns), ", ".join(["%s"] * len(relation.columns))
    return f"INSERT INTO {SCHEMA}.{relation.name} ({names}) VALUES ({places})"


def insert_sql(relation: Relation) -> str:
    """INSERT of a whole row, values in column order, returning the transaction's number."""
    return f"{_into(relation)} {_RETURNING}"


def append_sql(relation: Relation) -> str:
    """The same of a row that no stored one conflicts with; of any other it returns nothing."""
    return f"{_into(relation)} ON CONFLICT DO NOTHING {_RETURNING}"


def read_back_sql(relation: Relation) -> str:
    """One row of a relation by its primary key, which has one column."""
    (key,) = relation.primary_key
    return f"SELECT to_jsonb(r) FROM {SCHEMA}.{relation.name} r WHERE r.{key} = %s"


_T = TypeVar("_T")

# How long the server waits for a lock: a concurrent holder of the same key is answered for after its outcome. It is
# below the patience of an operation, so that a working server reports the timeout itself, and the rollback is certain.
LOCK_TIMEOUT_S = scaled(1.0)
# The database aborted the transaction for a concurrent one; the same transaction may succeed now.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A surface as judged, the numbers of its relations, and the marks that they and their indexes had."""

    oids: str
    marks: str
    report: SurfaceReport


class _OnPostgres:
    """A connection of the restricted writer."""

    def __init__(self, dsn: str, settings: Settings, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._dsn = with_settings(
            dsn,
            # Durable when acknowledged, for every default of the server.
            synchronous_commit="on",
            lock_timeout=f"{LOCK_TIMEOUT_S}s",
            # Every statement reads one key; planning it anew each time takes longer than running it.
            plan_cache_mode="force_generic_plan",
            # Nor does any need more than a few rows; of a catalogue this small the planner would read all.
            enable_seqscan="off",
            enable_bitmapscan="off",
        )
        self._link = Link(self._dsn, patience=patience)

    def _values(self, insert: Insert) -> Sequence[str | bool | None]:
        return [insert.row[column] for column in self._settings.relations[insert.relation].columns]

    def _appending(self, insert: Insert) -> Step:
        return Step(append_sql(self._settings.relations[insert.relation]), self._values(insert))

    def close(self) -> None:
        """See `store.Store` and `store.AuditSink`."""
        self._link.drop()


class PostgresStore(_OnPostgres):
    """Implements `store.Store`. All access is INSERT and SELECT under the restricted role."""

    _judged: _Judged | None = None

    # Reading

    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        """See `store.Store`. Rows and the catalogue's marks are read anew each time, in one statement."""

        def read(connection: Connection) -> Sight:
            try:
                if self._judged is not None:
                    marks, *rows = self._marks_and_rows(self._judged, logical_request_key, nonce)
                    if marks == self._judged.marks:
                        return Sight(self._judged.report, *rows)
                # No part of the surface was read yet, or one was made, dropped or altered.
                found = self._judge_catalogue(connection)
                marks, *rows = self._marks_and_rows(found, logical_request_key, nonce)
            except errors.UndefinedTable:
                return Sight(self._judge_catalogue(connection).report)
            self._judged = replace(found, marks=marks)
            return Sight(found.report, *rows)

        return self._read(read)

    def _marks_and_rows(self, judged: _Judged, logical_request_key: str | None, nonce: str | None) -> Sequence[Any]:
        look = Step(LOOK, (judged.oids, logical_request_key, nonce))
        (reply,) = run(self._link.connection(), look)
        assert reply.row is not None, "there is a line for every key, also for one that is not stored"
        return reply.row

    def _judge_catalogue(self, connection: Connection) -> _Judged:
        """Read the whole catalogue of the surface and judge it. Its marks are not known yet."""
        found: list[Any] = connection.execute(CATALOGUE).fetchall()
        seen = {
            name: SeenRelation(frozenset(columns), frozenset(map(tuple, unique or ())), durable=bool(durable))
            for name, durable, columns, unique, _ in found
        }
        oids = ",".join(str(oid) for *_, oid in found)
        return _Judged(f"{{{oids}}}", "", judged(self._settings.surface, seen))

    def _read(self, reading: Callable[[Connection], _T]) -> _T:
        try:
            return self._link.retried(reading)
        except psycopg.Error as error:
            raise SurfaceUnreadableError(error) from error

    def untombstoned(self) -> Sequence[Row]:
        """See `store.Store`."""
        return [row for (row,) in self._read(lambda c: c.execute(UNTOMBSTONED).fetchall())]  # type: ignore[misc]

    # Writing

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        """See `store.Store`. Serialization failures are run again inside, the whole transaction each time."""
        for _ in range(self._settings.serialization_retries + 1):
            with suppress(*_AGAIN):
                return self._transaction(inserts)
        raise RolledBackError("the database aborted every try for a concurrent transaction")

    def _transaction(self, inserts: Sequence[Insert]) -> Consumption:
        """Run it. Raises one of _AGAIN where it rolled back."""
        xids: set[int] = set()
        try:
            connection = self._link.connection()
        except psycopg.Error as error:
            raise RolledBackError(error) from error
        try:
            begin = Step(f"BEGIN ISOLATION LEVEL {self._settings.isolation.value.replace('_', ' ')}")
            self.insert_all(connection, [begin], inserts, xids)
            committed, durable = self.send_commit(connection, self._read_back(inserts[-1]))
            if committed.tag != "COMMIT":
                raise psycopg.OperationalError(f"the database answered {committed.tag} to COMMIT")
        except errors.UniqueViolation:
            self._roll_back(connection, xids)
            return Conflict()
        except _AGAIN:
            self._roll_back(connection, xids)
            raise
        except psycopg.Error as error:
            # Of the commit or before it: what became of the transaction is asked on another connection.
            connection.close()
            self._roll_back(connection, xids)
            raise RolledBackError(error) from error
        return Committed(None if durable.row is None else durable.row[0])

    def insert_all(
        self, connection: Connection, begin: Sequence[Step], inserts: Sequence[Insert], xids: set[int]
    ) -> None:
        """Insert rows in one message, after the steps that begin their transaction.

        `xids` takes the number of the transaction. Raises psycopg.Error.
        """
        relations = self._settings.relations
        ready = [Step(insert_sql(relations[each.relation]), self._values(each)) for each in inserts]
        xids.update(int(reply.row[0]) for reply in run(connection, *begin, *ready) if reply.row is not None)

    def _read_back(self, insert: Insert) -> Step:
        relation = self._settings.relations[insert.relation]
        return Step(read_back_sql(relation), [insert.row[key] for key in relation.primary_key])

    def send_commit(self, connection: Connection, read_back: Step) -> Sequence[Reply]:
        """Commit, and read the last row back in the same message: after the COMMIT, hence as durable."""
        return run(connection, Step("COMMIT"), read_back)

    def _roll_back(self, connection: Connection, xids: Iterable[int]) -> None:
        """Roll back, and where the connection is lost, prove it. Raises CommitUncertainError without a proof."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            for xid in xids:
                self._prove_aborted(xid)

    def _prove_aborted(self, xid: int) -> None:
        while self._patience.left():
            try:
                with connect(self._dsn, patience=self._patience) as connection:
                    found = connection.execute("SELECT pg_xact_status(%s::text::xid8)", (xid,)).fetchone()
            except errors.InvalidParameterValue:
                return  # "in the future": a crash took the number back, so it was never committed
            except psycopg.Error:
                continue
            if found == ("aborted",):
                return
        raise CommitUncertainError(f"it was not known in time whether transaction {xid} was committed or aborted")

    def append(self, inserts: Sequence[Insert]) -> int:
        """See `store.Store`. One message, which is one transaction."""
        try:
            replies = run(self._link.connection(), *map(self._appending, inserts))
        except psycopg.Error as error:
            # A server that goes on has rolled back what it reports an error of. One that ends with PANIC may have
            # written the commit, and its last words may come before the end of the connection.
            if error.diag.severity_nonlocalized == "ERROR":
                raise RolledBackError(error) from error
            raise CommitUncertainError(error) from error
        return sum(reply.row is not None for reply in replies)

    def settles(self, probe: Insert) -> bool:
        """See `store.Store`. Inserting waits for the holder of the key. The row is always rolled back."""
        step = Step(insert_sql(self._settings.relations[probe.relation]), self._values(probe))
        try:
            rehearse(self._link.connection(), step)
        except errors.UniqueViolation:
            return False
        except psycopg.Error as error:
            raise CommitUncertainError(error) from error
        return True


class PostgresAudit(_OnPostgres):
    """Implements `store.AuditSink` on its own autocommit connection, outside every transaction that it records."""

    def probe(self, record: Row) -> None:
        """See `store.AuditSink`."""
        self._try(rehearse, record)

    def write(self, record: Row) -> None:
        """See `store.AuditSink`. Written twice after a lost answer, it still is one record: its id is the key."""
        self._try(run, record)

    def _try(self, action: Callable[[Connection, Step], object], record: Row) -> None:
        step = self._appending(Insert("audit", record))
        try:
            self._link.retried(lambda connection: action(connection, step))
        except psycopg.Error as error:
            raise AuditError(error) from error
