"""What is tried on the clone, by the roles themselves. A refusal counts only beside its accepted twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import TypeAlias

import psycopg

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, Snapshot, Surface
from holdfast.conformance.fitness.policy import BINDINGS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.postgres import races
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.rows import Maker, Pick, RowError
from holdfast.conformance.fitness.postgres.sessions import Session
from holdfast.conformance.fitness.postgres.tampering import tampering
from holdfast.conformance.fitness.postgres.workshop import KEY, REPLAY_KEY, Workshop, rolled_back
from holdfast.conformance.fitness.twins import TWINS

# What another attempt has of its own. The replay key is no part of it, and has a unique index of its own.
_OF_AN_ATTEMPT = frozenset({"attempt", "decision", REPLAY_KEY, NONCE})
# Operations that no contract has, and spellings that a careless check lets through.
_OTHERS = ("holdfast_probe_operation", "unregister_dot", "inbound")


def probe_clone(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> tuple[Probe, ...]:  # noqa: ARG001
    """Everything that can be tried on the clone of `surface`: what was sent and what came back.

    Without a writer the owner of the effect acts in its place, and what only a writer can show has failed.
    """
    made: list[Probe] = []
    try:
        with closing(clone.scratch.connect(clone.dsn)) as connection:
            for probe in _probes(clone, surface, policy, Maker(connection, surface, policy)):
                made.append(probe)  # noqa: PERF402 - what was made before an error counts
    except (RowError, psycopg.Error) as error:
        name = "rest" if made else "first"
        made.append(Probe(name, EvidenceClass.CLONE, (), (), f"the probes could not go on: {error}"))
    return tuple(made)


def _probes(clone: Clone, surface: Surface, policy: Policy, maker: Maker) -> Iterator[Probe]:
    writer = surface.writer or maker.table(Part.EFFECT).owner
    with ExitStack() as stack:
        helper = stack.enter_context(clone.opened(("helper", clone.scratch.superuser)))[0]
        shop = Workshop(maker, surface, policy, helper=helper, evidence=EvidenceClass.CLONE)
        session = stack.enter_context(clone.opened(("writer", writer)))[0]
        first = shop.fresh()
        admitted = _first(shop, session, first)
        yield admitted
        if any(answer.sqlstate is not None for answer in admitted.answers):
            return
        yield from admission(shop, session, first)
        yield _read_back(shop, clone, writer, first)
        # Rows of the audit are learnt here.
        yield from tampering(shop, clone, surface, first)
        yield from _strangers(shop, clone)
        yield from races.races(shop, clone, writer, first)


def _first(shop: Workshop, session: Session, first: Pick) -> Probe:
    attempt = shop.attempt("first")
    session.begin()
    answer = shop.put(attempt, session, first)
    if answer.sqlstate is None:
        attempt.send(session, "COMMIT")
    session.rollback()
    return attempt.done()


def admission(shop: Workshop, session: Session, first: Pick) -> Iterator[Probe]:
    """What is admitted beside a row that is there, and what is not. Nothing of it stays."""
    yield _one(shop, session, "second", shop.fresh())
    yield from _keys(shop, session, first)
    yield _attempt_again(shop, session, first)
    yield from _nonces(shop, session, first)
    yield from _bindings(shop, session)
    yield from _arbiters(shop, session, first)
    yield from _composites(shop, session)


# What a twin of a known value is made of; None is NULL.
_Twin: TypeAlias = Callable[[str], str | None]
_TWINS: Mapping[str, _Twin] = {"null": lambda _: None, **{name: make for name, (make, _) in TWINS.items()}}


def _keys(shop: Workshop, session: Session, first: Pick) -> Iterator[Probe]:
    for prefix, word in (("key", KEY), ("replay-key", REPLAY_KEY)):
        names = [f"same-{prefix}", *(f"{prefix}-{twin}" for twin in (*_TWINS, "prefix"))]
        if word == KEY:
            names.insert(1, "same-key-new-attempt")
        if reason := shop.lacks(Part.EFFECT, word):
            yield from (shop.cannot(name, reason) for name in names)
            continue
        yield _one(shop, session, names[0], shop.like(first, word), upto=Part.EFFECT)
        if word == KEY:
            same = [each for each in WORDS if each not in _OF_AN_ATTEMPT]
            yield _one(shop, session, "same-key-new-attempt", shop.like(first, *same), upto=Part.EFFECT)
        value = shop.value(Part.EFFECT, word, first)
        for twin, make in _TWINS.items():
            yield _one(shop, session, f"{prefix}-{twin}", shop.fresh(), upto=Part.EFFECT, changed={word: make(value)})
        neighbour = {word: _neighbour(shop, Part.EFFECT, word, first)}
        yield _one(shop, session, f"{prefix}-prefix", shop.fresh(), upto=Part.EFFECT, changed=neighbour)


def _attempt_again(shop: Workshop, session: Session, first: Pick) -> Probe:
    """A known attempt in rows that are fresh otherwise; what would be said at the commit only is asked for at once."""
    if reason := shop.lacks(Part.EFFECT, "attempt"):
        return shop.cannot("attempt-again", reason)
    attempt = shop.attempt("attempt-again")
    with rolled_back(session):
        if shop.put(attempt, session, shop.like(first, "attempt")).sqlstate is None:
            attempt.send(session, "SET CONSTRAINTS ALL IMMEDIATE")
    return attempt.done()


def _neighbour(shop: Workshop, part: Part, word: str, known: Pick) -> str:
    """Another value of the same form: what differs last between two of them is that of the other one."""
    value, other = shop.value(part, word, known), shop.value(part, word, shop.fresh())
    places = [place for place in range(min(len(value), len(other))) if value[place] != other[place]]
    return value[: places[-1]] + other[places[-1]] + value[places[-1] + 1 :] if places else other


def _nonces(shop: Workshop, session: Session, first: Pick) -> Iterator[Probe]:
    reason = shop.lacks(Part.NONCE, NONCE)
    for name in ("nonce-again", "nonce-null", "nonce-prefix"):
        if reason:
            yield shop.cannot(name, reason)
        elif name == "nonce-again":
            yield _one(shop, session, name, shop.like(first, NONCE), upto=Part.NONCE)
        else:
            value = None if name == "nonce-null" else _neighbour(shop, Part.NONCE, NONCE, first)
            yield _one(shop, session, name, shop.fresh(), upto=Part.NONCE, changed={NONCE: value})


def _bindings(shop: Workshop, session: Session) -> Iterator[Probe]:
    for word in (*BINDINGS, "decision"):
        reason = shop.lacks(Part.EFFECT, word) if word != "decision" else shop.cannot_be_said(Part.EFFECT, word)
        for name, value in (("without", None), ("empty", "")):
            if word == "decision" and name == "empty":
                continue
            if reason:
                yield shop.cannot(f"{name}-{word}", reason)
            else:
                yield _one(shop, session, f"{name}-{word}", shop.fresh(), upto=Part.EFFECT, changed={word: value})
    if reason := shop.lacks(Part.EFFECT, "operation"):
        yield shop.cannot("other-operation", reason)
        yield shop.cannot("own-operation", reason)
        return
    yield _other_operation(shop, session)
    own = {"operation": shop.policy.operations[0]}
    yield _one(shop, session, "own-operation", shop.fresh(), upto=Part.EFFECT, changed=own)


def _other_operation(shop: Workshop, session: Session) -> Probe:
    attempt = shop.attempt("other-operation")
    known = shop.policy.operations
    for value in (*_OTHERS, f"{known[0]} ", known[0].upper()):
        if value in known:
            continue
        with rolled_back(session):
            answer = shop.put(attempt, session, shop.fresh(), upto=Part.EFFECT, changed={"operation": value})
        if answer.sqlstate is None:
            break
    return attempt.done()


def _arbiters(shop: Workshop, session: Session, first: Pick) -> Iterator[Probe]:
    for name, part, word in (("arbiter", Part.EFFECT, KEY), ("nonce-arbiter", Part.NONCE, NONCE)):
        if reason := shop.lacks(part, word):
            yield shop.cannot(name, reason)
            continue
        attempt, suffix = shop.attempt(name), _conflict(shop, word)
        for pick in (shop.fresh(), shop.like(first, word)):
            with rolled_back(session):
                answer = shop.put(attempt, session, pick, upto=part, suffix=suffix)
            if answer.sqlstate is not None:
                break
        yield attempt.done()


def _conflict(shop: Workshop, word: str) -> str:
    return f' ON CONFLICT ("{shop.policy.column(word)}") DO NOTHING'


def _composites(shop: Workshop, session: Session) -> Iterator[Probe]:
    """Two rows that are equal in all columns of a composite unique index but one."""
    table = shop.maker.table(Part.EFFECT)
    total = [frozenset(unique.columns) for unique in table.uniques if unique.total]
    for unique in table.uniques:
        columns = frozenset(unique.columns)
        if len(columns) < 2 or any(other < columns for other in total):
            continue
        for name in unique.columns:
            if not table.columns[name].made_by_server:
                yield _composite(shop, session, unique.name, columns - {name}, name)


def _composite(shop: Workshop, session: Session, index: str, same: frozenset[str], other: str) -> Probe:
    attempt = shop.attempt(f"composite-{index}-{other}")
    one = shop.fresh()
    words = {shop.maker.word(name): one.base for name in same}
    with rolled_back(session):
        for pick in (one, shop.fresh(words)):
            if shop.put(attempt, session, pick, upto=Part.EFFECT).sqlstate is not None:
                break
    return attempt.done()


def _one(
    shop: Workshop,
    session: Session,
    name: str,
    pick: Pick,
    *,
    upto: Part | None = None,
    changed: Mapping[str, str | None] | None = None,
) -> Probe:
    """One set of rows in a transaction that is rolled back."""
    attempt = shop.attempt(name)
    with rolled_back(session):
        shop.put(attempt, session, pick, upto=upto, changed=changed)
    return attempt.done()


def _read_back(shop: Workshop, clone: Clone, writer: str, first: Pick) -> Probe:
    attempt = shop.attempt("read-back")
    if reason := shop.lacks(Part.EFFECT, KEY) or shop.missing(Part.EFFECT, "decision"):
        return attempt.failed(reason)
    try:
        with clone.opened(("reader", writer)) as (reader,):
            condition, values = shop.find(Part.EFFECT, first)
            attempt.send(reader, shop.select(Part.EFFECT, "decision", condition), values)
    except psycopg.Error as error:
        return attempt.failed(f"the writer cannot connect again: {error.sqlstate or type(error).__name__}")
    return attempt.done()


def _strangers(shop: Workshop, clone: Clone) -> Iterator[Probe]:
    with clone.opened(("stranger", clone.stranger)) as (stranger,):
        for part in (*shop.order, *shop.audit):
            suffix = "" if part is Part.EFFECT else f"-{part.value}"
            attempt, pick = shop.attempt(f"stranger-insert{suffix}"), shop.fresh()
            # What the row refers to is there, so that only the right to insert can be missing.
            for before in shop.before(part):
                shop.send(attempt, shop.helper, shop.maker.insert(before, pick), pick)
            with rolled_back(stranger):
                shop.send(attempt, stranger, shop.maker.insert(part, pick), pick)
            yield attempt.done()
