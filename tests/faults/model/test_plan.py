"""The order of work, and what it counts."""

from __future__ import annotations

from itertools import islice

import pytest

from conformance.faults.model import Kind, Plan, Stage
from tests.faults.model.script import Script, tree


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
    assert [each.state.kind for each in first] == [Kind.MINIMUM] * 4
    assert [max(each.numbers) for each in first] == [3, 6, 9, 12]
    assert [len(tree(each.state)["log"] or b"") for each in first] == [700, 1400, 2100, 2800]


def test_the_bug_of_acknowledging_before_syncing_is_one_restart_away() -> None:
    first = next(iter(Plan(log(sync=False).recording)))
    assert tree(first.state) == {"log": b""}
    # It is one tree at each acknowledgement, and the last of them wants most.
    assert max(first.numbers) == 8
    assert first.state.text == "unsynced dropped: log had 700 unsynced bytes (op 1, never synced)"


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
    assert plan.tally(3) == f"3 of {plan.count()} states, seed 0"
    assert [(each.state.hash, each.numbers) for each in plan] == [(each.state.hash, each.numbers) for each in every]


def test_a_tree_that_is_legal_at_later_points_comes_again_with_them() -> None:
    again = [each for each in Plan(log().recording) if each.again]
    assert again
    assert all(each.numbers for each in again)


def test_a_tree_is_told_of_in_the_words_of_each_point() -> None:
    script = Script(journal=b"undo")
    before = script.ack()
    script.unlink("journal")
    after = script.ack()
    first = next(iter(Plan(script.recording)))
    assert first.numbers == (0, before, before + 1, after)
    assert first.at(before).text == "unsynced dropped: nothing was pending"
    assert first.at(after).text == (
        f"unsynced dropped: a change of names had not been synced (op {before + 1} -journal)"
    )
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


def test_another_seed_gives_another_order_of_the_same_trees() -> None:
    one, two = ([each.state.hash for each in Plan(log().recording, seed=seed)] for seed in (1, 2))
    assert one != two
    assert one[:4] == two[:4]


def test_an_empty_recording_has_one_state() -> None:
    plan = Plan(Script(a=b"1").recording)
    assert [tree(each.state) for each in plan] == [{"a": b"1"}]
    assert plan.tally(1) == "1 of 1 states, seed 0"
