"""All trials on a copy in their order, and what several sessions do at a time, in every database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import psycopg

from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, Surface
from holdfast.conformance.fitness.policy import NONCE
from holdfast.conformance.fitness.trying.admission import admission, consumed, read_back
from holdfast.conformance.fitness.trying.rows import (
    KEY,
    Attempt,
    Copy,
    Parameters,
    ProbeBuilder,
    RowError,
    Sample,
    Session,
    rolled_back,
)
from holdfast.conformance.fitness.trying.tampering import tampering

_ARBITER = "race-arbiter"
NOT_ADMITTED = "a fresh row was not admitted, so that nothing can be undone or lost"
# Two rows that are equal in a word: the first is inserted, the second waits, and then the first one ends.
_RACES = (
    ("race", Part.EFFECT, KEY, "COMMIT"),
    ("race-after-rollback", Part.EFFECT, KEY, "ROLLBACK"),
    (_ARBITER, Part.EFFECT, KEY, "COMMIT"),
    ("race-nonce", Part.NONCE, NONCE, "COMMIT"),
)


def trials(
    builder: ProbeBuilder,
    copy: Copy,
    surface: Surface,
    writer: str,
    session: Session,
    rest: Callable[[Sample], Iterator[Probe]],
) -> Iterator[Probe]:
    """Everything that is tried on a copy by a session of its writer; the `rest` at the end, beside the first row."""
    first = builder.fresh()
    admitted = consumed(builder, session, first)
    yield admitted
    if any(answer.sqlstate is not None for answer in admitted.answers):
        return
    yield from admission(builder, session, first)
    yield read_back(builder, copy, writer, first)
    # Rows of the audit are learnt here.
    yield from tampering(builder, copy, surface, first)
    yield from rest(first)


def until_it_fails(probes: Iterator[Probe]) -> Iterator[Probe]:
    """Probes as they come. What was made before an error counts, and the error is a probe that failed."""
    name = "first"
    try:
        for probe in probes:
            yield probe
            name = "rest"
    except (RowError, LostError, psycopg.Error) as error:
        yield Probe(name, EvidenceClass.CLONE, (), (), f"the probes could not go on: {error}")


class Race(Protocol):
    """Two sessions for one value of a word of a part; says why it could not be run."""

    def __call__(self, part: Part, word: str, ends: str, suffix: str, attempt: Attempt) -> str:
        """The first one `ends` while the second one waits, whose INSERT has a `suffix`."""


def races(
    builder: ProbeBuilder, race: Race, kill: Callable[[Attempt], str], one: Session, two: Session, reader: Session
) -> Iterator[Probe]:
    """All of them. The last one kills a session; after that every other one may be gone."""
    for name, part, word, ends in _RACES:
        suffix = builder.conflict(word) if name == _ARBITER else ""
        yield _tried(builder, name, builder.lacks(part, word), partial(race, part, word, ends, suffix))
    yield _tried(builder, "rollback", "", partial(_undone, builder, one, reader))
    why = "" if builder.audit else "there is no audit relation of its own"
    yield _tried(builder, "audit-survives", why, partial(_outlived, builder, one, two, reader))
    yield _tried(builder, "killed", "", kill)


def left(builder: ProbeBuilder, sample: Sample, first: Sample) -> tuple[str, Parameters]:
    """A query that counts what a killed session left of a sample, and what was committed before."""
    wanted = {"effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample), "committed": (Part.EFFECT, first)}
    return builder.count(wanted)


def _tried(builder: ProbeBuilder, name: str, reason: str, run: Callable[[Attempt], str]) -> Probe:
    """Run a probe; the probe says why it failed, if it did."""
    attempt = builder.attempt(name, evidence=EvidenceClass.CONCURRENCY)
    try:
        reason = reason or run(attempt)
    except (RowError, LostError, psycopg.Error, sqlite3.Error, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    return attempt.done(reason)


def _undone(builder: ProbeBuilder, session: Session, reader: Session, attempt: Attempt) -> str:
    """What was rolled back is not there."""
    sample = builder.fresh()
    with rolled_back(session):
        if builder.put(attempt, session, sample).sqlstate is not None:
            return NOT_ADMITTED
        attempt.send(session, "ROLLBACK")
    attempt.send(reader, *builder.count({"effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample)}))
    return ""


def _outlived(builder: ProbeBuilder, session: Session, auditor: Session, reader: Session, attempt: Attempt) -> str:
    """A record of another session while the transaction is open, which is found after that was rolled back."""
    sample = builder.fresh()
    # Values that the server makes up do not identify a record, and all else may be equal in two of them.
    statement, answer = reader.send(*builder.count({"audit": (Part.AUDIT, sample)}))
    attempt.keep(statement, answer)
    if answer.sqlstate is not None:
        return f"the records of the audit cannot be counted: {answer.sqlstate} {answer.message}"
    with rolled_back(session):
        if builder.put(attempt, session, sample).sqlstate is not None:
            return NOT_ADMITTED
        builder.send(attempt, auditor, builder.insert(Part.AUDIT, sample), sample)
        attempt.send(session, "ROLLBACK")
    wanted = {"audit": (Part.AUDIT, sample), "effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample)}
    attempt.send(reader, *builder.count(wanted, before={"audit": answer.rows[0]["audit"]}))
    return ""
