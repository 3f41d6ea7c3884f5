"""Sessions of probes: what was sent and what came back, by whom, word for word."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.conformance.fitness.deadline import NEVER, Deadline
from holdfast.conformance.fitness.model import ProbeAnswer, Statement
from holdfast.conformance.fitness.postgres.connecting import Connection, WaitedError, cause, inquiry_of

# A probe is one small row. A probe that takes this long waits for something that will not come.
STATEMENT_MS = 8000
LOCK_MS = 4000
# How much longer this side waits than the limit of the server: a function can catch what ends a statement, and go on.
GRACE_S = 3.0
# What a connection that is gone counts as; SQLSTATE class 08.
_GONE = "08006"
_SAVEPOINT = "holdfast_probe"


class Session:
    """One connection of one role. Every statement and its answer go to the listener, if there is one."""

    def __init__(self, label: str, role: str, dsn: str, deadline: Deadline = NEVER) -> None:
        """Connect. Raises psycopg.Error."""
        self.label = label
        self.role = role
        self._connection: psycopg.Connection[Any]
        limits = f"-c statement_timeout={STATEMENT_MS} -c lock_timeout={LOCK_MS}"
        options = f"{conninfo_to_dict(dsn).get('options') or ''} {limits}".strip()
        self._connection = Connection.reach(
            make_conninfo(dsn, options=options),
            purpose=f"the session of {role} ({label}) on the clone",
            longest=STATEMENT_MS / 1000 + GRACE_S,
            deadline=deadline,
        )

    @property
    def backend(self) -> int:
        """The process that serves it."""
        return self._connection.info.backend_pid

    def send(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Statement, ProbeAnswer]:
        """Send one statement and wait for what it says. An error is an answer; never raises."""
        statement = Statement(self.label, self.role, text, tuple(parameters))
        try:
            with psycopg.RawCursor(self._connection) as cursor:
                cursor.execute(text.encode(), statement.parameters or None)
                return statement, _answer(cursor)
        except psycopg.Error as error:
            return statement, _refusal(error)

    def begin(self) -> None:
        """See `Session` of all databases."""
        self.send("BEGIN")

    def rollback(self) -> None:
        """See `Session` of all databases."""
        with contextlib.suppress(psycopg.Error):
            self._connection.rollback()

    def close(self) -> None:
        """Close it. Never raises."""
        with contextlib.suppress(psycopg.Error):
            self._connection.close()


class Guest(Session):
    """A role on a connection that another role has opened, in its transaction: nothing that it does is committed."""

    def __init__(self, label: str, role: str, connection: psycopg.Connection[Any]) -> None:
        self.label = label
        self.role = role
        self._connection = connection

    def begin(self) -> None:
        """See `Session`."""
        self.send(f"SAVEPOINT {_SAVEPOINT}")

    def rollback(self) -> None:
        """See `Session`."""
        self.send(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        self.send(f"RELEASE SAVEPOINT {_SAVEPOINT}")

    def close(self) -> None:
        """No-op: the owner of the connection closes it."""


def _answer(cursor: psycopg.RawCursor[Any]) -> ProbeAnswer:
    if cursor.description is None:
        return ProbeAnswer(affected=max(cursor.rowcount, 0))
    names = [column.name for column in cursor.description]
    # Only what JSON has; anything else as the text that Python has for it.
    rows = (
        [each if each is None or isinstance(each, bool | int | str) else str(each) for each in row] for row in cursor
    )
    return ProbeAnswer(affected=cursor.rowcount, rows=tuple(dict(zip(names, row, strict=True)) for row in rows))


def _refusal(error: psycopg.Error) -> ProbeAnswer:
    said = error.diag.message_primary or (str(error) if isinstance(error, WaitedError) else "the connection was lost")
    said += cause(error) if inquiry_of(error) else ""
    return ProbeAnswer(sqlstate=error.sqlstate or _GONE, message=said, constraint=error.diag.constraint_name)
