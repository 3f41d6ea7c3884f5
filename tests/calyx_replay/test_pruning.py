"""Which records are pruned, by first receipt in every form of older versions; and automatic pruning."""

from __future__ import annotations

import math
import sqlite3
from datetime import timedelta
from typing import Any

import pytest

from holdfast.reference_impl.calyx_replay.store import Store
from tests.calyx_replay.conftest import NOW, Box, Opener, envelope, later, outcome

CUTOFF = NOW - timedelta(hours=24)


def forms(offset: timedelta) -> list[object]:
    """The instant CUTOFF + offset in every form that older versions left."""
    at = CUTOFF + offset
    east = (at + timedelta(hours=5, minutes=30)).replace(tzinfo=None)
    west = (at - timedelta(hours=11)).replace(tzinfo=None)
    naive = at.replace(tzinfo=None)
    return [
        naive.isoformat(sep=" ", timespec="microseconds"),
        naive.isoformat(timespec="microseconds"),
        f"{naive.isoformat(timespec='microseconds')}Z",
        f"{naive.isoformat(sep=' ', timespec='microseconds')}+00:00",
        f"{east.isoformat(timespec='microseconds')}+05:30",
        f"{west.isoformat(sep=' ', timespec='microseconds')}-11:00",
    ]


def test_what_was_seen_strictly_before_the_cutoff_goes_in_every_form(box: Box) -> None:
    step = timedelta(microseconds=1)
    older = {box.put(form) for form in forms(-step)}
    older |= {box.put(int(CUTOFF.timestamp()) - 1), box.put(CUTOFF.timestamp() - 0.001)}
    older |= {
        box.put(form) for form in ("2025-12-31 11:59:59", "2025-12-31T11:59:59Z", "1999-01-01T00:00:00.5Z", 0, -1)
    }
    kept = {box.put(form) for form in (*forms(timedelta(0)), *forms(step))}
    kept |= {box.put(int(CUTOFF.timestamp())), box.put(CUTOFF.timestamp()), box.put(CUTOFF.timestamp() + 0.001)}
    kept |= {
        box.put(form)
        for form in ("2025-12-31 12:00:00", "2026-01-01", "soon", b"x", 1767268800000, "9999-12-31T00:00:00Z")
    }
    unreadable = 4
    assert box.value("prune") == {"removed": len(older), "kept": len(kept), "unreadable": unreadable}
    assert box.keys() == kept
    assert outcome(box.call("prune")) == "prior"


def test_the_time_in_the_envelope_decides_nothing(box: Box) -> None:
    kept = box.put("2026-01-01 11:00:00", envelope_timestamp="1999-01-01T00:00:00Z")
    box.put("2025-12-30 11:00:00", envelope_timestamp="2026-01-01T12:00:00Z")
    assert box.value("prune") == {"removed": 1, "kept": 1, "unreadable": 0}
    assert box.keys() == {kept}


@pytest.mark.parametrize(("hours", "left"), [(12, 1), (24, 2), (48, 3), (10**9, 4), (1e300, 4), (600 / 3600, 0)])
def test_the_retention_asked_for_counts(box: Box, hours: float, left: int) -> None:
    for age in (1, 13, 36, 100):
        box.put((NOW - timedelta(hours=age)).isoformat())
    assert box.value("prune", retention_hours=hours)["kept"] == left


@pytest.mark.parametrize("hours", [0, -1, -24, 0.01, 0.1666, math.nan, math.inf, -math.inf, -1e300, -(10**9)])
def test_a_retention_that_would_forget_admissible_mail_is_refused(box: Box, hours: float) -> None:
    box.put("1999-01-01 00:00:00")
    assert outcome(box.call("prune", retention_hours=hours)) == "RETENTION_TOO_SHORT"
    assert len(box.keys()) == 1


@pytest.mark.parametrize(
    "args", [{"retention_hours": "24"}, {"retention_hours": None}, {"retention_hours": True}, {"x": 1}, []]
)
def test_arguments_that_make_no_sense_are_malformed(box: Box, args: Any) -> None:
    assert outcome(box.session.call("prune", args)) == "REQUEST_MALFORMED"


def test_nobody_asks_and_old_rows_go_once_a_day(opener: Opener) -> None:
    box = opener()
    assert box.value("pruned") == {"automatic": 0}
    for hour in range(241):
        box.session.set_clock(later(hours=hour))
        assert box.outcome(envelope(at=later(hours=hour))) == "new"
        assert box.value("pruned")["automatic"] == hour // 24
        assert len(box.keys()) <= 49
    assert len(box.delivered()) == 241


def test_a_refusal_prunes_nothing(box: Box) -> None:
    box.session.set_clock(later(hours=23))
    raw = envelope(at=later(hours=24))
    box.put("1999-01-01 00:00:00")
    box.session.set_clock(later(hours=24))
    assert box.outcome(raw) == "new"
    assert box.value("pruned")["automatic"] == 1
    box.put("1999-01-01 00:00:00")
    box.session.set_clock(later(hours=24, minutes=1))
    assert box.outcome(raw) == "REPLAY_DUPLICATE"
    assert len(box.keys()) == 2


def test_a_start_prunes_if_it_is_due(opener: Opener) -> None:
    box = opener()
    box.put("1999-01-01 00:00:00")
    box.session.close()
    assert len(opener(now=later(hours=23)).keys()) == 1
    box = opener(now=later(hours=24))
    assert box.keys() == set()
    assert box.value("pruned") == {"automatic": 1}


def test_a_clock_that_was_far_ahead_does_not_end_pruning(opener: Opener) -> None:
    box = opener(now=later(days=30000))
    box.session.set_clock(NOW)
    assert box.outcome(envelope()) == "new"
    box.session.set_clock(later(hours=25))
    assert box.outcome(envelope(at=later(hours=25))) == "new"
    assert len(box.keys()) == 1


class Fails(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        raise sqlite3.OperationalError("disk I/O error")


def test_an_automatic_prune_that_fails_keeps_nobodys_mail_back(opener: Opener) -> None:
    box = opener(parts={"store": Fails})
    box.put("1999-01-01 00:00:00")
    box.session.set_clock(later(hours=24))
    assert box.outcome(envelope(at=later(hours=24))) == "new"
    assert len(box.keys()) == 2
    assert outcome(box.call("prune")) == "STORE_UNAVAILABLE"
    # The next caller tries it again.
    assert opener(now=later(hours=24)).value("pruned") == {"automatic": 1}
