"""Timestamps, the window, the local time zone, and a clock that goes back."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.reference_impl.calyx_replay.timing import SeenAt, microseconds, written
from holdfast.reference_impl.session import OpenError
from tests.calyx_replay.conftest import NOW, Box, Opener, envelope, later

UNREADABLE = """
yesterday|now|2026-01-01|2026-01-01T12:00Z|2026-01-01T12:00:00|2026-01-01 12:00:00Z|2026-01-01T12:00:00z
2026-01-01t12:00:00Z|2026-01-01T12:00:00+00:00|2026-01-01T13:00:00+01:00|2026-01-01T12:00:00-00:00|20260101T120000Z
2026-01-01T12:00:60Z|2026-01-01T24:00:00Z|2026-02-29T12:00:00Z|2026-13-01T12:00:00Z|2026-00-01T12:00:00Z
0000-02-30T12:00:00Z|10000-01-01T12:00:00Z|+02026-01-01T12:00:00Z|2026-01-01T12:00:00.Z|2026-01-01T12:00:00,5Z
2026-01-01T12:00:00.1234567Z| 2026-01-01T12:00:00Z|2026-01-01T12:00:00Z |2026-01-01T12:00:00ZZ|1767268800
ARABIC-01-01T12:00:00Z|2026-W01-4T12:00:00Z|2026-001T12:00:00Z|2026-01-01T12:00:00Z\N{ZERO WIDTH SPACE}
-026-01-01T12:00:00Z
"""


def test_a_text_that_is_no_instant_in_utc_is_unreadable(box: Box) -> None:
    for text in [
        "",
        "2026-01-01T12:00:00Z\n",
        *UNREADABLE.strip().replace("ARABIC", "\u0662\u0660\u0662\u0666").replace("\n", "|").split("|"),
    ]:
        assert box.outcome(envelope(at=text)) == "TIMESTAMP_UNREADABLE", text
    assert box.keys() == set()


@pytest.mark.parametrize("at", ["0000-01-01T00:00:00Z", "0000-02-29T12:00:00.5Z", "0000-12-31T23:59:59.999999Z"])
def test_the_year_0000_is_outside_of_every_window(opener: Opener, at: str) -> None:
    for now in (NOW, datetime(1, 1, 1, tzinfo=UTC)):
        assert opener(now=now).outcome(envelope(at=at)) == "TIMESTAMP_OUT_OF_WINDOW"


@pytest.mark.parametrize("fraction", ["", ".0", ".00", ".000", ".000000"])
def test_every_fraction_of_up_to_six_digits_is_an_instant_and_is_stored_as_it_came(box: Box, fraction: str) -> None:
    assert box.outcome(envelope(at=f"2026-01-01T12:00:00{fraction}Z")) == "new"
    (row,) = box.value("state")["replay_state"]
    assert row["envelope_timestamp"] == f"2026-01-01T12:00:00{fraction}Z"


@pytest.mark.parametrize("side", [-1, 1])
def test_the_window_is_closed_to_the_microsecond(box: Box, side: int) -> None:
    edge, step = timedelta(seconds=300), timedelta(microseconds=1)
    assert box.outcome(envelope(at=NOW + side * (edge + step))) == "TIMESTAMP_OUT_OF_WINDOW"
    assert box.keys() == set()
    assert box.outcome(envelope(at=NOW + side * edge)) == "new"


@pytest.mark.parametrize(
    ("now", "at"), [("0001-01-01T00:00:00", "0001-01-01T00:01:00Z"), ("9999-12-31T23:59:59.999999",) * 2]
)
def test_the_first_and_the_last_instant_are_like_any_other(opener: Opener, now: str, at: str) -> None:
    box = opener(now=datetime.fromisoformat(f"{now}+00:00"))
    assert box.outcome(envelope(at=at.rstrip("Z") + "Z")) == "new"
    assert box.outcome(envelope()) == "TIMESTAMP_OUT_OF_WINDOW"
    box.value("prune")


def test_a_stale_replay_is_refused_for_its_time_and_not_as_a_replay(box: Box) -> None:
    raw = envelope()
    assert box.outcome(raw) == "new"
    box.session.set_clock(later(seconds=300, microseconds=1))
    assert box.outcome(raw) == "TIMESTAMP_OUT_OF_WINDOW"
    box.session.set_clock(later(hours=25))
    assert box.value("prune")["removed"] == 1
    assert box.outcome(raw) == "TIMESTAMP_OUT_OF_WINDOW"


def test_a_clock_that_goes_back_behind_a_prune_admits_nothing_again(box: Box) -> None:
    raw = envelope()
    assert box.outcome(raw) == "new"
    box.session.set_clock(later(hours=25))
    assert box.value("prune")["removed"] == 1
    box.session.set_clock(NOW)
    assert box.outcome(raw) == "REPLAY_UNPROVABLE"
    assert box.outcome(envelope()) == "REPLAY_UNPROVABLE"
    # The cutoff was at 13:00; nothing with a timestamp from 13:05 on can have been pruned.
    box.session.set_clock(later(hours=1, minutes=5))
    assert box.outcome(envelope(at=later(hours=1, minutes=5, microseconds=-1))) == "REPLAY_UNPROVABLE"
    assert box.outcome(envelope(at=later(hours=1, minutes=5))) == "new"
    # A smaller cutoff does not take the greatest one back.
    box.value("prune")
    assert box.outcome(envelope(at=later(hours=1, minutes=4))) == "REPLAY_UNPROVABLE"


def test_the_shortest_retention_forgets_nothing_that_is_admissible(box: Box) -> None:
    raw = envelope(at=later(minutes=5))
    assert box.outcome(raw) == "new"
    for minutes, removed, expected in ((10, 0, "REPLAY_DUPLICATE"), (10.001, 1, "TIMESTAMP_OUT_OF_WINDOW")):
        box.session.set_clock(later(minutes=minutes))
        assert box.value("prune", retention_hours=600 / 3600)["removed"] == removed
        assert box.outcome(raw) == expected
        # Mail of right now is still taken at the shortest retention.
        assert box.outcome(envelope(at=later(minutes=minutes))) == "new"


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Pacific/Kiritimati", "America/St_Johns", "Europe/Berlin"])
def test_nothing_depends_on_the_local_time_zone(opener: Opener, zone: str) -> None:
    # The night in which Berlin goes back from 3:00 to 2:00.
    now = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    before = os.environ.get("TZ")
    box = opener(timezone=zone, now=now)
    assert os.environ["TZ"] == zone
    assert box.outcome(envelope(at=now)) == "new"
    (row,) = box.value("state")["replay_state"]
    assert row["seen_at"] == "2026-10-25T00:30:00.000000Z"
    box.put("2026-10-24 00:29:59.999999")
    box.put("2026-10-24 00:30:00")
    assert box.value("prune") == {"removed": 1, "kept": 2, "unreadable": 0}
    box.session.close()
    assert os.environ.get("TZ") == before
    assert time.strftime("%Z") != "IST"


@pytest.mark.parametrize(
    "config",
    [
        {"timezone": "Mars/Base"},
        {"window_seconds": "-1"},
        {"window_seconds": "9" * 15},
        {"retention_hours": "x"},
        {"nothing": "1"},
        {"database_path": "../x"},
    ],
)
def test_a_config_that_makes_no_sense_opens_nothing(opener: Opener, config: dict[str, str]) -> None:
    with pytest.raises(OpenError, match=next(iter(config))):
        opener(**config)


def test_a_config_overrides_parameters(opener: Opener) -> None:
    box = opener(window_seconds="900", retention_hours="1")
    assert box.outcome(envelope(at=later(minutes=15))) == "new"
    assert box.call("prune", retention_hours=0.4).reason == "RETENTION_TOO_SHORT"  # type: ignore[union-attr]
    box.session.set_clock(later(hours=1, seconds=1))
    assert box.value("prune")["removed"] == 1


SEEN = {
    "2026-01-01T12:00:00Z": 0,
    "2026-01-01 12:00:00": 0,
    "2026-01-01 12:00:00+00:00": 0,
    "2026-01-01T12:00:00.000001Z": 1,
    "2026-01-01 12:00:00.1": 100_000,
    "2026-01-01T12:00:00.123456789Z": 123_456,
    "2026-01-01T14:30:00+02:30": 0,
    "2026-01-01T14:30:00+0230": 0,
    "2026-01-01T09:30:00.5-02:30": 500_000,
    1767268800: 0,
    1767268800.5: 500_000,
    1767268799.999999: -1,
}


def test_seen_at_is_read_in_every_form_of_older_versions() -> None:
    for stored, offset in SEEN.items():
        assert SeenAt().read(stored) == microseconds(NOW) + offset, stored
    for stored in (
        "",
        "soon",
        "2026-01-01",
        "2026-02-30 12:00:00",
        "2026-01-01 24:00:00",
        "2026-01-01T12:00:00+25:00",
        1767268800000,
        float("inf"),
        float("nan"),
        b"2026-01-01T12:00:00Z",
        None,
        -(10**17),
    ):
        assert SeenAt().read(stored) is None, stored
    assert written(NOW) == "2026-01-01T12:00:00.000000Z"
    assert written(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"
