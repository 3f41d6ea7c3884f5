"""From every checkpoint a replay ends where a full one does, or does not use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.reference_impl.m5_log.cbor import decode, encode
from holdfast.reference_impl.m5_log.checkpoints import Checkpoints
from holdfast.reference_impl.m5_log.opening import LAST_CHECKPOINT, number
from holdfast.reference_impl.m5_log.replay import Source
from holdfast.reference_impl.m5_log.state import Snapshots
from holdfast.reference_impl.m5_log.terms import Family, Reason, RefusedError
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, draft, id_of, random_drafts


def refused(box: Box, checkpoint_id: int) -> Reason:
    with pytest.raises(RefusedError) as caught:
        box.parts.log.checkpoint_load(checkpoint_id)
    return caught.value.reason


def listed(box: Box) -> tuple[list[int], int | None]:
    found = box.parts.observing.checkpoints()
    return [each["checkpoint_id"] for each in found["checkpoints"]], found["latest"]


def test_there_is_none_in_the_beginning(box: Box) -> None:
    assert listed(box) == ([], None)
    assert refused(box, 0) is refused(box, 1) is Reason.CHECKPOINT_UNKNOWN


def test_a_checkpoint_of_nothing_is_one(box: Box) -> None:
    made = box.parts.log.checkpoint_create()
    assert (made.checkpoint_id, made.topo_index) == (1, 0)
    box.put(draft())
    assert box.latest() == (box.full(), 1)


def test_ids_increase_and_none_is_used_twice(box: Box) -> None:
    box.put(draft())
    assert [box.parts.log.checkpoint_create().checkpoint_id for _ in range(3)] == [1, 2, 3]
    box.parts.log.checkpoint_delete(3)
    assert listed(box) == ([1, 2], 2)
    again = box.again()
    assert again.parts.log.checkpoint_create().checkpoint_id == 4
    for checkpoint_id in (1, 2, 4):
        again.parts.log.checkpoint_delete(checkpoint_id)
    assert listed(again) == ([], None)
    assert again.rows(Family.META)[LAST_CHECKPOINT] == number(0)
    with pytest.raises(RefusedError):
        again.parts.log.checkpoint_delete(4)
    assert again.parts.log.checkpoint_create().checkpoint_id == 5
    assert again.problems() == []


def test_three_hundred_checkpoints_are_in_the_order_of_their_numbers(box: Box) -> None:
    for _ in range(300):
        box.parts.log.checkpoint_create()
    assert listed(box) == (list(range(1, 301)), 300)


@pytest.mark.parametrize("seed", range(3))
def test_every_checkpoint_of_a_history_leads_to_the_state_of_a_full_replay(box: Box, seed: int) -> None:
    drafts = random_drafts(seed, 30)
    ordered = {id_of(each): each for each in drafts}
    box.put_all([ordered[op_id] for op_id in derive.order(drafts)][:20])
    states = []
    for index in range(21):
        made = box.parts.log.checkpoint_create(index)
        assert made.topo_index == index
        states.append(box.parts.snapshots.json(box.parts.log.checkpoint_load(made.checkpoint_id)))
    expected = box.full()
    assert states[-1] == expected
    for checkpoint_id in range(21, 0, -1):
        assert box.latest() == (expected, checkpoint_id)
        box.parts.log.checkpoint_delete(checkpoint_id)
    assert box.latest() == (expected, None)
    box.put_all(drafts)
    assert box.latest()[0] == box.full() == derive.state({"ops": drafts})


def test_a_late_operation_before_its_end_makes_a_checkpoint_stale(box: Box) -> None:
    box.put_all([draft(10), draft(20)])
    box.parts.log.checkpoint_create(1)
    box.parts.log.checkpoint_create(2)
    box.put(draft(15))
    assert box.latest() == (box.full(), 1)
    assert refused(box, 2) is Reason.CHECKPOINT_STALE
    box.put(draft(5))
    assert box.latest() == (box.full(), None)
    assert refused(box, 1) is Reason.CHECKPOINT_STALE
    assert box.problems() == []
    assert box.live() == box.full()


def test_a_checkpoint_of_an_end_that_is_behind_the_order_is_refused(box: Box) -> None:
    box.put(draft())
    with pytest.raises(RefusedError) as caught:
        box.parts.log.checkpoint_create(2)
    assert caught.value.reason is Reason.RANGE_INVALID


def test_a_changed_byte_anywhere_in_a_checkpoint_is_noticed(box: Box) -> None:
    box.put_all([draft(ms) for ms in range(3)])
    box.parts.log.checkpoint_create()
    row = box.rows(Family.CHECKPOINTS)[number(1)]
    expected = box.full()
    for at in range(0, len(row), 5):
        box.alter(Family.CHECKPOINTS, number(1), row[:at] + bytes([row[at] ^ 1]) + row[at + 1 :])
        assert refused(box, 1) is Reason.CHECKPOINT_DAMAGED
        assert box.latest() == (expected, None)
        assert [problem.family for problem in box.problems()] == ["checkpoints"]
    for wrong in (b"", row[:-1], row + b"\x00", b"\xa0"):
        box.alter(Family.CHECKPOINTS, number(1), wrong)
        assert refused(box, 1) is Reason.CHECKPOINT_DAMAGED


def test_a_checkpoint_of_another_store_is_not_used(box: Box, tmp_path: Path) -> None:
    other = Box(tmp_path / "other")
    other.root.mkdir()
    other.make().put_all([draft(1), draft(2, by="bob")])
    other.parts.log.checkpoint_create()
    foreign = other.rows(Family.CHECKPOINTS)[number(1)]
    other.parts.store.release()
    box.put_all([draft(1), draft(2)])
    box.parts.log.checkpoint_create()
    box.alter(Family.CHECKPOINTS, number(1), foreign)
    assert refused(box, 1) is Reason.CHECKPOINT_STALE
    assert box.latest() == (box.full(), None)


def test_a_state_that_was_forged_with_a_right_digest_is_found_by_verification(box: Box) -> None:
    box.put_all([draft(1), draft(2)])
    box.parts.log.checkpoint_create()
    snapshots = Snapshots()
    checkpoints = Checkpoints(snapshots)
    state = box.parts.log.checkpoint_load(1)
    state.registers["k"] = encode("forged")
    with box.opened() as opened:
        forged, changes = checkpoints.created(opened.database, state)
    box.alter(Family.CHECKPOINTS, number(1), changes[0][2])
    assert forged.topo_index == 2
    assert [problem.family for problem in box.problems()] == ["checkpoints"]


def test_equal_states_have_equal_snapshots_however_they_came_about(box: Box, tmp_path: Path) -> None:
    drafts = [draft(ms, key=f"k{ms}", value=ms) for ms in range(5)]
    other = Box(tmp_path / "other")
    other.root.mkdir()
    other.make().put_all(drafts[::-1])
    box.put_all(drafts)
    snapshots = []
    for each in (box, other):
        each.live()
        each.parts.log.checkpoint_create()
        snapshots.append(each.parts.observing.checkpoints()["checkpoints"][0]["snapshot"])
    other.parts.store.release()
    assert snapshots[0] == snapshots[1]
    value = decode(derive.decoded(snapshots[0]), max_depth=4)
    assert encode(value) == derive.decoded(snapshots[0])


def test_checkpoints_change_neither_the_state_nor_the_verification(box: Box) -> None:
    box.put_all([draft(1), draft(2)])
    before = box.full()
    box.parts.log.checkpoint_create()
    box.parts.log.checkpoint_load(1)
    assert box.full() == box.live() == before
    assert box.problems() == []


@pytest.mark.parametrize("source", list(Source))
def test_a_range_holds_both_of_its_ends(box: Box, source: Source) -> None:
    box.put_all([draft(ms, kind="add", key="c", amount=10**ms) for ms in range(5)])

    def applied(first: int, last: int) -> str:
        with box.opened() as opened:
            return box.parts.snapshots.json(box.parts.replay.incremental(opened, first, last, source))

    assert applied(1, 5) == applied(3, 5) == applied(5, 5) == applied(6, 5) == box.full()
    assert '"counters":{"c":"111"}' in applied(2, 3)
    assert applied(3, 2) == applied(1, 2)
    assert '"applied":0' in applied(1, 0)
    for first, last in ((0, 3), (4, 2), (1, 6), (6, 6), (7, 6), (0, 0)):
        with pytest.raises(RefusedError) as caught:
            applied(first, last)
        assert caught.value.reason is Reason.RANGE_INVALID
