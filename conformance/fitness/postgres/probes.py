"""The probes on the clone, by the roles themselves. A refusal counts only beside its accepted twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import TypeAlias

import psycopg

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, Snapshot, Surface
from holdfast.conformance.fitness.neighbours import NEIGHBOURS
from holdfast.conformance.fitness.policy import BINDINGS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.postgres import races
from holdfast.conformance.fitness.postgres.building import KEY, REPLAY_KEY, ProbeBuilder, rolled_back
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.rows import RowBuilder, RowError, Sample
from holdfast.conformance.fitness.postgres.sessions import Session
from holdfast.conformance.fitness.postgres.tampering import tampering

# What another attempt has of its own. The replay key is no part of it, and has a unique index of its own.
_OF_AN_ATTEMPT = frozenset({"attempt", "decision", REPLAY_KEY, NONCE})
# Operations that no contract has, and spellings that a careless check lets through.
_OTHERS = ("holdfast_probe_operation", "unregister_dot", "inbound")


def probe_clone(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> tuple[Probe, ...]:  # noqa: ARG001
    """Everything that can be tried on the clone of `surface`: the statements and their answers.

    Without a writer the owner of the effect acts in its place, and a probe that only a writer can pass has failed.
    """
    made: list[Probe] = []
    try:
        with closing(clone.scratch.connect(clone.dsn)) as connection:
            for probe in _probes(clone, surface, policy, RowBuilder(connection, surface, policy)):
                made.append(probe)  # noqa: PERF402 - what was made before an error counts
    except (RowError, psycopg.Error) as error:
        name = "rest" if made else "first"
        made.append(Probe(name, EvidenceClass.CLONE, (), (), f"the probes could not go on: {error}"))
    return tuple(made)


def _probes(clone: Clone, surface: Surface, policy: Policy, row_builder: RowBuilder) -> Iterator[Probe]:
    writer = surface.writer or row_builder.table(Part.EFFECT).owner
    with ExitStack() as stack:
        helper = stack.enter_context(clone.opened(("helper", clone.scratch.superuser)))[0]
        builder = ProbeBuilder(row_builder, surface, policy, helper=helper, evidence=EvidenceClass.CLONE)
        session = stack.enter_context(clone.opened(("writer", writer)))[0]
        first = builder.fresh()
        admitted = _first(builder, session, first)
        yield admitted
        if any(answer.sqlstate is not None for answer in admitted.answers):
            return
        yield from admission(builder, session, first)
        yield _read_back(builder, clone, writer, first)
        # Rows of the audit are learnt here.
        yield from tampering(builder, clone, surface, first)
        yield from _strangers(builder, clone)
        yield from races.races(builder, clone, writer, first)


def _first(builder: ProbeBuilder, session: Session, first: Sample) -> Probe:
    attempt = builder.attempt("first")
    session.begin()
    answer = builder.put(attempt, session, first)
    if answer.sqlstate is None:
        attempt.send(session, "COMMIT")
    session.rollback()
    return attempt.done()


def admission(builder: ProbeBuilder, session: Session, first: Sample) -> Iterator[Probe]:
    """The rows that are admitted beside an existing row, and those that are not. Nothing of them stays."""
    yield _one(builder, session, "second", builder.fresh())
    yield from _keys(builder, session, first)
    yield _attempt_again(builder, session, first)
    yield from _nonces(builder, session, first)
    yield from _bindings(builder, session)
    yield from _arbiters(builder, session, first)
    yield from _composites(builder, session)


# What a neighbour of a known value is made of; None is NULL.
_Twin: TypeAlias = Callable[[str], str | None]
_NEIGHBOURS: Mapping[str, _Twin] = {"null": lambda _: None, **{name: make for name, (make, _) in NEIGHBOURS.items()}}


def _keys(builder: ProbeBuilder, session: Session, first: Sample) -> Iterator[Probe]:
    for prefix, word in (("key", KEY), ("replay-key", REPLAY_KEY)):
        names = [f"same-{prefix}", *(f"{prefix}-{name}" for name in (*_NEIGHBOURS, "prefix"))]
        if word == KEY:
            names.insert(1, "same-key-new-attempt")
        if reason := builder.lacks(Part.EFFECT, word):
            yield from (builder.cannot(name, reason) for name in names)
            continue
        yield _one(builder, session, names[0], builder.like(first, word), upto=Part.EFFECT)
        if word == KEY:
            same = [each for each in WORDS if each not in _OF_AN_ATTEMPT]
            yield _one(builder, session, "same-key-new-attempt", builder.like(first, *same), upto=Part.EFFECT)
        value = builder.value(Part.EFFECT, word, first)
        for name, make in _NEIGHBOURS.items():
            yield _one(
                builder,
                session,
                f"{prefix}-{name}",
                builder.fresh(),
                upto=Part.EFFECT,
                changed={word: make(value)},
            )
        neighbour = {word: _neighbour(builder, Part.EFFECT, word, first)}
        yield _one(builder, session, f"{prefix}-prefix", builder.fresh(), upto=Part.EFFECT, changed=neighbour)


def _attempt_again(builder: ProbeBuilder, session: Session, first: Sample) -> Probe:
    """A known attempt in rows that are otherwise fresh; checks that are due only at the commit are made at once."""
    if reason := builder.lacks(Part.EFFECT, "attempt"):
        return builder.cannot("attempt-again", reason)
    attempt = builder.attempt("attempt-again")
    with rolled_back(session):
        if builder.put(attempt, session, builder.like(first, "attempt")).sqlstate is None:
            attempt.send(session, "SET CONSTRAINTS ALL IMMEDIATE")
    return attempt.done()


def _neighbour(builder: ProbeBuilder, part: Part, word: str, known: Sample) -> str:
    """Another value of the same form: what differs last between two of them is that of the other one."""
    value, other = builder.value(part, word, known), builder.value(part, word, builder.fresh())
    places = [place for place in range(min(len(value), len(other))) if value[place] != other[place]]
    return value[: places[-1]] + other[places[-1]] + value[places[-1] + 1 :] if places else other


def _nonces(builder: ProbeBuilder, session: Session, first: Sample) -> Iterator[Probe]:
    reason = builder.lacks(Part.NONCE, NONCE)
    for name in ("nonce-again", "nonce-null", "nonce-prefix"):
        if reason:
            yield builder.cannot(name, reason)
        elif name == "nonce-again":
            yield _one(builder, session, name, builder.like(first, NONCE), upto=Part.NONCE)
        else:
            value = None if name == "nonce-null" else _neighbour(builder, Part.NONCE, NONCE, first)
            yield _one(builder, session, name, builder.fresh(), upto=Part.NONCE, changed={NONCE: value})


def _bindings(builder: ProbeBuilder, session: Session) -> Iterator[Probe]:
    for word in (*BINDINGS, "decision"):
        reason = builder.lacks(Part.EFFECT, word) if word != "decision" else builder.cannot_be_said(Part.EFFECT, word)
        for name, value in (("without", None), ("empty", "")):
            if word == "decision" and name == "empty":
                continue
            if reason:
                yield builder.cannot(f"{name}-{word}", reason)
            else:
                yield _one(builder, session, f"{name}-{word}", builder.fresh(), upto=Part.EFFECT, changed={word: value})
    if reason := builder.lacks(Part.EFFECT, "operation"):
        yield builder.cannot("other-operation", reason)
        yield builder.cannot("own-operation", reason)
        return
    yield _other_operation(builder, session)
    own = {"operation": builder.policy.operations[0]}
    yield _one(builder, session, "own-operation", builder.fresh(), upto=Part.EFFECT, changed=own)


def _other_operation(builder: ProbeBuilder, session: Session) -> Probe:
    attempt = builder.attempt("other-operation")
    known = builder.policy.operations
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
        attempt, suffix = builder.attempt(name), _conflict(builder, word)
        for sample in (builder.fresh(), builder.like(first, word)):
            with rolled_back(session):
                answer = builder.put(attempt, session, sample, upto=part, suffix=suffix)
            if answer.sqlstate is not None:
                break
        yield attempt.done()


def _conflict(builder: ProbeBuilder, word: str) -> str:
    return f' ON CONFLICT ("{builder.policy.column(word)}") DO NOTHING'


def _composites(builder: ProbeBuilder, session: Session) -> Iterator[Probe]:
    """Two rows that are equal in all columns of a composite unique index but one."""
    table = builder.row_builder.table(Part.EFFECT)
    total = [frozenset(unique.columns) for unique in table.uniques if unique.total]
    for unique in table.uniques:
        columns = frozenset(unique.columns)
        if len(columns) < 2 or any(other < columns for other in total):
            continue
        for name in unique.columns:
            if not table.columns[name].made_by_server:
                yield _composite(builder, session, unique.name, columns - {name}, name)


def _composite(builder: ProbeBuilder, session: Session, index: str, same: frozenset[str], other: str) -> Probe:
    attempt = builder.attempt(f"composite-{index}-{other}")
    one = builder.fresh()
    words = {builder.row_builder.word(name): one.base for name in same}
    with rolled_back(session):
        for sample in (one, builder.fresh(words)):
            if builder.put(attempt, session, sample, upto=Part.EFFECT).sqlstate is not None:
                break
    return attempt.done()


def _one(
    builder: ProbeBuilder,
    session: Session,
    name: str,
    sample: Sample,
    *,
    upto: Part | None = None,
    changed: Mapping[str, str | None] | None = None,
) -> Probe:
    """One set of rows in a transaction that is rolled back."""
    attempt = builder.attempt(name)
    with rolled_back(session):
        builder.put(attempt, session, sample, upto=upto, changed=changed)
    return attempt.done()


def _read_back(builder: ProbeBuilder, clone: Clone, writer: str, first: Sample) -> Probe:
    attempt = builder.attempt("read-back")
    if reason := builder.lacks(Part.EFFECT, KEY) or builder.missing(Part.EFFECT, "decision"):
        return attempt.failed(reason)
    try:
        with clone.opened(("reader", writer)) as (reader,):
            condition, values = builder.find(Part.EFFECT, first)
            attempt.send(reader, builder.select(Part.EFFECT, "decision", condition), values)
    except psycopg.Error as error:
        return attempt.failed(f"the writer cannot connect again: {error.sqlstate or type(error).__name__}")
    return attempt.done()


def _strangers(builder: ProbeBuilder, clone: Clone) -> Iterator[Probe]:
    with clone.opened(("stranger", clone.stranger)) as (stranger,):
        for part in (*builder.order, *builder.audit):
            suffix = "" if part is Part.EFFECT else f"-{part.value}"
            attempt, sample = builder.attempt(f"stranger-insert{suffix}"), builder.fresh()
            # The rows that the row refers to are there, so that only the right to insert can be missing.
            for before in builder.before(part):
                builder.send(attempt, builder.helper, builder.row_builder.insert(before, sample), sample)
            with rolled_back(stranger):
                builder.send(attempt, stranger, builder.row_builder.insert(part, sample), sample)
            yield attempt.done()
