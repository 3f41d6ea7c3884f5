"""The order of work, and what it counts."""

from __future__ import annotations

import gc
import tracemalloc
from itertools import islice

import pytest

from holdfast.conformance.faults.model import survey
from holdfast.conformance.faults.model.disk import Point
from holdfast.conformance.faults.model.plan import Plan
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.model.survey import Stage
from holdfast.conformance.faults.recording import ROOT, Ending, Entry, Operation, Recording, Type, Write
from tests.faults.model.script import Script, told, tree


def log(*, sync: bool = True, count: int = 4) -> Script:
    script = Script(log=b"")
    for number in range(count):
        script.append("log", b"%d" % number * 700)
        if sync:
            script.fsync("log", data_only=True)
        script.ack()
    return script


def test_the_minimum_at_each_acknowledgement_comes_first() -> None:
    first = list(islice(Plan(log().recording), 4))
    assert [each.stage for each in first] == [Stage.ACKNOWLEDGED] * 4
    assert [each.state.kind for each in first] == [StateRule.MINIMUM] * 4
    assert [max(each.numbers) for each in first] == [3, 6, 9, 12]
    assert [len(tree(each.state)["log"] or b"") for each in first] == [700, 1400, 2100, 2800]


def test_the_bug_of_acknowledging_before_syncing_is_one_restart_away() -> None:
    first = next(iter(Plan(log(sync=False).recording)))
    assert tree(first.state) == {"log": b""}
    # It is one tree at each acknowledgement, and the last of them wants most.
    assert max(first.numbers) == 8
    assert first.state.text == "unsynced dropped: log had 700 unsynced bytes (op 1, never synced)"


def test_of_acknowledgements_that_leave_the_same_unsynced_a_long_session_owes_the_last() -> None:
    script = Script(log=b"")
    for number in range(5):
        script.append("log", b"%d" % number * 700)
        if number not in (1, 2):
            script.fsync("log", data_only=True)
        script.ack()
    owed = [one for one in Plan(script.recording, alike=True) if one.stage in (Stage.ACKNOWLEDGED, Stage.REPLACED)]
    assert [len(tree(one.state)["log"] or b"") for one in owed] == [700, 3500]
    every = [one for one in Plan(script.recording) if one.stage is Stage.ACKNOWLEDGED]
    assert len(every) > len(owed)


def test_what_is_to_replace_bytes_that_were_synced_is_tried_without_its_own() -> None:
    cut = told("has store 1*2100; has log 2*4200; write store 3*2100; truncate log 0; ack")
    found = [tree(one.state) for one in Plan(cut.recording) if one.stage is Stage.REPLACED]
    assert found == [{"store": b"1" * 2100, "log": b""}]
    moved = told("has store 1*2100; create copy; append copy 1*2100; rename copy store; ack")
    found = [tree(one.state) for one in Plan(moved.recording) if one.stage is Stage.REPLACED]
    assert found == [{"store": bytes(2100)}]
    assert not [one for one in Plan(log(sync=False).recording) if one.stage is Stage.REPLACED]


def test_only_the_events_that_are_named_are_acknowledgements() -> None:
    first = list(islice(Plan(log().recording, acknowledgements=[6]), 2))
    assert [each.stage for each in first] == [Stage.ACKNOWLEDGED, Stage.ORDERED]
    assert first[0].numbers == (5, 6)


def test_stages_come_in_order_and_each_tree_counts_once() -> None:
    plan = Plan(log().recording)
    every = list(plan)
    order = [list(Stage).index(each.stage) for each in every]
    assert order == sorted(order)
    counted = [each.state.hash for each in every if not each.again]
    assert len(counted) == len(set(counted)) == plan.count()
    assert [(each.state.hash, each.numbers) for each in plan] == [(each.state.hash, each.numbers) for each in every]


def test_a_tree_is_told_of_in_the_words_of_each_point() -> None:
    first = next(iter(Plan(told("has journal undo; ack; unlink journal; ack").recording)))
    assert first.numbers == (0, 1, 2, 3)
    assert first.at(1).text == "unsynced dropped: nothing was pending"
    assert first.at(3).text == "unsynced dropped: a change of names had not been synced (op 2 -journal)"
    with pytest.raises(LookupError, match="got 4"):
        first.at(4)


def test_what_was_not_made_is_counted_at_most() -> None:
    plan = Plan(log(sync=False, count=30).recording)
    assert next(iter(plan)).stage is Stage.ACKNOWLEDGED
    assert plan.is_estimated
    about = plan.count()
    distinct = sum(not each.again for each in plan)
    assert distinct <= about
    assert plan.count() == distinct
    assert not plan.is_estimated


