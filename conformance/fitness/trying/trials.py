"""All trials on a copy in their order, in every database: rows beside one that is there, which are admitted or not, and
what several sessions do at a time. A refusal counts only beside its accepted twin.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol, TypeAlias

import psycopg

from holdfast.conformance.fitness.criteria.spelling import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, Surface
from holdfast.conformance.fitness.policy import BINDINGS, NONCE, WORDS
from holdfast.conformance.fitness.trying.rows import (
    KEY,
    REPLAY_KEY,
    Attempt,
    Copy,
    Parameters,
    ProbeBuilder,
    RowError,
    Sample,
    Session,
    Value,
    quoted,
    rolled_back,
)
from holdfast.conformance.fitness.trying.tampering import tampering
from holdfast.conformance.fitness.trying.values import Blob

# What another attempt has of its own. The replay key is no part of it, and has a unique index of its own.
_OF_AN_ATTEMPT = frozenset({"attempt", "decision", REPLAY_KEY, NONCE})
# Operations that no contract has, and spellings that a careless check lets through.
_OTHERS = ("holdfast_probe_operation", "unregister_dot", "inbound", "outbound")


def consumed(builder: ProbeBuilder, session: Session, first: Sample) -> Probe:
    """The rows of the first request, committed."""
    attempt = builder.attempt("first")
    session.begin()
    if builder.put(attempt, session, first).sqlstate is None:
        attempt.send(session, "COMMIT")
    session.rollback()
    return attempt.done()


def admission(builder: ProbeBuilder, session: Session, first: Sample) -> Iterator[Probe]:
    """The rows that are admitted beside an existing row, and those that are not. Nothing of them stays."""

    def one(name: str, part: Part, word: str, *same: str, change: _Twin | None = None) -> Probe:
        """A fresh row of a part with the `same` words as the first, and another value, or another spelling, of one."""
        if reason := builder.lacks(part, word):
            return builder.cannot(name, reason)
        changed = None if change is None else {word: change(builder.value(part, word, first))}
        return _sent(builder, session, name, builder.like(first, *same), part, changed)

    def neighbour(part: Part, word: str) -> _Twin:
        return lambda value: _neighbour(value, builder.value(part, word, builder.fresh()))

    yield _sent(builder, session, "second", builder.fresh())
    for stem, word in (("key", KEY), ("replay-key", REPLAY_KEY)):
        yield one(f"same-{stem}", Part.EFFECT, word, word)
        if word == KEY:
            same = (each for each in WORDS if each not in _OF_AN_ATTEMPT)
            yield one("same-key-new-attempt", Part.EFFECT, word, *same)
        made = {**NEIGHBOURS, **(NUL_NEIGHBOURS if builder.in_files else {})}
        for suffix, make in {"null": _null, **{name: _of_text(make) for name, (make, _) in made.items()}}.items():
            yield one(f"{stem}-{suffix}", Part.EFFECT, word, change=make)
        if builder.in_files:
            yield one(f"{stem}-blob", Part.EFFECT, word, change=Blob.of)
        yield one(f"{stem}-prefix", Part.EFFECT, word, change=neighbour(Part.EFFECT, word))
    yield _attempt_again(builder, session, first)
    yield one("nonce-again", Part.NONCE, NONCE, NONCE)
    yield one("nonce-null", Part.NONCE, NONCE, change=_null)
    if builder.in_files:
        yield one("nonce-blob", Part.NONCE, NONCE, change=Blob.of)
    yield one("nonce-prefix", Part.NONCE, NONCE, change=neighbour(Part.NONCE, NONCE))
    for word in BINDINGS:
        yield one(f"without-{word}", Part.EFFECT, word, change=_null)
        yield one(f"empty-{word}", Part.EFFECT, word, change=lambda _: "")
        if builder.in_files:
            yield one(f"empty-blob-{word}", Part.EFFECT, word, change=lambda _: Blob(""))
            yield _omitted(builder, session, word)
    if reason := builder.lacks(Part.EFFECT, "decision", instead=True):
        yield builder.cannot("without-decision", reason)
    else:
        yield _sent(builder, session, "without-decision", builder.fresh(), Part.EFFECT, {"decision": None})
    yield _other_operation(builder, session)
    yield one("own-operation", Part.EFFECT, "operation", change=lambda _: builder.policy.operations[0])
    yield from _arbiters(builder, session, first)
    yield from _composites(builder, session)


# What a neighbour of a known value is made of; None is NULL.
_Twin: TypeAlias = Callable[[str | Blob], Value]


def _null(_known: str | Blob) -> None:
    return None


def _of_text(make: Callable[[str], str]) -> _Twin:
    """What is made of the text of a value, or of the digits of bytes."""
    return lambda known: make(known.hex if isinstance(known, Blob) else known)


def _neighbour(value: str | Blob, other: str | Blob) -> str | Blob:
    """Another value of the same form: what differs last between two of them is that of the other one."""
    if isinstance(value, Blob) and isinstance(other, Blob):
        return Blob(_differing(value.hex, other.hex))
    return other if isinstance(value, Blob) or isinstance(other, Blob) else _differing(value, other)


def _differing(value: str, other: str) -> str:
    places = [place for place in range(min(len(value), len(other))) if value[place] != other[place]]
    return value[: places[-1]] + other[places[-1]] + value[places[-1] + 1 :] if places else other


def _omitted(builder: ProbeBuilder, session: Session, word: str) -> Probe:
    """A row that does not name the column, so that a default would fill it."""
    attempt, sample = builder.attempt(f"omitted-{word}"), builder.fresh()
    if reason := builder.lacks(Part.EFFECT, word):
        return attempt.done(reason)
    with rolled_back(session):
        row = builder.insert(Part.EFFECT, sample)
        del row.values[builder.policy.column(word)]
        if all(
            builder.put(attempt, session, sample, upto=each).sqlstate is None for each in builder.before(Part.EFFECT)
        ):
            builder.send(attempt, session, row, sample)
    return attempt.done()


def _attempt_again(builder: ProbeBuilder, session: Session, first: Sample) -> Probe:
    """A known attempt in rows that are otherwise fresh; checks that are due only at the commit are made at once."""
    attempt = builder.attempt("attempt-again")
    if reason := builder.lacks(Part.EFFECT, "attempt"):
        return attempt.done(reason)
    with rolled_back(session):
        answer = builder.put(attempt, session, builder.like(first, "attempt"))
        if answer.sqlstate is None and not builder.in_files:
            attempt.send(session, "SET CONSTRAINTS ALL IMMEDIATE")
    return attempt.done()


def _other_operation(builder: ProbeBuilder, session: Session) -> Probe:
    attempt, known = builder.attempt("other-operation"), builder.policy.operations
    if reason := builder.lacks(Part.EFFECT, "operation"):
        return attempt.done(reason)
    for value in (*_OTHERS, f"{known[0]} ", known[0].upper()):
        if value in known:
            continue
        with rolled_back(session):
            answer = builder.put(attempt, session, builder.fresh(), upto=Part.EFFECT, changed={"operation": value})
        if answer.sqlstate is None:
            break
    return attempt.done()


def _arbiters(builder: ProbeBuilder, session: Session, first: Sample) -> Iterator[Probe]:
    for name, part, word in (("arbiter", Part.EFFECT, KEY), ("nonce-arbiter", Part.NONCE, NONCE)):
        if reason := builder.lacks(part, word):
            yield builder.cannot(name, reason)
            continue
        attempt = builder.attempt(name)
        for sample in (builder.fresh(), builder.like(first, word)):
            with rolled_back(session):
                answer = builder.put(attempt, session, sample, upto=part, suffix=builder.conflict(word))
            if answer.sqlstate is not None:
                break
        yield attempt.done()


def _composites(builder: ProbeBuilder, session: Session) -> Iterator[Probe]:
    """Two rows that are equal in all columns of a composite unique index but one."""
    table = builder.table(Part.EFFECT)
    total = [frozenset(unique.columns) for unique in table.uniques if unique.total]
    for unique in table.uniques:
        columns = frozenset(unique.columns)
        if len(columns) < 2 or any(other < columns for other in total):
            continue
        for other in unique.columns:
            if table.columns[other].made_by_server:
                continue
            attempt, one = builder.attempt(f"composite-{unique.name}-{other}"), builder.fresh()
            same = builder.fresh({builder.word(name): one.base for name in columns - {other}})
            with rolled_back(session):
                for sample in (one, same):
                    if builder.put(attempt, session, sample, upto=Part.EFFECT).sqlstate is not None:
                        break
            yield attempt.done()


def _sent(
    builder: ProbeBuilder,
    session: Session,
    name: str,
    sample: Sample,
    upto: Part | None = None,
    changed: Mapping[str, Value] | None = None,
) -> Probe:
    """One set of rows in a transaction that is rolled back."""
    attempt = builder.attempt(name)
    with rolled_back(session):
        builder.put(attempt, session, sample, upto=upto, changed=changed)
    return attempt.done()


def read_back(builder: ProbeBuilder, copy: Copy, writer: str, first: Sample) -> Probe:
    name, relation = builder.policy.column("decision"), builder.relations[Part.EFFECT]
    attempt = builder.attempt("read-back")
    if reason := builder.lacks(Part.EFFECT, KEY):
        return attempt.done(reason)
    if name not in builder.table(Part.EFFECT).columns:
        return attempt.done(f"there is no column for decision in {relation}")
    try:
        with copy.opened(("reader", writer)) as (reader,):
            condition, values = builder.find(Part.EFFECT, first)
            query = f"SELECT {quoted(name)} AS decision FROM {builder.into(Part.EFFECT)} WHERE {condition}"
            attempt.send(reader, query, values)
    except LostError as error:
        return attempt.done(f"the writer cannot connect again: {error}")
    return attempt.done()


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
