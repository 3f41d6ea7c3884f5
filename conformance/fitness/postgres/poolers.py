"""Decides whether the other end is PostgreSQL itself, or a pooler that passes sessions from one client to the next.

What one client sets in the session of a pooler stays for others: they cannot write any more, or find no sequence.
`fitness` sets nothing outside of its transaction, but pg_dump does. So nothing is inspected through a pooler. What is
asked here sets nothing: each question is one SELECT of functions of PostgreSQL's own, which needs no search_path.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import psycopg

from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.conformance.fitness.target import Target

PURPOSE = "connecting, and asking whether a pooler is in between"
# One row of functions takes no time.
_ANSWER_S = 10.0
# The clocks of both sides run at one speed, but a server's may be set; so small a difference is no finding.
_CLOCK_S = 1.0
# A backend ends when it reads that its client has gone; on a busy machine that takes a while.
_GONE_S = 10.0
_POLL_S = 0.02
# The session of this connection. Functions instead of operators: they do not depend on the search_path in force.
_SELF = """
SELECT pg_catalog.pg_backend_pid(), pg_catalog.date_part('epoch', session.backend_start)::text,
       pg_catalog.date_part('epoch', pg_catalog.timestamptz_mi(pg_catalog.clock_timestamp(), session.backend_start)),
       pg_catalog.host(pg_catalog.inet_server_addr()), pg_catalog.current_setting('port')
  FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) session
"""
_OTHER = (
    "SELECT pg_catalog.date_part('epoch', session.backend_start)::text "
    "FROM pg_catalog.pg_stat_get_activity(%s::pg_catalog.int4) session"
)
# The answers of PgBouncer to `options` in the connection, and to statements in its own console.
_POOLERS_WORDS = ("unsupported startup parameter", "SHOW HELP")


@dataclass(frozen=True, slots=True)
class _Session:
    """The session of the server that answered, as the server says, and how old this side says that it can be.

    `given` is the number that was given to the client at its login; a server gives that of the backend.
    """

    given: int
    backend: int
    born: str
    age: float
    possible: float
    place: str


def must_be_direct(target: Target, deadline: Deadline) -> Target:
    """The same target, bound to the host that answered. Raises FitnessError behind a pooler, psycopg.Error otherwise.

    Three signs, each enough by itself: the number given at login is not that of the backend; the backend is older than
    this connection; it is still there after this connection was closed.
    """
    try:
        session, bound = _asked(target, deadline)
        if signs := list(_signs(session)):
            # One reading may be of a clock that was set, or of a machine that slept.
            session, bound = _asked(bound, deadline)
            signs = list(_signs(session))
        signs = signs or list(_outlives(bound, session, deadline))
    except psycopg.Error as error:
        if any(words in str(error) for words in _POOLERS_WORDS):
            raise _refused(target, target.first_line(error), "the server itself") from None
        raise
    if signs:
        raise _refused(target, "; ".join(signs), session.place)
    return bound


def _asked(target: Target, deadline: Deadline) -> tuple[_Session, Target]:
    began = time.monotonic()
    with closing(_reached(target, deadline)) as connection:
        row = connection.execute(_SELF).fetchone()
        possible = time.monotonic() - began
        if row is None:
            raise psycopg.OperationalError("the server does not know the session that it answers in")
        info = connection.info
        session = _Session(info.backend_pid, int(row[0]), row[1], float(row[2]), possible, _place(row[3], row[4]))
        # With several hosts each connection could reach another one.
        return session, target.bound(host=info.host, hostaddr=info.hostaddr, port=info.port)


def _signs(session: _Session) -> Iterator[str]:
    if session.given != session.backend:
        yield f"the session was given the number {session.given} at login, and is served by process {session.backend}"
    if session.age > session.possible + _CLOCK_S:
        yield (
            f"the session was there {session.age:.0f} s ago, and this connection was asked for "
            f"{session.possible:.1f} s ago"
        )


def _outlives(target: Target, session: _Session, deadline: Deadline) -> Iterator[str]:
    """Whether the session of a connection that was closed serves the next one, or waits for it."""
    patience = Deadline.after(deadline.left(_GONE_S))
    with closing(_reached(target, deadline)) as connection:
        while True:
            found = connection.execute(_OTHER, (session.backend,)).fetchone()
            if found is None or found[0] != session.born:
                return
            row = connection.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
            if row == (session.backend,):
                yield f"process {session.backend} served a connection that was closed, and serves the next one"
                return
            if not patience.left():
                yield f"process {session.backend} is still there {_GONE_S:g} s after its connection was closed"
                return
            time.sleep(_POLL_S)


def _reached(target: Target, deadline: Deadline) -> Connection:
    return Connection.reach(target.dsn, purpose=PURPOSE, longest=_ANSWER_S, deadline=deadline)


def _place(host: str | None, port: str) -> str:
    """Where the server itself listens, as the server says."""
    return f"port {port} of {host}" if host is not None else f"the Unix socket of the server's machine, port {port}"


def _refused(target: Target, why: str, place: str) -> FitnessError:
    return FitnessError(
        f"{target.described}: a connection pooler answers here, such as PgBouncer, and not PostgreSQL itself ({why}). "
        "What pg_dump sets for its session would stay for the pool's other clients. Nothing was set and nothing was "
        f"looked at; give the address of {place if place.startswith('the server') else f'the server itself: {place}'}"
    )