def files(count: int) -> Script:
    """Some files that are written to in turns, a few of them synced, one renamed now and then."""
    script = Script(a=b"", b=b"1" * 900)
    for number in range(count):
        name = "ab"[number % 2]
        script.append(name, b"%d" % (number % 10) * 300)
        if number % 3 == 0:
            script.fsync(name, data_only=True)
        if number % 5 == 0:
            script.create(f"new{number}")
            script.rename(f"new{number}", f"old{number}")
        script.ack()
    return script


@pytest.mark.parametrize("seed", [0, 7])
def test_a_recording_without_room_for_all_its_points_has_the_same_states(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(plan: Plan) -> tuple[dict[str, set[int]], list[str]]:
        found: dict[str, set[int]] = {}
        stages: list[str] = []
        for one in plan:
            found.setdefault(one.state.hash, set()).update(one.numbers)
            stages.append(one.stage.name)
        return found, stages

    recording = files(20).recording
    whole, _ = judged(Plan(recording, seed=seed))
    monkeypatch.setattr(survey, "_ROOM", 100_000)
    monkeypatch.setattr(survey, "_WORK", 20_000)
    plan = Plan(recording, seed=seed)
    assert len(list(plan._windows(Stage.PARTED))) > 3
    parts, stages = judged(plan)
    assert parts == whole
    assert stages == sorted(stages, key=[stage.name for stage in Stage].index)
    again = [(one.state.hash, one.numbers) for one in Plan(recording, seed=seed)]
    assert again == [(one.state.hash, one.numbers) for one in plan]
    assert plan.count() == len(whole)


def test_the_first_states_of_a_long_recording_come_from_all_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_ROOM", 200_000)
    script = files(100)
    plan = Plan(script.recording, acknowledgements=())
    first = [one.numbers[0] for one in islice(plan, 40)]
    assert max(first) - min(first) > len(script.operations) / 3
    firsts = plan.beginnings()
    assert len(firsts) < 40
    assert max(one.numbers[0] for one in firsts) > len(script.operations) / 3


def appends(count: int) -> Recording:
    """One file that grows, of which nothing is ever synced."""
    operations = tuple(
        Operation(number, number, 1, "call", Write(1, number * 9, b"%08d\n" % number)) for number in range(1, count + 1)
    )
    entries = (Entry(ROOT, Type.DIRECTORY, (b"",)), Entry(1, Type.FILE, (b"log",)))
    return Recording(("x",), entries, operations, Ending(0))


def test_few_points_of_a_long_recording_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_ROOM", 1 << 22)
    plan = Plan(appends(3000), acknowledgements=[1500, 3000])
    held = [one.state.kind for one in islice(plan, 40)]
    assert {*held} >= {StateRule.MINIMUM, StateRule.ALL}
    # Others may be left of other tests.
    assert sum(isinstance(one, Point) and one.live_names.paths == {b"log": 1} for one in gc.get_objects()) < 300


@pytest.mark.sweep
def test_memory_does_not_grow_with_what_is_written() -> None:
    count = 20_000
    plan = Plan(appends(count), acknowledgements=[count // 2, count])
    tracemalloc.start()
    try:
        assert len(list(islice(plan, 40))) == 40
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The points alone would hold 1.6 GB of lists of what is pending.
    assert most < 80_000_000 + 700 * count


def test_what_ends_the_time_ends_the_making_of_states() -> None:
    left = iter(range(50))

    def check() -> None:
        if next(left, None) is None:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        list(Plan(files(40).recording, check=check))


def renamed(*, back: bool) -> Script:
    """A rename that ext4 and xfs keep with the next record of a log, and btrfs does not."""
    again = "rename b a; " if back else ""
    return told(f"has a 1; has log; rename a b; {again}append log record; fsync log; ack")


@pytest.mark.parametrize(("back", "trees"), [(True, 1), (False, 2)])
def test_a_tree_that_all_file_systems_leave_is_one_restart(back: bool, trees: int) -> None:
    script = renamed(back=back)
    assert len(script.points()) > 1
    found = [one for one in Plan(script.recording) if one.stage is Stage.ACKNOWLEDGED]
    assert len(found) == trees
    assert sum(len(one.states) for one in found) == len(script.points())
    assert Plan(script.recording).count(Stage.ORDERED) == len(script.points())


def test_the_ways_of_one_point_are_in_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_ROOM", 1)
    found = [one for one in Plan(renamed(back=True).recording) if one.stage is Stage.ACKNOWLEDGED]
    assert [len({state.point.systems for state in one.states}) for one in found] == [2]
