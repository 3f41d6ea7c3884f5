"""Finds the sessions that block a waiting statement: on a connection of its own, as far as the role may read.

Afterwards it cannot be known: the error of a lock that did not come names neither the relation nor the holder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
from psycopg.rows import dict_row

from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.postgres.connecting import Connection, WaitedError, inquiry_of
from holdfast.conformance.fitness.target import Target

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
