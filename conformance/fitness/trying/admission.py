"""The rows that are admitted beside an existing row, and those that are not. A refusal counts only beside its accepted
twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from holdfast.conformance.fitness.criteria.spelling import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import Part, Probe
from holdfast.conformance.fitness.policy import BINDINGS, NONCE, WORDS
from holdfast.conformance.fitness.trying.rows import (
    KEY,
    REPLAY_KEY,
    Copy,
    ProbeBuilder,
    Sample,
    Session,
    Value,
    quoted,
    rolled_back,
)
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
