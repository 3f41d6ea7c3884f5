"""Two sessions for one key, a backend that is killed, and an audit record that outlives its subject."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from holdfast.conformance.fitness.criteria.judging import NOT_SERIALIZED, THERE
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import Part, Probe, ProbeAnswer, Statement
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.scratch import RECOVERY_S
from holdfast.conformance.fitness.postgres.sessions import Session
from holdfast.conformance.fitness.trying.building import ProbeBuilder, rolled_back
from holdfast.conformance.fitness.trying.races import NOT_ADMITTED, left
from holdfast.conformance.fitness.trying.races import races as all_races
from holdfast.conformance.fitness.trying.rows import Parameters, Sample
from holdfast.conformance.fitness.trying.sessions import Attempt, gone

# How long the second session may need to run into the first.
_MEET_S = 2.0
_POLL_S = 0.002
_BLOCKED = "SELECT $1::int = ANY (pg_catalog.pg_blocking_pids($2::int)) AS waits"


def races(builder: ProbeBuilder, clone: Clone, writer: str, helper: Session, first: Sample) -> Iterator[Probe]:
    """All of them. The last one makes the server restart, so that every other session is gone."""
    with clone.opened(("one", writer), ("two", writer)) as (one, two):
        race = partial(_race, builder, one, two, helper)
        yield from all_races(builder, race, partial(_killed, builder, clone, one, helper, first), one, two, helper)


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
