"""The probes on the clone, by the roles themselves, and on request those on the live tables.

The latter are one transaction, which is always rolled back. A rollback does not undo values taken from sequences, and
what functions do outside the database. While it lasts, it holds locks on rows of its own. A session that inserts the
same keys waits for it; no other session has such keys.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from holdfast.conformance.fitness.criteria.judging import LIVE, NOT_SERIALIZED, THERE
from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import (
    SUFFIX,
    EvidenceClass,
    Part,
    Probe,
    ProbeAnswer,
    RelationName,
    Snapshot,
    Statement,
    Surface,
)
from holdfast.conformance.fitness.policy import CONTRACT, Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.connecting import GRACE_S, Connection, Guest, Session, inquirer
from holdfast.conformance.fitness.postgres.scratch import RECOVERY_S
from holdfast.conformance.fitness.postgres.snapshot import read
from holdfast.conformance.fitness.target import Target
from holdfast.conformance.fitness.trying.rows import (
    Attempt,
    Insert,
    Parameters,
    ProbeBuilder,
    RowError,
    Sample,
    first_number,
    gone,
    quoted,
    rolled_back,
)
from holdfast.conformance.fitness.trying.tampering import gentle
from holdfast.conformance.fitness.trying.trials import NOT_ADMITTED, admission, left, races, trials, until_it_fails
from holdfast.conformance.fitness.trying.values import NEEDED, Table, table_of
from holdfast.specs.fitness import load_queries


class PostgresGround:
    """Implements `Ground`. What the snapshot does not hold is read, with the same queries."""

    in_files = False

    def __init__(self, connection: psycopg.Connection[Any], snapshot: Snapshot) -> None:
        self._connection = connection
        self._catalogue = Catalogue(snapshot)

    def table(self, relation: RelationName) -> Table | None:
        """See `Ground`. Raises psycopg.Error."""
        if (found := table_of(self._catalogue, relation)) is not None:
            return found
        with self._connection.transaction(force_rollback=True):
            for setting in load_queries(CONTRACT).settings:
                self._connection.execute(setting)
            named = [(relation.schema, relation.name)]
            return table_of(Catalogue(read(self._connection, named, None, only=NEEDED)), relation)

    def refusal(self, rows: Sequence[Insert]) -> str:
        """See `Ground`."""
        try:
            with (
                self._connection.transaction(force_rollback=True),
                psycopg.RawCursor(self._connection) as cursor,
            ):
                for insert in rows:
                    cursor.execute(insert.text().encode(), insert.parameters)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            said = error.diag
            about = ".".join(filter(None, (said.schema_name, said.table_name, said.column_name)))
            return f"{error.sqlstate}: {said.message_primary}{f' ({about})' if about else ''}"
        return ""

    def text(self, relation: RelationName) -> str:
        """With its schema: a name alone may mean a temporary table."""
        return f"{quoted(relation.schema)}.{quoted(relation.name)}"


def probe_clone(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> tuple[Probe, ...]:
    """Everything that can be tried on the clone of `surface`: the statements and their answers.

    Without a writer the owner of the effect acts in its place, and a probe that only a writer can pass has failed.
    """
    return tuple(until_it_fails(_probes(clone, surface, snapshot, policy)))


def _probes(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> Iterator[Probe]:
    with closing(clone.scratch.connect(clone.dsn)) as connection, ExitStack() as stack:
        helper = stack.enter_context(clone.opened(("helper", clone.scratch.superuser)))[0]
        ground = PostgresGround(connection, snapshot)
        builder = ProbeBuilder(ground, surface, policy, helper=helper, evidence=EvidenceClass.CLONE)
        writer = surface.writer or builder.table(Part.EFFECT).owner
        session = stack.enter_context(clone.opened(("writer", writer)))[0]

        def rest(first: Sample) -> Iterator[Probe]:
            yield from _strangers(builder, clone, helper)
            with clone.opened(("one", writer), ("two", writer)) as (one, two):
                race = partial(_race, builder, one, two, helper)
                kill = partial(_killed, builder, clone, one, helper, first)
                yield from races(builder, race, kill, one, two, helper)

        yield from trials(builder, clone, surface, writer, session, rest)


def _strangers(builder: ProbeBuilder, clone: Clone, helper: Session) -> Iterator[Probe]:
    with clone.opened(("stranger", clone.stranger)) as (stranger,):
        for part in (*builder.order, *builder.audit):
            attempt, sample = builder.attempt(f"stranger-insert{SUFFIX[part]}"), builder.fresh()
            # The rows that the row refers to are there, so that only the right to insert can be missing.
            for before in builder.before(part):
                builder.send(attempt, helper, builder.insert(before, sample), sample)
            with rolled_back(stranger):
                builder.send(attempt, stranger, builder.insert(part, sample), sample)
            yield attempt.done()


# How long the second session may need to run into the first.
_MEET_S = 2.0
_POLL_S = 0.002
_BLOCKED = "SELECT $1::int = ANY (pg_catalog.pg_blocking_pids($2::int)) AS waits"


def _race(
    builder: ProbeBuilder,
    winner: Session,
    loser: Session,
    helper: Session,
    part: Part,
    word: str,
    ends: str,
    suffix: str,
    attempt: Attempt,
) -> str:
    one = builder.fresh()
    two = builder.like(one, word)
    with rolled_back(winner, loser), ThreadPoolExecutor(1) as aside:
        if builder.put(attempt, winner, one, upto=part).sqlstate is not None:
            return NOT_ADMITTED
        for before in builder.before(part):
            builder.send(attempt, loser, builder.insert(before, two), two)
        insert = builder.insert(part, two)
        builder.prepare(attempt, insert, two, helper)
        waiting = aside.submit(loser.send, insert.text(suffix), insert.parameters)
        # Whether the second session waited for the first, as an inspection showed.
        deadline, met = time.monotonic() + _MEET_S, False
        while not met:
            statement, answer = helper.send(_BLOCKED, (winner.backend, loser.backend))
            met = bool(answer.rows and answer.rows[0]["waits"])
            if waiting.done() or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        attempt.keep(statement, answer)
        attempt.send(winner, ends)
        statement, answer = waiting.result()
        if answer.sqlstate == NOT_SERIALIZED:
            # It is the loser's answer that counts, so that the rows are reported before it.
            attempt.send(helper, *builder.count({THERE: (part, one)}))
        attempt.keep(statement, answer)
        if answer.sqlstate is None:
            # A constraint that answers only at the commit answers too late, but that is an answer nevertheless.
            loser.send("COMMIT")
    return "" if met or answer.sqlstate is None else "the sessions did not meet"


def _killed(
    builder: ProbeBuilder, clone: Clone, session: Session, helper: Session, first: Sample, attempt: Attempt
) -> str:
    """SIGKILL between insert and commit: the server restarts, and only committed rows are there."""
    sample = builder.fresh()
    session.begin()
    if builder.put(attempt, session, sample).sqlstate is not None:
        session.rollback()
        return NOT_ADMITTED
    os.kill(session.backend, signal.SIGKILL)
    # Too late: there is no listener.
    session.send("COMMIT")
    statement, answer = _after_recovery(helper, clone, *left(builder, sample, first))
    attempt.keep(statement, answer)
    return ""


def _after_recovery(helper: Session, clone: Clone, text: str, parameters: Parameters) -> tuple[Statement, ProbeAnswer]:
    """The answer of a new session of the superuser, after the old ones are gone. Raises psycopg.Error."""
    deadline = time.monotonic() + RECOVERY_S
    # While this session answers, the server has not noticed the kill yet.
    while helper.send("SELECT 1")[1].sqlstate is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    while True:
        try:
            with clone.opened(("helper", clone.scratch.superuser)) as (fresh,):
                statement, answer = fresh.send(text, parameters)
        except LostError:
            if time.monotonic() > deadline:
                raise
        else:
            if not gone(answer) or time.monotonic() > deadline:
                return statement, answer
        time.sleep(_POLL_S)


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
            for probe in _live_probes(
                PostgresGround(connection, snapshot), connection, surface, policy, surface.writer
            ):
                made.append(probe)  # noqa: PERF402 - what was made before an error counts
    except (RowError, psycopg.errors.InsufficientPrivilege) as error:
        made.append(_failed(f"the probes could not go on: {error}"))
    return tuple(made)


def _live_probes(
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
