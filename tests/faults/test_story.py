"""One sentence reports a loss: the acknowledgement, the data without a sync at that time, and the result."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from holdfast.conformance.faults import story
from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.model.plan import Candidate, Plan
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.model.survey import Stage
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.report import Deadline, Layer, Marks
from holdfast.conformance.faults.runs import Promises
from holdfast.conformance.faults.story import MOST_OPERATIONS, drawn
from tests.faults.model.script import Script, told
from tests.faults.stores.catalogue import BUGS, swept

WORKLOAD = puts(2, size=60)
LOST = CrashOutcome(CrashClass.LOST, "all", "0 of 1 acknowledged operations: gone is operation 1 (PUT k1 v1)")


# A log that is synced once, and then written to without a sync until the acknowledgement in event 4.
LOGGED = "has log; append log 1*100; fsync log; append log 2*12384; ack"
ASKED = WORKLOAD.ops[0].text


def minimum(script: Script, at: int) -> Candidate:
    """What is left of a crash behind this operation of all that was not synced."""
    plan = Plan(script.recording, acknowledgements=[at])
    return next(one for one in plan if one.stage is Stage.ACKNOWLEDGED)


@pytest.mark.parametrize(
    ("more", "at", "acknowledged", "verdict", "due"),
    [
        (
            "",
            4,
            {1: 4},
            LOST,
            f"The acknowledgement of `{ASKED}` left at event 4; at that time log had 12,384 unsynced bytes (op 3, last "
            "sync at op 2); after power loss (unsynced dropped) the store held 0 of 1 acknowledged operations.",
        ),
        # More was done before the power failed.
        (
            "; append log 3; ack",
            6,
            {1: 4},
            LOST,
            f"The acknowledgement of `{ASKED}` left at event 4; when the power failed, after operation 6, log had "
            "12,385 unsynced bytes (ops 3\N{EN DASH}5, last sync at op 2); after power loss (unsynced dropped) the "
            "store held 0 of 1 acknowledged operations.",
        ),
        (
            "",
            4,
            {},
            CrashOutcome(CrashClass.INIT, "a start", "none"),
            "The power failed after operation 4; at that time log had 12,384 unsynced bytes (op 3, last sync at op 2); "
            "after power loss (unsynced dropped) the store did not come back.",
        ),
    ],
)
def test_it_names_the_acknowledgement_what_was_not_synced_and_when_the_power_failed(
    more: str, at: int, acknowledged: dict[int, int], verdict: CrashOutcome, due: str
) -> None:
    promises = Promises(dict.fromkeys(acknowledged, 1), acknowledged)
    assert story.of_power_loss(WORKLOAD, promises, minimum(told(LOGGED + more), at), verdict) == due


def test_it_says_on_which_file_systems_the_disk_may_stand_so() -> None:
    script = told("has a; has log; rename a b; append log 1; fsync log; ack")
    lost = next(one for one in Plan(script.recording, acknowledgements=[4]) if b"a" in one.state.tree)
    text = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), lost, LOST)
    assert "after power loss on btrfs (unsynced dropped)" in text
    assert story.marks(Promises({1: 1}, {1: 4}), lost).systems == "btrfs"


def test_it_says_which_part_of_a_write_is_there() -> None:
    torn = next(one for one in Plan(told(LOGGED).recording) if one.state.kind is StateRule.TORN and 4 in one.numbers)
    text = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), torn, CrashOutcome(CrashClass.TORN, "all", "half"))
    assert "after power loss (torn write: of 12,384 bytes of operation 3 in log the first " in text
    assert text.endswith("kept) a write was there by half.")


def test_the_picture_gets_what_was_not_on_disk() -> None:
    marks = story.marks(Promises({1: 1}, {1: 4}), minimum(told(f"{LOGGED}; fsync! log"), 5))
    assert (marks.acknowledged, marks.crash, marks.lost) == ({1: 4}, 5, {3, 5})


# The picture of a recording: every fact in it can be read, by eye or aloud, and it needs nothing but itself.

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def logged() -> Script:
    """Two writes to a log, of which one is synced, and two acknowledgements."""
    return told("has log; append log 1*600; fsync log; ack; create new; append log 2*1200; ack")


def titles(picture: str) -> list[str]:
    """What the marks say of themselves; raises ParseError if it is no XML."""
    return [one.text or "" for one in Xml.fromstring(picture).iter(f"{_SVG}title")]


def test_what_was_lost_and_what_was_saved_is_said(logged: Script) -> None:
    picture = drawn(logged.recording, Marks({1: 3, 2: 6}, 6, {4, 5}), title="power loss: lost")
    said = titles(picture)
    assert "operation 1: 600 bytes at 0 of log; durable from operation 2 on" in said
    assert "operation 5: 1,200 bytes at 600 of log; never synced, LOST" in said
    assert "operation 4: names +new; never synced, LOST" in said
    assert "event 6: operation 2 of the workload was acknowledged, 3 bytes to pipe:1" in said
    assert "the crash, after operation 6" in said
    # Not by its colour alone.
    assert picture.count('fill="url(#lost)"') == 2 + 1


def test_what_was_on_disk_all_the_same_is_told_from_what_was_lost(logged: Script) -> None:
    said = titles(drawn(logged.recording, Marks(crash=5, lost={5}), title="t"))
    assert "operation 4: names +new; not synced, and on disk all the same" in said
    assert "operation 5: 1,200 bytes at 600 of log; never synced, LOST" in said


def test_it_can_be_read_aloud_and_needs_no_network(logged: Script) -> None:
    root = Xml.fromstring(drawn(logged.recording, Marks(), title="power loss: lost", words="Expected all."))
    assert root.get("role") == "img"
    named = [root.find(f".//*[@id='{name}']") for name in (root.get("aria-labelledby") or "").split()]
    assert [one.text for one in named if one is not None] == ["power loss: lost", "Expected all."]
    for element in root.iter():
        assert element.tag.removeprefix(_SVG) not in ("logged", "image", "use", "a", "style", "foreignObject")
        assert not [name for name in element.attrib if "href" in name or name.startswith("on")]
        assert not [
            value for value in element.attrib.values() if "//" in value or ("url(" in value and "#" not in value)
        ]


def test_names_and_words_from_outside_stay_text() -> None:
    logged = Script()
    logged.create("</text><logged>\x01&\n")
    logged.append("</text><logged>\x01&\n", b"1")
    picture = drawn(logged.recording, Marks(), title="</svg>\x00", words="a\x1bb <b>")
    assert "<logged>" not in picture
    assert "operation 1: names +</text><logged>\\x01&\\n; never synced" in titles(picture)
    assert "operation 2: 1 bytes at 0 of </text><logged>\\x01&\\n; never synced" in titles(picture)


def test_a_long_recording_is_shown_from_before_the_crash_on() -> None:
    logged = Script(log=b"")
    for _ in range(MOST_OPERATIONS + 500):
        logged.ack()
    crash = logged.append("log", b"1")
    picture = drawn(logged.recording, Marks(crash=crash, lost={crash}), title="t")
    assert f"operation {crash}: 1 bytes at 0 of log; never synced, LOST" in titles(picture)
    assert f"operations 1 to {crash - MOST_OPERATIONS:,} are not shown" in picture


@pytest.mark.usefixtures("tracer")
def test_a_kept_finding_gets_its_picture(tmp_path: Path) -> None:
    store = next(store for store in BUGS if store.name == "log-no_fsync")
    kept = tmp_path / "kept"
    with swept(store.command(), puts(3), parent=tmp_path, keep=kept) as sweep:
        report = sweep.trial(Layer.POWER).report(1)
    places = [story.draw(report.layer, finding, Deadline()) for finding in report.findings]
    assert places[0] == kept / "power-lost.svg"
    # The first of each class has one, in each of the two sessions; how many follow it depends on the machine.
    assert {*places} - {None} == {places[0], kept / "second-session" / "power-lost.svg"}
    picture = places[0].read_text(encoding="utf-8")
    assert "facts.log; never synced, LOST" in picture
    assert report.findings[0].verdict.came in Xml.fromstring(picture).findtext(f"{_SVG}desc", "")
