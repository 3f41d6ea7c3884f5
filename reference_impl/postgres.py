"""Connections to PostgreSQL for all contracts: they reconnect, limit each wait, and never print secrets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import psycopg
from psycopg import errors, generators, waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn

from holdfast.reference_impl.patience import Patience
from holdfast.servers.pace import scaled

Connection = psycopg.Connection[tuple[object, ...]]
_T = TypeVar("_T")
# What libpq connects with: HOST:PORT, names and words.
Dsn: TypeAlias = str
Database: TypeAlias = str

# A server that lost a backend restarts all of them and answers "in recovery mode" meanwhile.
_RECOVERING = ("recovery mode", "starting up", "not yet accepting", "shutting down")
_POLL_S = 0.02
# For a connection that belongs to no operation.
_CONNECT_S = scaled(3.0)
# How often psycopg checks whether its time is over.
_INTERVAL_S = 0.1


class SilentError(psycopg.OperationalError):
    """The server did not answer in the time that the operation had; the connection is closed."""


class PatientConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection on which a wait ends with `patience`. Without one it has no end.

    libpq itself waits on a local socket for as long as the server has it open, and a server that was stopped does.
    """

    patience: Patience | None = None

    def wait(self, gen: PQGen[_T], interval: float = _INTERVAL_S, timeout: float | None = None) -> _T:
        """See `psycopg.Connection`. Raises SilentError."""
        left = timeout if self.patience is None else self.patience.left()
        try:
            return super().wait(gen, interval, left)
        except errors._WaitTimeout as error:
            # Its answer may still come, and would be taken for that of the next statement.
            self.close()
            raise SilentError(f"expected an answer of the database in {left:.2f} s, got none") from error


def with_settings(dsn: Dsn, **settings: str) -> str:
    """The DSN with server settings added, by name."""
    options = conninfo_to_dict(dsn).get("options") or ""
    options = " ".join([str(options), *(f"-c {name}={value}" for name, value in settings.items())]).strip()
    return make_conninfo(dsn, options=options)


def with_database(dsn: Dsn, database: Database) -> str:
    """The DSN of another database on the same server."""
    return make_conninfo(dsn, dbname=database)


def describe(dsn: str) -> str:
    """Which server and database a DSN means, without user or secrets."""
    parts = conninfo_to_dict(dsn)
    shown = {"dbname": parts.get("dbname", "(default)"), "host": parts.get("host", "the default host")}
    # An @ or a / in a password that is not written as %40 or %2F ends it too early, and the rest stands in these.
    if any("@" in str(value) for value in shown.values()):
        return "a database that is not shown, because its name or host may hold a piece of the password"
    return f"database {shown['dbname']!r} at {shown['host']!r}"


def connect(dsn: Dsn, *, patience: Patience | None = None) -> PatientConnection:
    """A new autocommit connection; waits a bounded time for a server that recovers. Raises psycopg.Error.

    With `patience` neither connecting nor anything on the connection takes longer than it has left.
    """
    waits = patience or Patience(_CONNECT_S)
    while True:
        try:
            made = PatientConnection(_connected(dsn, waits.left()))
            made.autocommit = True
            # psycopg prepares what `postgres_pipeline` asks for, and nothing by itself.
            made.prepare_threshold = sys.maxsize
            made.patience = patience
            return made
        except psycopg.OperationalError as error:
            # The server's own message says more than a timeout.
            if not waits.left() or not any(words in str(error) for words in _RECOVERING):
                raise
        time.sleep(_POLL_S)


def _connected(dsn: str, seconds: float) -> PGconn:
    """psycopg.connect grants a server at least 2 s (libpq's least), which is a whole operation's time."""
    try:
        made: PGconn = waiting.wait_conn(generators.connect(dsn), _INTERVAL_S, seconds)
    except errors._WaitTimeout as error:
        raise SilentError(f"expected the database to accept a connection in {seconds:.2f} s, got no answer") from error
    return made


class Link:
    """One connection, opened when first used and again after it was lost."""

    def __init__(self, dsn: Dsn, *, patience: Patience | None = None) -> None:
        """Not connected yet. Waits on it end with `patience`; without one they have no end."""
        self._dsn = dsn
        self._patience = patience
        self._connection: PatientConnection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        return self._connection is not None and not self._connection.closed

    def connection(self) -> PatientConnection:
        """The connection, opened if need be. Raises psycopg.Error."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._dsn, patience=self._patience)
        return self._connection

    def alive(self) -> PatientConnection:
        """A connection that answers: the server may have restarted since its last use. Raises psycopg.Error."""
        self.retried(lambda connection: connection.execute("SELECT 1"))
        return self.connection()

    def retried(self, action: Callable[[PatientConnection], _T]) -> _T:
        """Do it, once more where the connection was lost: one that died since its last use says nothing of the server.

        Raises psycopg.Error.
        """
        try:
            return action(self.connection())
        except psycopg.OperationalError:
            if self.is_open:
                raise
            return action(self.connection())

    def drop(self) -> None:
        """Close the connection; the next use opens another. Never raises."""
        if self._connection is not None:
            self._connection.close()
