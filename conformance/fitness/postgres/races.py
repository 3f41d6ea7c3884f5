"""Two sessions for one key, a backend that is killed, and an audit record that outlives its subject."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg

from holdfast.conformance.fitness.criteria.judging import NOT_SERIALIZED, THERE
from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, ProbeAnswer, Statement
from holdfast.conformance.fitness.policy import NONCE
from holdfast.conformance.fitness.postgres.building import KEY, ProbeBuilder, rolled_back
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.rows import RowError, Sample
from holdfast.conformance.fitness.postgres.scratch import RECOVERY_S
from holdfast.conformance.fitness.postgres.sessions import Attempt, Session, gone

# How long the second session may need to run into the first.
_MEET_S = 2.0
_POLL_S = 0.002
_ARBITER = "race-arbiter"
_NOT_ADMITTED = "a fresh row was not admitted, so that nothing can be undone or lost"
_BLOCKED = "SELECT $1::int = ANY (pg_catalog.pg_blocking_pids($2::int)) AS waits"


# Two rows that are equal in a word: the first is inserted, the second waits, and then the first one ends.
_RACES = (
    ("race", Part.EFFECT, KEY, "COMMIT"),
    ("race-after-rollback", Part.EFFECT, KEY, "ROLLBACK"),
    (_ARBITER, Part.EFFECT, KEY, "COMMIT"),
    ("race-nonce", Part.NONCE, NONCE, "COMMIT"),
)


def races(builder: ProbeBuilder, clone: Clone, writer: str, first: Sample) -> Iterator[Probe]:
    """All of them. The last one makes the server restart, so that every other session is gone."""
    with clone.opened(("one", writer), ("two", writer)) as (one, two):
        for name, part, word, ends in _RACES:
            suffix = builder.conflict(word) if name == _ARBITER else ""
            race = partial(_race, builder, one, two, part, word, ends, suffix)
            yield _tried(builder, name, builder.lacks(part, word), race)
        yield _tried(builder, "rollback", "", partial(_rollback, builder, one))
        reason = "" if builder.audit else "there is no audit relation of its own"
        yield _tried(builder, "audit-survives", reason, partial(_audit, builder, one, two))
        yield _tried(builder, "killed", "", partial(_killed, builder, clone, one, first))


def _tried(builder: ProbeBuilder, name: str, reason: str, run: Callable[[Attempt], str]) -> Probe:
    """Run a probe; the probe says why it failed, if it did."""
    attempt = builder.attempt(name, evidence=EvidenceClass.CONCURRENCY)
    try:
        reason = reason or run(attempt)
    except (RowError, psycopg.Error) as error:
        reason = f"{type(error).__name__}: {error}"
    return attempt.done(reason)


def _race(
    builder: ProbeBuilder,
    winner: Session,
    loser: Session,
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
            return _NOT_ADMITTED
        for before in builder.before(part):
            builder.send(attempt, loser, builder.insert(before, two), two)
        insert = builder.insert(part, two)
        builder.prepare(attempt, insert, two)
        waiting = aside.submit(loser.send, insert.text(suffix), insert.parameters)
        # Whether the second session waited for the first, as an inspection showed.
        deadline, met = time.monotonic() + _MEET_S, False
        while not met:
            statement, answer = builder.helper.send(_BLOCKED, (winner.backend, loser.backend))
            met = bool(answer.rows and answer.rows[0]["waits"])
            if waiting.done() or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        attempt.keep(statement, answer)
        attempt.send(winner, ends)
        statement, answer = waiting.result()
        if answer.sqlstate == NOT_SERIALIZED:
            # It is the loser's answer that counts, so that the rows are reported before it.
            attempt.send(builder.helper, *builder.count({THERE: (part, one)}))
        attempt.keep(statement, answer)
        if answer.sqlstate is None:
            # A constraint that answers only at the commit answers too late, but that is an answer nevertheless.
            loser.send("COMMIT")
    return "" if met or answer.sqlstate is None else "the sessions did not meet"


def _rollback(builder: ProbeBuilder, session: Session, attempt: Attempt) -> str:
    sample = builder.fresh()
    with rolled_back(session):
        if builder.put(attempt, session, sample).sqlstate is not None:
            return _NOT_ADMITTED
        attempt.send(session, "ROLLBACK")
    text, values = builder.count({"effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample)})
    attempt.send(builder.helper, text, values)
    return ""


def _audit(builder: ProbeBuilder, session: Session, auditor: Session, attempt: Attempt) -> str:
    """Recorded by another session while the transaction is open, and found after it was rolled back."""
    sample = builder.fresh()
    # Values that the server makes up do not identify a record, and all else may be equal in two of them.
    statement, answer = builder.helper.send(*builder.count({"audit": (Part.AUDIT, sample)}))
    attempt.keep(statement, answer)
    if answer.sqlstate is not None:
        return f"the records of the audit cannot be counted: {answer.sqlstate} {answer.message}"
    with rolled_back(session):
        if builder.put(attempt, session, sample).sqlstate is not None:
            return _NOT_ADMITTED
        builder.send(attempt, auditor, builder.insert(Part.AUDIT, sample), sample)
        attempt.send(session, "ROLLBACK")
    wanted = {"audit": (Part.AUDIT, sample), "effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample)}
    text, values = builder.count(wanted, before={"audit": answer.rows[0]["audit"]})
    attempt.send(builder.helper, text, values)
    return ""


def _killed(builder: ProbeBuilder, clone: Clone, session: Session, first: Sample, attempt: Attempt) -> str:
    """SIGKILL between insert and commit: the server restarts, and only committed rows are there."""
    sample = builder.fresh()
    session.begin()
    if builder.put(attempt, session, sample).sqlstate is not None:
        session.rollback()
        return _NOT_ADMITTED
    os.kill(session.backend, signal.SIGKILL)
    # Too late: there is no listener.
    session.send("COMMIT")
    wanted = {"effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample), "committed": (Part.EFFECT, first)}
    statement, answer = _after_recovery(builder, clone, *builder.count(wanted))
    attempt.keep(statement, answer)
    return ""


def _after_recovery(
    builder: ProbeBuilder, clone: Clone, text: str, parameters: tuple[str | None, ...]
) -> tuple[Statement, ProbeAnswer]:
    """The answer of a new session of the superuser, after the old ones are gone. Raises psycopg.Error."""
    deadline = time.monotonic() + RECOVERY_S
    # While this session answers, the server has not noticed the kill yet.
    while builder.helper.send("SELECT 1")[1].sqlstate is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    while True:
        try:
            with clone.opened(("helper", clone.scratch.superuser)) as (helper,):
                statement, answer = helper.send(text, parameters)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
        else:
            if not gone(answer) or time.monotonic() > deadline:
                return statement, answer
        time.sleep(_POLL_S)
