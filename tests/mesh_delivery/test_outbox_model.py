"""The pure model of a daemon: what the source fixes it holds, and what the source leaves open it leaves open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS
from holdfast.conformance.suites.mesh_delivery.outbox_generate import draw, every_answer
from holdfast.conformance.suites.mesh_delivery.outbox_model import Fate, Outbox

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
HOURS = 24
REQUEST = {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "alerts", "body": "AA"}
SEND = {"mesh_id": "5b1d8a52-6f0e-4c3b-9a77-2f4c1e0d9b60", "request": REQUEST}


def taken_in(name: str = "one") -> Outbox:
    """An outbox with one send."""
    outbox = Outbox(HOURS)
    outbox.add(name, SEND, NOW)
    return outbox


def attempted(outbox: Outbox, fate: Fate, now: datetime = NOW) -> bool:
    """One attempt of the row, with an answer of this fate."""
    return outbox.attempted("one", (fate,), now, "message")


def stored(outbox: Outbox, **changes: Any) -> dict[str, Any]:
    """The row as a store has it."""
    row = outbox.rows["one"][0]
    moment = int(NOW.timestamp())
    told = {"last_error": "why" if row.failed else None, "delivered_at": moment if row.status == "done" else None}
    found = {"status": row.status, "attempts": row.attempts, "broker_message_id": row.message_id, "enqueued_at": moment}
    return {"one": {**found, **told, "request_fingerprint": {"blob": row.fingerprint}, **changes}}


def test_a_row_that_failed_rests_and_is_due_after_ten_minutes() -> None:
    outbox = taken_in()
    assert outbox.due(NOW) == {"one"}
    assert attempted(outbox, Fate.AGAIN)
    assert outbox.due(NOW) == set()
    assert not attempted(outbox, Fate.DONE)
    assert outbox.due(NOW + 599 * SECOND) == set()
    assert outbox.due(NOW + 600 * SECOND) == {"one"}
    # Between the two it may be sent, and need not.
    assert attempted(outbox, Fate.DONE, NOW + 30 * SECOND)


@pytest.mark.parametrize("status", ["pending", "dead"])
def test_what_is_no_answer_leaves_open_whether_a_row_is_tried_again(status: str) -> None:
    outbox = taken_in()
    assert attempted(outbox, Fate.UNDONE)
    assert outbox.narrow(stored(outbox, status=status)) is None
    assert outbox.is_dead("one") is (status == "dead")


def test_a_daemon_that_died_leaves_open_how_many_attempts_count() -> None:
    for attempts in (0, 1):
        for status in ("inflight", "pending"):
            outbox = taken_in()
            outbox.died(NOW, {})
            assert outbox.narrow(stored(outbox, attempts=attempts, status=status)) is None
            assert outbox.due(NOW + 600 * SECOND) == {"one"}
    outbox = taken_in()
    outbox.died(NOW, {"one": ((Fate.DONE,), "message")})
    assert outbox.narrow(stored(outbox, attempts=2)) is not None


def test_every_kind_of_answer_is_drawn_once_and_no_round_waits_for_two_late_ones() -> None:
    for seed in range(20):
        rounds = [dict(step.args)["answers"] for step in every_answer(Random(seed)) if step.what == "deliver"]
        drawn = [name for answers in rounds for name in answers]
        assert set(ANSWERS) <= set(drawn)
        steps = draw(Random(seed), 60, 2)
        assert all(dict(step.args)["answers"].count("late") < 2 for step in steps if "answers" in dict(step.args))


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_the_time_of_a_row_is_taken_in_any_unit_and_another_time_is_a_difference(unit: int) -> None:
    moment = int(NOW.timestamp())
    assert taken_in().narrow(stored(taken_in(), enqueued_at=moment * unit)) is None
    assert taken_in().narrow(stored(taken_in(), enqueued_at=(moment + 60) * unit)) is not None
