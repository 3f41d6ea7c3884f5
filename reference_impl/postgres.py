"""Connections to PostgreSQL for all contracts: they reconnect, limit each wait, and never print secrets."""

from __future__ import annotations

import contextlib
import math
import select
import time
from enum import Enum, unique
from typing import TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ConnStatus, PollingStatus
from psycopg.pq.abc import PGconn

from holdfast.reference_impl.patience import Patience
from holdfast.servers.environment import scaled

Connection = psycopg.Connection[tuple[object, ...]]
_T = TypeVar("_T")

# A server that lost a backend restarts all of them and answers "in recovery mode" meanwhile.
RECOVERY_WAIT_S = scaled(1.2)
_RECOVERING = ("recovery mode", "starting up", "not yet accepting", "shutting down")
_POLL_S = 0.02
# For a connection that belongs to no operation.
_CONNECT_S = scaled(2.0)
# How often psycopg checks whether its time is over.
_INTERVAL_S = 0.1
# psycopg prepares a statement by itself only after this number of runs.
_ON_REQUEST = 2**31
_AWAITS = {PollingStatus.READING: select.POLLIN, PollingStatus.WRITING: select.POLLOUT}


class SilentError(psycopg.OperationalError):
    """The server did not answer in the time that the operation had; the connection is closed."""


class PatientConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection on which a wait ends with `patience`. Without one it has no end.

    libpq itself waits on a local socket for as long as the server has it open, and a server that was stopped does.
    """

    patience: Patience | None = None
    reserve_s = 0.0

    def seconds_left(self) -> float | None:
        """How long to wait for the next answer; None for ever."""
        left = None if self.patience is None else self.patience.left(self.reserve_s)
        return None if left is None or math.isinf(left) else left

    def wait(self, gen: PQGen[_T], interval: float = _INTERVAL_S, timeout: float | None = None) -> _T:
        """See `psycopg.Connection`. Raises SilentError."""
        left = self.seconds_left()
        try:
            return super().wait(gen, interval, left if timeout is None else timeout)
        except errors._WaitTimeout as error:
            # Its answer may still come, and would be taken for that of the next statement.
            self.close()
            raise SilentError(f"expected an answer of the database in {left:.2f} s, got none") from error


def with_settings(dsn: str, **settings: str) -> str:
    """The DSN with server settings added, by name."""
    options = conninfo_to_dict(dsn).get("options") or ""
    options = " ".join([str(options), *(f"-c {name}={value}" for name, value in settings.items())]).strip()
    return make_conninfo(dsn, options=options)


def with_database(dsn: str, database: str) -> str:
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


@unique
class Preparing(Enum):
    """Whether a connection prepares statements on the server: none, or those that `postgres_pipeline` sends."""

    NEVER = "never"
    ON_REQUEST = "on request"


def connect(
    dsn: str,
    *,
    patience: Patience | None = None,
    reserve_s: float = 0.0,
    preparing: Preparing = Preparing.NEVER,
) -> PatientConnection:
    """A new autocommit connection; waits a bounded time for a server that recovers. Raises psycopg.Error.

    With `patience` neither connecting nor anything on the connection takes longer than it has left.
    """
    deadline = time.monotonic() + (RECOVERY_WAIT_S if patience is None else patience.left(reserve_s))
    while True:
        left = _CONNECT_S if patience is None else patience.left(reserve_s)
        try:
            made = PatientConnection(_connected(dsn, left))
            made.autocommit = True
            # On a connection that prepares nothing, psycopg ignores what `postgres_pipeline` asks for.
            made.prepare_threshold = _ON_REQUEST if preparing is Preparing.ON_REQUEST else None
            made.patience, made.reserve_s = patience, reserve_s
            return made
        except psycopg.OperationalError as error:
            # The server's own message says more than a timeout.
            if time.monotonic() + _POLL_S > deadline or not any(words in str(error) for words in _RECOVERING):
                raise
        time.sleep(_POLL_S)


def _connected(dsn: str, seconds: float) -> PGconn:
    """psycopg.connect grants a server at least 2 s (libpq's least), which is a whole operation's time."""
    deadline = time.monotonic() + seconds
    pgconn = pq.PGconn.connect_start(make_conninfo(dsn).encode())
    waiting = select.poll()
    # As libpq has it: a connection that was just begun is to be written to.
    status = PollingStatus.WRITING
    while status in _AWAITS and pgconn.status != ConnStatus.BAD:
        left = deadline - time.monotonic()
        # The socket may be another one after each step.
        waiting.register(pgconn.socket, _AWAITS[status])
        if not waiting.poll(None if math.isinf(left) else max(0.0, left) * 1000):
            pgconn.finish()
            raise SilentError(f"expected the database to accept a connection in {seconds:.2f} s, got no answer")
        waiting.unregister(pgconn.socket)
        status = PollingStatus(pgconn.connect_poll())
    if status != PollingStatus.OK:
        said = pgconn.get_error_message()
        pgconn.finish()
        raise psycopg.OperationalError(f"connection failed: {said}")
    pgconn.nonblocking = 1
    return pgconn


class Link:
    """One connection, opened when first used and again after it was lost."""

    def __init__(
        self,
        dsn: str,
        *,
        patience: Patience | None = None,
        reserve_s: float = 0.0,
        preparing: Preparing = Preparing.NEVER,
    ) -> None:
        """Not connected yet. Waits on it end `reserve_s` before `patience` does; without one they have no end."""
        self._dsn = dsn
        self._patience = patience
        self._reserve_s = reserve_s
        self._preparing = preparing
        self._connection: PatientConnection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        return self._connection is not None and not self._connection.closed

    def connection(self) -> PatientConnection:
        """The connection, opened if need be. Raises psycopg.Error."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(
                self._dsn, patience=self._patience, reserve_s=self._reserve_s, preparing=self._preparing
            )
        return self._connection

    def drop(self) -> None:
        """Close the connection; the next use opens another. Never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
