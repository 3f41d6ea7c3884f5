"""Accept is one transaction: all of it or nothing, at every failpoint and for every observer."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time

import pytest

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.calyx_replay.failpoints import Point
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import Store
from tests.calyx_replay.conftest import Box, Opener, envelope, key_of, later, outcome

POINTS = [point.value for point in Point]
WAIT_S = 10.0


def test_the_first_is_delivered_and_the_second_is_named_in_the_refusal(box: Box) -> None:
    raw = envelope()
    assert box.outcome(raw) == "new"
    before = box.value("state")
    box.session.set_clock(later(seconds=60))
    answer = box.send(raw)
    assert outcome(answer) == "REPLAY_DUPLICATE"
    assert getattr(answer, "data", None) == {"replay_key": key_of(raw)}
    assert box.value("state") == before
    assert box.delivered() == [key_of(raw)]


def test_a_refused_envelope_poisons_nothing(box: Box) -> None:
    raw = envelope()
    broken = raw.replace(b'"ciphertext":"', b'"ciphertext":"AAAA')
    assert box.outcome(broken) == "SIGNATURE_INVALID"
    assert box.outcome(raw) == "new"


@pytest.mark.parametrize("point", POINTS)
def test_an_accept_that_fails_leaves_all_or_nothing(box: Box, point: str) -> None:
    raw = envelope()
    box.value("hold_at", point=point, fault="abort")
    committed = point == "after_commit"
    assert box.outcome(raw) == ("indeterminate" if committed else "STORE_UNAVAILABLE")
    assert box.keys() == ({key_of(raw)} if committed else set())
    assert box.delivered() == sorted(box.keys())
    assert box.outcome(raw) == ("REPLAY_DUPLICATE" if committed else "new")


@pytest.mark.parametrize("point", POINTS)
def test_a_prune_that_fails_leaves_all_or_nothing(box: Box, point: str) -> None:
    for hours in (25, 26, 27):
        box.put(f"2025-12-31 {36 - hours:02d}:00:00")
    box.value("hold_at", point=point, fault="abort")
    committed = point == "after_commit"
    answer = box.call("prune")
    assert outcome(answer) == ("new" if committed else "STORE_UNAVAILABLE")
    assert len(box.keys()) == (0 if committed else 3)
    assert outcome(box.call("prune")) == ("prior" if committed else "new")


def test_an_armed_point_is_for_one_operation(box: Box) -> None:
    box.value("hold_at", point="before_commit", fault="abort")
    assert box.outcome(b"{}") == "ENVELOPE_MALFORMED"
    assert box.outcome(envelope()) == "new"


def test_another_worker_is_refused_while_one_is_held_and_sees_what_it_did(opener: Opener) -> None:
    first, second, raw = opener(), opener(), envelope()
    first.value("hold_at", point="after_insert", fault="hold")
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(first.send(raw)))
    thread.start()
    reached = first.workdir / "hold/after_insert.reached"
    ends = time.monotonic() + WAIT_S
    while not reached.exists():
        assert time.monotonic() < ends
        time.sleep(0.005)
    assert second.outcome(raw) == "STORE_UNAVAILABLE"
    assert second.keys() == set()
    (first.workdir / "hold/after_insert.release").touch()
    thread.join()
    assert [outcome(answer) for answer in answers] == ["new"]
    assert second.outcome(raw) == "REPLAY_DUPLICATE"
    assert second.delivered() == [key_of(raw)]


class SeesNothing(Store):
    def has(self, connection: sqlite3.Connection, key: str) -> bool:
        return False


def test_a_key_violation_is_a_replay_too(opener: Opener) -> None:
    box, raw = opener(parts={"store": SeesNothing}), envelope()
    assert box.outcome(raw) == "new"
    assert box.outcome(raw) == "REPLAY_DUPLICATE"
    assert len(box.delivered()) == 1


def test_what_was_accepted_is_there_after_a_restart(opener: Opener) -> None:
    box, raw = opener(), envelope()
    assert box.outcome(raw) == "new"
    box.session.close()
    assert opener().outcome(raw) == "REPLAY_DUPLICATE"
    assert opener(fresh=True).outcome(raw) == "new"


def test_an_envelope_is_in_the_inbox_as_it_came(box: Box) -> None:
    raw = envelope()
    assert box.outcome(raw) == "new"
    location = Location(box.workdir, load_settings({}))
    with contextlib.closing(sqlite3.connect(location.database)) as connection:
        assert connection.execute("SELECT replay_key, envelope FROM inbox").fetchall() == [(key_of(raw), raw)]
