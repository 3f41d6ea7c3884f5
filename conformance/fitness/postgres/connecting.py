"""Connections that never wait without end: this side keeps the time, even if the server does nothing.

A stopped server, a network that drops everything, a function that continues after its time: the limits of the server
itself end none of these waits. Who is in the way of a statement is asked while it waits, on a connection of its own, as
far as the role may read. Afterwards it cannot be known: the error of a lock that did not come names neither the
relation nor the holder.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import closing, suppress
from threading import Thread
from typing import Any, Self, TypeVar

import psycopg
from psycopg import capabilities, waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from holdfast.conformance.fitness.deadline import NEVER, Deadline
from holdfast.conformance.fitness.model import ProbeAnswer, Statement
from holdfast.conformance.fitness.target import Target

# For one host that is down, or behind a firewall that drops everything.
_HOST_S = 10
# For names that no server resolves; in addition to the time for the hosts themselves.
_NAMES_S = 5.0
# A request to cancel needs a connection of its own, to a server that may be the one that does not answer.
_CANCEL_S = 2.0
_POLL_S = 0.1
# How long a statement of the catalogue may take before the harness asks who is in its way, and how often it asks.
SLOW_S = 2.0

_T = TypeVar("_T")


class WaitedError(psycopg.OperationalError):
    """There was no answer in time, and the connection is closed. The text says which wait it was."""


def inquiry_of(error: BaseException) -> str:
    """Who was in the way of the statement that ended with this error; empty if none is known."""
    return "; ".join(getattr(error, "__notes__", ()))


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose every wait ends: after `longest` seconds, and at the deadline.

    `purpose` says what it is for, in the words of an error. `inquire` is called every `slow` seconds while a statement
    is waited for; what it said last is a note of the error that the statement ends with (`inquiry_of`).
    """

    purpose = "the conversation with the server"
    longest = _HOST_S * 1.0
    deadline = NEVER
    slow = SLOW_S
    inquire: Callable[[Connection], str] | None = None
    # What is done about a statement that cannot be cancelled, before the connection is closed.
    end: Callable[[Connection], None] | None = None

    def wait(self, gen: PQGen[_T], interval: float = _POLL_S, timeout: float | None = None) -> _T:
        """See `psycopg.Connection`: everything that is sent or received passes here. Raises WaitedError."""
        longest = self.deadline.left(self.longest if timeout is None else min(timeout, self.longest))
        inquiries: list[str] = []
        try:
            return waiting.wait(self._watched(gen, longest, inquiries), self.pgconn.socket, min(interval, _POLL_S))
        except (psycopg.Error, KeyboardInterrupt) as error:
            if inquiries:
                error.add_note(inquiries[-1])
            if not isinstance(error, psycopg.Error) or isinstance(error, WaitedError):
                self._give_up()
            raise

    def _watched(self, gen: PQGen[_T], longest: float, inquiries: list[str]) -> PQGen[_T]:
        """The same generator, with a check of the time after each event and each pause."""
        began = time.monotonic()
        ask_at = began + self.slow
        try:
            state = next(gen)
            while True:
                ready = yield state
                state = gen.send(ready)
                now = time.monotonic()
                if now >= began + longest:
                    over = " (the time of --timeout is over)" if not self.deadline.left() else ""
                    raise WaitedError(f"{self.purpose}: no answer within {longest:.3g} s{over}")
                if self.inquire is not None and now >= ask_at:
                    # A holder that was in the way before counts, too, if none is any more.
                    inquiries += filter(None, [self.inquire(self)])
                    ask_at = time.monotonic() + self.slow
        except StopIteration as end:
            value: _T = end.value
            return value

    def _give_up(self) -> None:
        """End the statement, for which no caller waits, and then the connection. Never raises."""
        if capabilities.has_cancel_safe():
            # Older clients can only send a cancel without a limit; they leave it to the server's own.
            with suppress(psycopg.Error, OSError):
                self.cancel_safe(timeout=_CANCEL_S)
        if self.end is not None:
            self.end(self)
        with suppress(psycopg.Error, OSError):
            self.close()

    @classmethod
    def reach(
        cls,
        dsn: str,
        *,
        purpose: str,
        longest: float,
        deadline: Deadline,
        slow: float = SLOW_S,
        inquire: Callable[[Connection], str] | None = None,
    ) -> Self:
        """Connect; each statement is a transaction of its own. Nothing is set for the session.

        Raises psycopg.Error; WaitedError if no host answers in time.
        """
        hosts = str(conninfo_to_dict(dsn).get("host") or "").count(",") + 1
        patience = deadline.left(hosts * _HOST_S + _NAMES_S)
        if not patience:
            raise WaitedError(f"{purpose}: no time was left for it (--timeout)")
        # Names are resolved, and tickets are fetched, in calls that cannot be interrupted: in a thread, which is left
        # to itself if it does not come back.
        coming: Future[Self] = Future()
        Thread(target=_connected, args=(cls, dsn, min(_HOST_S, patience), coming), daemon=True).start()
        try:
            made = coming.result(timeout=patience)
        except FutureTimeoutError:
            coming.add_done_callback(_close)
            raise WaitedError(f"{purpose}: no connection within {patience:.3g} s") from None
        except psycopg.errors.ConnectionTimeout as error:
            raise WaitedError(f"{purpose}: no connection within {patience:.3g} s ({error})") from None
        except KeyboardInterrupt:
            coming.add_done_callback(_close)
            raise
        made.purpose, made.longest, made.deadline = purpose, longest, deadline
        made.slow, made.inquire = slow, inquire
        return made


