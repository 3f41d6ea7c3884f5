"""The probe on the live tables, on request: one transaction, which is always rolled back.

A rollback does not undo values taken from sequences, and what functions do outside the database. While it lasts, it
holds locks on rows of its own. A session that inserts the same keys waits for it; no other session has such keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg import sql

from holdfast.conformance.fitness.criteria.judging import LIVE
from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, Snapshot, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.blockers import inquirer
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.conformance.fitness.postgres.ground import PostgresGround
from holdfast.conformance.fitness.postgres.sessions import GRACE_S, Guest
from holdfast.conformance.fitness.target import Target
from holdfast.conformance.fitness.trying.admission import admission
from holdfast.conformance.fitness.trying.building import ProbeBuilder, first_number
from holdfast.conformance.fitness.trying.rows import RowError
from holdfast.conformance.fitness.trying.tampering import gentle

# No session is kept waiting for longer.
_STATEMENT_MS, _LOCK_MS = 2000, 500
# Early enough to ask for the holder of a lock while the probe waits for it.
_SLOW_S = 0.2
# Asked on a connection of its own, of a server that may not answer.
_END_S = 3.0
_TERMINATE = "SELECT pg_catalog.pg_terminate_backend(%s::pg_catalog.int4)"


def live_connection(target: Target, deadline: Deadline) -> Connection:
    """A connection for the probe. Raises psycopg.Error.

    A function of the database can catch the end of a statement and continue, with the locks that the probe has. Then
    the session is ended from outside, as its own role may; no function catches that.
    """

    def end(stuck: Connection) -> None:
        limit = Deadline.after(deadline.left(_END_S))
        with (
            suppress(psycopg.Error),
            closing(
                Connection.reach(target.dsn, purpose="ending the live probe", longest=_END_S, deadline=limit)
            ) as other,
        ):
            other.execute(_TERMINATE, (stuck.info.backend_pid,))

    made = Connection.reach(
        target.dsn,
        purpose="the probe on the live tables",
        longest=_STATEMENT_MS / 1000 + GRACE_S,
        deadline=deadline,
        slow=_SLOW_S,
        inquire=inquirer(target, deadline),
    )
    made.end = end
    return made


def probe_live(
    connection: psycopg.Connection[Any],
    surface: Surface,
    snapshot: Snapshot,
    policy: Policy,
) -> tuple[Probe, ...]:
    """The probes within a transaction on the live tables, as the writer. Nothing of them stays.

    The connection is a login of the writer (`gather` sees to that). Raises psycopg.Error if the connection is lost.
    """
    if surface.writer is None:
        return (_failed("no writer is named"),)
    made: list[Probe] = []
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(f"SET LOCAL statement_timeout = {_STATEMENT_MS}")
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(surface.writer)))
            for probe in _probes(PostgresGround(connection, snapshot), connection, surface, policy, surface.writer):
                made.append(probe)  # noqa: PERF402 - what was made before an error counts
    except (RowError, psycopg.errors.InsufficientPrivilege) as error:
        made.append(_failed(f"the probes could not go on: {error}"))
    return tuple(made)


def _probes(
    ground: PostgresGround, connection: psycopg.Connection[Any], surface: Surface, policy: Policy, writer: str
) -> Iterator[Probe]:
    session = Guest("live", writer, connection)
    builder = ProbeBuilder(
        ground, surface, policy, helper=session, evidence=EvidenceClass.LIVE, prefix=LIVE, first=first_number()
    )
    first, attempt = builder.fresh(), builder.attempt("first")
    session.begin()
    answer = builder.put(attempt, session, first)
    yield attempt.done()
    if answer.sqlstate is not None:
        return
    yield from admission(builder, session, first)
    yield from gentle(builder, session, first)
    text, values = builder.count({"effect": (Part.EFFECT, first), "nonce": (Part.NONCE, first)})
    session.rollback()
    attempt = builder.attempt("rollback")
    attempt.send(session, text, values)
    yield attempt.done()


def _failed(reason: str) -> Probe:
    return Probe(f"{LIVE}first", EvidenceClass.LIVE, (), (), reason)
