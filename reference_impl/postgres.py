"""Connections to PostgreSQL, for every contract that stores there: reconnecting, bounded in time, silent on secrets."""

from __future__ import annotations

import contextlib
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from reference_impl.postgres_pipeline import Pipeline

Connection = psycopg.Connection[tuple[object, ...]]

# A server that lost a backend restarts all of them and answers "in recovery mode" meanwhile; an operation has 2 s.
RECOVERY_WAIT_S = 1.2
_RECOVERING = ("recovery mode", "starting up", "not yet accepting", "shutting down")
_POLL_S = 0.02
# libpq knows no shorter one.
_CONNECT_TIMEOUT_S = 2


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
    return f"database {parts.get('dbname', '(default)')!r} at {parts.get('host', 'the default host')!r}"


def connect(dsn: str, *, patience_s: float = RECOVERY_WAIT_S) -> Connection:
    """A new autocommit connection; waits a bounded time for a server that recovers. Raises psycopg.Error."""
    deadline = time.monotonic() + patience_s
    dsn = make_conninfo(dsn, connect_timeout=_CONNECT_TIMEOUT_S)
    while True:
        try:
            # psycopg prepares nothing by itself: at a ROLLBACK it would DEALLOCATE ALL, and the pipeline's with it.
            return psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline or not any(words in str(error) for words in _RECOVERING):
                raise
        time.sleep(_POLL_S)


class Link:
    """One connection, opened when first used and again after it was lost."""

    def __init__(self, dsn: str, *, patience_s: float = RECOVERY_WAIT_S) -> None:
        self._dsn = dsn
        self._patience_s = patience_s
        self._connection: Connection | None = None
        self._pipeline: Pipeline | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        return self._connection is not None and not self._connection.closed

    def connection(self) -> Connection:
        """The connection, opened if need be. Raises psycopg.Error."""
        if self._connection is None or self._connection.closed:
            self._pipeline = None
            self._connection = connect(self._dsn, patience_s=self._patience_s)
        return self._connection

    def pipeline(self) -> Pipeline:
        """The pipeline of the connection, which is opened if need be. Raises psycopg.Error."""
        connection = self.connection()
        if self._pipeline is None:
            self._pipeline = Pipeline(connection)
        return self._pipeline

    def drop(self) -> None:
        """Close the connection; the next use opens another. Never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