def _connected(kind: type[Connection], dsn: str, limit: float, coming: Future[Any]) -> None:
    try:
        # No statement is prepared under a name: behind a pooler it would stay in another client's session.
        coming.set_result(
            kind.connect(dsn, autocommit=True, prepare_threshold=None, connect_timeout=max(2, round(limit)))
        )
    except BaseException as error:
        coming.set_exception(error)


def _close(coming: Future[Any]) -> None:
    """No caller wants it any more."""
    if coming.exception() is None:
        coming.result().close()


# The search for the reason of a wait is short.
_LONGEST_S = 3.0
_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
    "SET LOCAL search_path = pg_catalog, pg_temp",
    "SET LOCAL statement_timeout = '2s'",
    "SET LOCAL lock_timeout = '1s'",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
)
# Process 0 stands for a prepared transaction, which has no process.
_WAITS = """
SELECT w.locktype AS kind, w.relation::regclass::text AS relation, w.mode, b.pid, a.usename AS role,
       a.application_name AS application, a.state, date_trunc('second', a.xact_start)::text AS since, a.query,
       (SELECT string_agg(DISTINCT t.relation::regclass::text, ', ') FROM pg_locks t
         WHERE t.pid = w.pid AND t.locktype = 'tuple' AND t.relation IS NOT NULL) AS row_of
  FROM pg_locks w
 CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) b (pid)
  LEFT JOIN pg_stat_activity a ON a.pid = b.pid
 WHERE NOT w.granted AND {who}
 ORDER BY b.pid
"""
_BY_PROCESS = _WAITS.format(who="w.pid = %s")
_BY_NAME = _WAITS.format(who="w.pid IN (SELECT pid FROM pg_stat_activity WHERE application_name = %s)")
_SHOWN = 3
# Quoted parts of statements hold secrets; their first words hold none.
_FIRST_WORDS = re.compile(r"\s*([A-Za-z_][\w.]*(?:\s+[A-Za-z_][\w.]*){0,3})")

_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected, WaitedError)


def inquirer(target: Target, deadline: Deadline) -> Callable[[Connection], str]:
    """For `Connection.inquire`: the sessions that block its statement."""
    return lambda waiting: holders(target, deadline, _BY_PROCESS, waiting.info.backend_pid)


def holders_of_program(target: Target, deadline: Deadline, application: str) -> str:
    """The same for a program that calls itself `application`."""
    return holders(target, deadline, _BY_NAME, application)


def holders(target: Target, deadline: Deadline, query: str, who: int | str) -> str:
    """What it waits for and who holds that, in words; empty if there is no holder or none is known. Never raises."""
    try:
        with (
            closing(
                Connection.reach(
                    target.dsn,
                    purpose="asking who holds a lock",
                    longest=_LONGEST_S,
                    deadline=Deadline.after(deadline.left(_LONGEST_S)),
                )
            ) as connection,
            connection.transaction(force_rollback=True),
        ):
            for setting in _SETTINGS:
                connection.execute(setting)
            with connection.cursor(row_factory=dict_row) as cursor:
                rows = cursor.execute(query.encode(), (who,)).fetchall()
    except psycopg.Error:
        return ""
    return target.scrubbed(" ".join("; ".join(_described(rows)).split()))


def cause(error: psycopg.Error) -> str:
    """What the user can do about an error of locks or time, with its known cause; empty for any other error."""
    if not isinstance(error, _BUSY):
        return ""
    if isinstance(error, psycopg.errors.DeadlockDetected):
        known = " ".join((error.diag.message_detail or "").split())
        return f"; {known or 'the server said no more'}; look again when the catalogue does not change"
    if inquiry := inquiry_of(error):
        return f"; {inquiry}; look again when that transaction is over, or ask its owner to end it"
    why = "" if isinstance(error, WaitedError) else "no session was seen to be in its way: "
    return (
        f"; {why}the server is stopped, overloaded or out of reach, or the network swallows what it sends; look again "
        "later, or with a longer --timeout"
    )


def _described(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in rows[:_SHOWN]:
        if row["relation"] is not None:
            what = f"{row['relation']} ({row['mode']})"
        elif row["row_of"]:
            what = f"a row of {row['row_of']}"
        else:
            what = f"the end of a transaction (a lock of the kind {row['kind']})"
        yield f"it waits for {what}, and in its way is {_who(row)}"
    if len(rows) > _SHOWN:
        yield f"and {len(rows) - _SHOWN} more"


def _who(row: dict[str, Any]) -> str:
    if not row["pid"]:
        return "a prepared transaction (pg_prepared_xacts says which)"
    who = f"process {row['pid']} of role {row['role']!r}"
    if row["application"]:
        who += f", application {row['application']!r}"
    if row["since"]:
        who += f", {row['state'] or 'at work'}, whose transaction began at {row['since']}"
    words = _FIRST_WORDS.match(row["query"] or "")
    if words and row["since"]:
        who += f", and whose last statement begins with {' '.join(words[1].split())!r}"
    return who if row["since"] else f"{who} (this role may not see what it does)"


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
