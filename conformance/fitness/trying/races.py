"""What several sessions do at a time: parts that do not depend on how a database lets them wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import psycopg

from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe
from holdfast.conformance.fitness.policy import NONCE
from holdfast.conformance.fitness.trying.building import KEY, ProbeBuilder, rolled_back
from holdfast.conformance.fitness.trying.rows import RowError
from holdfast.conformance.fitness.trying.sessions import Attempt, Session

ARBITER = "race-arbiter"
NOT_ADMITTED = "a fresh row was not admitted, so that nothing can be undone or lost"
# Two rows that are equal in a word: the first is inserted, the second waits, and then the first one ends.
RACES = (
    ("race", Part.EFFECT, KEY, "COMMIT"),
    ("race-after-rollback", Part.EFFECT, KEY, "ROLLBACK"),
    (ARBITER, Part.EFFECT, KEY, "COMMIT"),
    ("race-nonce", Part.NONCE, NONCE, "COMMIT"),
)


def tried(builder: ProbeBuilder, name: str, reason: str, run: Callable[[Attempt], str]) -> Probe:
    """Run a probe; the probe says why it failed, if it did."""
    attempt = builder.attempt(name, evidence=EvidenceClass.CONCURRENCY)
    try:
        reason = reason or run(attempt)
    except (RowError, LostError, psycopg.Error, sqlite3.Error, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    return attempt.done(reason)


def undone(builder: ProbeBuilder, session: Session, reader: Session, attempt: Attempt) -> str:
    """What was rolled back is not there."""
    sample = builder.fresh()
    with rolled_back(session):
        if builder.put(attempt, session, sample).sqlstate is not None:
            return NOT_ADMITTED
        attempt.send(session, "ROLLBACK")
    attempt.send(reader, *builder.count({"effect": (Part.EFFECT, sample), "nonce": (Part.NONCE, sample)}))
    return ""


def why_no_audit(builder: ProbeBuilder) -> str:
    """Why no record can outlive a transaction; empty if one can."""
    return "" if builder.audit else "there is no audit relation of its own"


def outlived(builder: ProbeBuilder, session: Session, auditor: Session, reader: Session, attempt: Attempt) -> str:
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
