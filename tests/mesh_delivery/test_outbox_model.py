"""The pure model of a daemon: what the source fixes it holds, and what the source leaves open it leaves open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.conformance.attacks.any_history import Step
from holdfast.conformance.attacks.histories import in_some_order
from holdfast.conformance.attacks.model import Call
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS
from holdfast.conformance.suites.mesh_delivery.outbox_history import EveryAnswer, OfTwoProcesses, together
from holdfast.conformance.suites.mesh_delivery.outbox_model import (
    SEND,
    Outbox,
    OutboxModel,
    Round,
    Row,
    Try,
    fingerprint_of,
)
from holdfast.conformance.suites.mesh_delivery.sends import ALICE, MESH, Args

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, LIMIT = timedelta(seconds=1), timedelta(hours=24)
CONFIG = {**OutboxModel.config, "max_age_hours": "24"}
SESSION: Any = SimpleNamespace(config=CONFIG, workers=2, now="2026-01-01T00:00:00Z", not_claimed={})
ROW = Row(MESH, "00", NOW, NOW, taken=NOW)
BODY = json.dumps({**SEND, "client_message_id": "one"}).encode()
NAMED: Args = {
    "headers": {"client-message-id": "one", "mesh-member": ALICE, "content-type": "application/json"},
    "body": base64url(BODY),
}


def tried(*answers: str, late: int | None = None) -> list[Row]:
    """What the row may be behind attempts that were answered so, one of them to a round that was held."""
    answered = enumerate(answers)
    return [*ROW.tried([Try("one", ANSWERS[name], f"message {at}", NOW, at == late) for at, name in answered])]


def stored(row: Row, **changes: Any) -> dict[str, Any]:
    """The row as a store has it."""
    moment = int(NOW.timestamp())
    told = {"last_error": "why" if row.failed else None, "delivered_at": moment if row.status == "done" else None}
    found = {"status": row.status, "attempts": row.attempts, "broker_message_id": row.message_id, "enqueued_at": moment}
    return {**found, **told, "request_fingerprint": {"blob": row.fingerprint}, **changes}


def sent(*requests: Args) -> tuple[OutboxModel, Sequence[Call], Outbox]:
    """The model behind rounds that overlapped, of a request each, for which nothing was armed; and the row."""
    came: list[Args] = []
    session: Any = SimpleNamespace(**vars(SESSION), answers=lambda _: None, received=lambda behind: came[behind:])
    model, rounds = OutboxModel(session), together((), count=max(2, len(requests)))
    for round_, request in zip(rounds, requests, strict=False):
        model.before(round_)
        came.append(request)
        model.after(round_, None)
    row = replace(ROW, fingerprint=fingerprint_of(json.loads(BODY)))
    return model, rounds[: len(requests)], Outbox({"one": (row,)})


def after(round_: Call, state: Outbox) -> list[Outbox]:
    """What is there after a round that told the number of its attempts."""
    told = {"attempts": len(round_.about.tries)}
    return [each.state for each in OutboxModel(SESSION).outcomes(state, round_, told) if each.says(told)]


def answers_of(step: Step) -> Sequence[str]:
    """The answers that a round of delivery is given."""
    about = step.what.about if isinstance(step.what, Call) else None
    return (about.answers or ()) if isinstance(about, Round) else ()


def test_a_row_that_failed_rests_and_is_due_after_ten_minutes() -> None:
    assert ROW.must_be_sent(NOW, LIMIT)
    (row,) = tried("unavailable")
    assert [row.may_be_sent(NOW + seconds * SECOND, LIMIT) for seconds in (0, 30)] == [False, True]
    # Between the two it may be sent, and need not.
    assert [row.must_be_sent(NOW + seconds * SECOND, LIMIT) for seconds in (30, 599, 600)] == [False, False, True]


@pytest.mark.parametrize(
    ("answers", "late", "statuses"),
    [
        (["first"], None, {"done"}),
        (["conflict"], None, {"dead"}),
        (["unavailable"], None, {"pending"}),
        # What is no answer leaves open whether the row is tried again.
        (["no-json"], None, {"pending", "dead"}),
        (["conflict", "unavailable"], None, {"pending", "dead"}),
        # What one of two rounds has delivered stays so, and either message may be its.
        (["unavailable", "first"], None, {"done"}),
        (["first", "conflict"], 1, {"done"}),
        # A round that was held may find a row that is not its own any more, and leave it.
        (["unavailable", "first"], 1, {"pending", "done"}),
    ],
)
def test_of_rounds_that_overlap_any_answer_stands_but_what_is_delivered_first_stays(
    answers: list[str], late: int | None, statuses: set[str]
) -> None:
    assert {row.status for row in tried(*answers, late=late)} == statuses
    assert {row.attempts for row in tried(*answers, late=late)} == {*range(1, len(answers) + 1)}


def test_a_row_in_flight_may_be_buried_by_another_process_for_which_it_is_too_old() -> None:
    one, other = together(())
    one.about.begun, other.about.begun = NOW + LIMIT - 2 * SECOND, NOW + LIMIT
    one.about.claimed, one.about.tries = {"one"}, [Try("one", ANSWERS["first"], "message", one.about.begun, late=True)]
    calls = [partial(after, one), partial(after, other)]
    found = {row.status for state in in_some_order(Outbox({"one": (ROW,)}), calls) for row in state.may_have("one")}
    assert found == {"done", "dead"}


@pytest.mark.parametrize(("told", "fits"), [([1, 0], True), ([None, 0], True), ([1, 1], False), ([0, 0], False)])
def test_rounds_at_once_tell_how_many_attempts_they_made_together(told: list[int | None], fits: bool) -> None:
    one, _ = together((), shared=True)
    one.about.tries, one.about.told = [Try("one", ANSWERS["first"], "message", NOW)], told
    assert bool(after(one, Outbox({"one": (ROW,)}))) is fits


def test_two_attempts_of_which_nothing_is_said_are_two() -> None:
    _, rounds, state = sent(NAMED, NAMED)
    for round_ in rounds:
        (state,) = after(round_, state)
    assert {row.attempts for row in state.may_have("one")} == {1, 2}


@pytest.mark.parametrize(
    ("requests", "wrong"),
    [
        ([NAMED], 0),
        # A kill hides no request that is of no row, and no other bytes for one row.
        ([{**NAMED, "headers": {**NAMED["headers"], "client-message-id": "another"}}], 1),
        ([NAMED, {**NAMED, "body": base64url(b" " + BODY)}], 1),
    ],
)
def test_a_request_of_a_round_that_was_killed_is_held_to_its_row(requests: list[Args], wrong: int) -> None:
    model, rounds, state = sent(*requests)
    for round_ in rounds:
        state = next(iter(model.outcomes(state, round_, {"rows": []}))).state
    (due,) = (each for each in model.observations(state) if each.method == "the requests")
    assert [len(found) for found in due.of(due.read(SESSION) if due.read else None).values()] == [0, wrong]


def test_a_daemon_that_died_leaves_open_how_many_attempts_count() -> None:
    rows = [*ROW.cut_short(NOW, LIMIT, [Try("one", ANSWERS["first"], "message", NOW)])]
    found = {(row.status, row.attempts) for row in rows}
    assert found == {("pending", 0), ("pending", 1), ("inflight", 0), ("inflight", 1), ("done", 1)}
    assert all(row.must_be_sent(NOW + 600 * SECOND, LIMIT) for row in rows if row.is_open)
    # What was left in flight may be found at any time.
    assert any(row.agrees(stored(row, status="pending")) for row in rows if row.status == "inflight")


def test_every_kind_of_answer_is_drawn_once_and_no_round_waits_for_two_late_ones() -> None:
    now: Any = SimpleNamespace(state=Outbox())
    for seed in range(20):
        drawn, later, rounds = (
            [answers_of(step) for step in kind(SESSION).history(now, Random(seed), number)]
            for kind, number in ((EveryAnswer, 0), (EveryAnswer, 1), (OfTwoProcesses, 0))
        )
        assert {name for answers in drawn for name in answers} == {*ANSWERS}
        # But for the last one each is drawn behind a first attempt, too.
        behind = [answers for before, answers in pairwise(filter(None, later)) if len({*before}) == 1 < len(before)]
        assert {"unavailable-for-a-year", *(name for answers in behind for name in answers)} == {*ANSWERS}
        assert all([*answers].count("late") < 2 for answers in rounds)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_the_time_of_a_row_is_taken_in_any_unit_and_another_time_is_a_difference(unit: int) -> None:
    moment = int(NOW.timestamp())
    assert ROW.agrees(stored(ROW, enqueued_at=moment * unit))
    assert not ROW.agrees(stored(ROW, enqueued_at=(moment + 60) * unit))
    # What was not delivered has no time at which it was.
    assert not ROW.agrees(stored(ROW, delivered_at=moment * unit))
