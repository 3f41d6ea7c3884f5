"""The rows of the broker on PostgreSQL, and the one transaction that every accept path runs in (section 4.7)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from holdfast.reference_impl.mesh_delivery.broker_schema import ENFORCED
from holdfast.reference_impl.mesh_delivery.terms import Made, Word
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Connection, Link, with_settings
from holdfast.servers.pace import scaled

_T = TypeVar("_T")
Found = psycopg.Cursor[tuple[object, ...]]
# With the values of its placeholders.
Statement = tuple[str, Sequence[object]]

# Below the patience of an operation, so that a working server reports the timeout itself. A retry waits for the outcome
# of the transaction that holds its id.
LOCK_TIMEOUT_MS = round(scaled(1000))
STATEMENT_TIMEOUT_MS = round(scaled(1100))
# How often a transaction is run again that met a vanished record, or that the database aborted for another.
ATTEMPTS = 5
# Where a destination is found, by its kind.
_DESTINATIONS = {"topic": "topic WHERE name", "dm": "member WHERE public_key", "queue": "queue WHERE id"}


class UnavailableError(Exception):
    """Nothing of the transaction is there; the same may succeed later."""


class UncertainError(Exception):
    """The commit was sent and its outcome is not known."""


class AgainError(Exception):
    """The whole transaction is to be run again."""


@dataclass(frozen=True, slots=True)
class Send:
    """One send, validated, with its fingerprint. `destination_ref` is as it is hashed."""

    mesh_id: str
    sender: str
    client_message_id: str
    fingerprint: bytes
    destination_kind: str
    destination_ref: str
    reply_to: str
    priority: str
    meta: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """A dedupe record, with the place of its message in the history, None if that is gone."""

    broker_message_id: str
    fingerprint: bytes
    sender: str
    first_seen_at: datetime
    history_available: bool
    history_id: str | None


@dataclass(frozen=True, slots=True)
class Sight:
    """What a transaction finds. `is_enforced`: the flag is on, whatever became of the schema since then."""

    is_member: bool
    is_enforced: bool
    has_destination: bool


class BrokerStore:
    """The rows. Every method but `transaction` takes the connection that has the transaction open."""

    # What the transaction under way has found.
    sight: Sight

    def __init__(self, dsn: str, patience: Patience) -> None:
        settings = {"lock_timeout": str(LOCK_TIMEOUT_MS), "statement_timeout": str(STATEMENT_TIMEOUT_MS)}
        # Durable when acknowledged, for every default of the server.
        self._link = Link(with_settings(dsn, synchronous_commit="on", **settings), patience=patience)

    def close(self) -> None:
        """Give back the connection. Never raises."""
        self._link.drop()

    # The transaction

    def transaction(self, body: Callable[[Connection], _T], *, about: Send | None = None) -> _T:
        """The result of `body`, committed. What it raises rolls back. See ATTEMPTS.

        `about`: a send, of which `sight` says then what there is.

        Raises UnavailableError, UncertainError, and what `body` raises.
        """
        for _ in range(ATTEMPTS):
            with contextlib.suppress(AgainError):
                return self._once(body, about)
        raise UnavailableError("the database aborted every try for a concurrent transaction")

    def _once(self, body: Callable[[Connection], _T], about: Send | None) -> _T:
        connection = self.begin(about)
        try:
            result = body(connection)
        except BaseException as error:
            self.roll_back(connection)
            if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
                raise AgainError from error
            if isinstance(error, psycopg.Error):
                raise UnavailableError(type(error).__name__) from error
            raise
        self.commit(connection)
        return result

    def begin(self, about: Send | None) -> Connection:
        """A connection with a new transaction, and a look at what there is of a send. Raises UnavailableError."""
        try:
            try:
                return self._begun(about)
            except psycopg.OperationalError:
                # The server may have restarted since the last operation.
                self._link.drop()
                return self._begun(about)
        except psycopg.Error as error:
            raise UnavailableError(type(error).__name__) from error

    def _begun(self, about: Send | None) -> Connection:
        connection = self._link.connection()
        if about is None:
            connection.execute("BEGIN")
            return connection
        # Both in one message.
        with connection.pipeline():
            connection.execute("BEGIN")
            found = self.ask(connection, about)
        row: Any = found.fetchone()
        self.sight = Sight(*row)
        return connection

    def commit(self, connection: Connection) -> None:
        """Commit. Raises AgainError and UnavailableError where that certainly did not happen, else UncertainError."""
        try:
            connection.execute("COMMIT")
        except (errors.SerializationFailure, errors.DeadlockDetected) as error:
            raise AgainError from error
        except psycopg.IntegrityError as error:
            raise UnavailableError(type(error).__name__) from error
        except psycopg.Error as error:
            self._link.drop()
            raise UncertainError(type(error).__name__) from error

    def roll_back(self, connection: Connection) -> None:
        """Roll back; a connection that cannot is given up, which rolls back too. Never raises."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._link.drop()

    def _ask(self, connection: Connection, statement: str, values: Sequence[object]) -> Found:
        """Run a statement that each send runs, so that the server plans it once for a connection."""
        return connection.execute(statement, values, prepare=True)

    # What is there

    def ask(self, connection: Connection, send: Send) -> Found:
        """Ask what is there of a send's sender and destination, and whether its id is to be deduplicated."""
        statement = (
            "SELECT EXISTS (SELECT FROM mesh.member WHERE mesh_id = %s AND public_key = %s), "
            "EXISTS (SELECT FROM mesh.setting WHERE name = %s AND value = 'on'), "
            f"EXISTS (SELECT FROM mesh.{_DESTINATIONS[send.destination_kind]} = %s AND mesh_id = %s)"
        )
        values = (send.mesh_id, send.sender, ENFORCED, send.destination_ref, send.mesh_id)
        return self._ask(connection, statement, values)

    # The rows of an accepted send

    def insert_record(
        self, connection: Connection, send: Send, message_id: Made, now: datetime, expires: datetime | None
    ) -> bool:
        """Insert the dedupe record; whether it is the first of its id. Waits for a transaction that holds the id."""
        statement = (
            "INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id, "
            "request_fingerprint, sender, destination_kind, destination_ref, first_seen_at, expires_at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (mesh_id, client_message_id) DO NOTHING RETURNING broker_message_id"
        )
        values = (
            *(send.mesh_id, send.client_message_id, message_id, send.fingerprint, send.sender),
            *(send.destination_kind, send.destination_ref, now, expires),
        )
        return self._ask(connection, statement, values).fetchone() is not None

    def select_record(self, connection: Connection, mesh_id: str, client_message_id: str) -> Record | None:
        """The record of an id, whatever its expires_at says: it counts until the nightly job has deleted it."""
        statement = (
            "SELECT d.broker_message_id::text, d.request_fingerprint, d.sender, d.first_seen_at, d.history_available, "
            "(SELECT t.position FROM mesh.topic_message t WHERE t.id = d.broker_message_id UNION ALL "
            "SELECT q.position FROM mesh.message_queue q WHERE q.id = d.broker_message_id)::text "
            "FROM mesh.client_message_dedupe d WHERE d.mesh_id = %s AND d.client_message_id = %s"
        )
        row: Any = self._ask(connection, statement, (mesh_id, client_message_id)).fetchone()
        return None if row is None else Record(row[0], bytes(row[1]), *row[2:])

    def insert_message(
        self, connection: Connection, send: Send, message_id: Made, now: datetime, *, client_message_id: str | None
    ) -> str:
        """Insert the message row and its fan-out in one statement; its place in the history."""
        message, values = self.message(send, message_id, now, client_message_id)
        fan_out, others = self.fan_out(send, message_id)
        statement = f"WITH message AS ({message}), sent AS ({fan_out}) SELECT position FROM message"
        (position,) = self._ask(connection, statement, (*values, *others)).fetchone() or (None,)
        return str(position)

    def message(self, send: Send, message_id: Made, now: datetime, client_message_id: str | None) -> Statement:
        """Inserts the message row. Legacy rows have no client_message_id."""
        named = {"client_message_id": client_message_id} if client_message_id is not None else {}
        row: dict[str, Any] = {
            "id": message_id,
            "mesh_id": send.mesh_id,
            "sender": send.sender,
            "destination_kind": send.destination_kind,
            "destination_ref": send.destination_ref,
            "reply_to": send.reply_to,
            "priority": send.priority,
            "meta": send.meta,
            "body": send.body,
            "created_at": now,
            **named,
        }
        statement = (
            f"INSERT INTO mesh.{self.table_of(send.destination_kind)} ({', '.join(row)}) "
            f"VALUES ({', '.join(['%s'] * len(row))}) RETURNING position"
        )
        return statement, tuple(row.values())

    def table_of(self, destination_kind: Word) -> str:
        """The relation of the messages of a kind."""
        return "topic_message" if destination_kind == "topic" else "message_queue"

    def fan_out(self, send: Send, message_id: Made) -> Statement:
        """Enqueues the fan-out: one row for each receiver."""
        receivers, values = self.receivers(send)
        statement = f"INSERT INTO mesh.fan_out SELECT %s::uuid, %s::uuid, r.receiver FROM ({receivers}) r (receiver)"
        return statement, (send.mesh_id, message_id, *values)

    def receivers(self, send: Send) -> Statement:
        """Everybody but the sender for a topic, else the destination itself."""
        if send.destination_kind != "topic":
            return "SELECT %s::text", (send.destination_ref,)
        return "SELECT public_key FROM mesh.member WHERE mesh_id = %s AND public_key <> %s", (send.mesh_id, send.sender)
