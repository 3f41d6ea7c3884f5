"""One sentence reports a loss: the acknowledgement, the data without a sync at that time, and the result."""

from __future__ import annotations

import pytest

from holdfast.conformance.faults import story
from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.model.plan import Candidate, Plan
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.model.survey import Stage
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.promises import Promises
from tests.faults.model.script import Script

WORKLOAD = puts(2, size=60)
LOST = CrashOutcome(CrashClass.LOST, "all", "0 of 1 acknowledged operations: gone is operation 1 (PUT k1 v1)")


@pytest.fixture
def script() -> Script:
    """A log that is synced once, and then written to without a sync until the acknowledgement in event 4."""
    script = Script(log=b"")
    script.append("log", b"1" * 100)
    script.fsync("log")
    script.append("log", b"2" * 12_384)
    script.ack()
    return script


def minimum(script: Script, at: int) -> Candidate:
    """What is left of a crash behind this operation of all that was not synced."""
    plan = Plan(script.recording, acknowledgements=[at])
    return next(one for one in plan if one.stage is Stage.ACKNOWLEDGED)


def test_it_names_the_acknowledgement_and_what_was_not_synced(script: Script) -> None:
    told = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), minimum(script, 4), LOST)
    assert told == (
        f"The acknowledgement of `{WORKLOAD.ops[0].text}` left at event 4; at that time log had 12,384 unsynced "
        "bytes (op 3, last sync at op 2); after power loss (unsynced dropped) the store held 0 of 1 acknowledged "
        "operations."
    )


def test_it_says_when_more_was_done_before_the_power_failed(script: Script) -> None:
    last = script.append("log", b"3")
    script.ack()
    told = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), minimum(script, last + 1), LOST)
    assert f"left at event 4; when the power failed, after operation {last + 1}, log had 12,385 unsynced bytes" in told
    assert "(ops 3\N{EN DASH}5, last sync at op 2)" in told


def test_without_an_acknowledgement_it_says_when_the_power_failed(script: Script) -> None:
    told = story.of_power_loss(
        WORKLOAD, Promises({}, {}), minimum(script, 4), CrashOutcome(CrashClass.INIT, "a start", "none")
    )
    assert told.startswith("The power failed after operation 4; at that time log had 12,384 unsynced bytes")
    assert told.endswith("after power loss (unsynced dropped) the store did not come back.")


def test_it_says_on_which_file_systems_the_disk_may_stand_so() -> None:
    script = Script(a=b"", log=b"")
    script.rename("a", "b")
    script.append("log", b"1")
    script.fsync("log")
    script.ack()
    lost = next(one for one in Plan(script.recording, acknowledgements=[4]) if b"a" in one.state.tree)
    told = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), lost, LOST)
    assert "after power loss on btrfs (unsynced dropped)" in told
    assert story.marks(Promises({1: 1}, {1: 4}), lost).systems == "btrfs"


def test_it_says_which_part_of_a_write_is_there(script: Script) -> None:
    torn = next(one for one in Plan(script.recording) if one.state.kind is StateRule.TORN and 4 in one.numbers)
    told = story.of_power_loss(WORKLOAD, Promises({1: 1}, {1: 4}), torn, CrashOutcome(CrashClass.TORN, "all", "half"))
    assert "after power loss (torn write: of 12,384 bytes of operation 3 in log the first " in told
    assert told.endswith("kept) a write was there by half.")


def test_the_picture_gets_what_was_not_on_disk(script: Script) -> None:
    script.fsync("log", error=5)
    marks = story.marks(Promises({1: 1}, {1: 4}), minimum(script, 5))
    assert (marks.acknowledged, marks.crash, marks.lost) == ({1: 4}, 5, {3, 5})
