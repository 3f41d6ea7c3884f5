"""What is written, what is read back, and what a restart changes, which is nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast.reference_impl.m5_log.opening import LAST_CHECKPOINT, UUID, VERSION, WATERMARK, number
from holdfast.reference_impl.m5_log.terms import Family, Reason, RefusedError, StoreError
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, draft, id_of, random_drafts, raw_of


def test_an_operation_is_three_rows_and_its_bytes_are_as_they_came(box: Box) -> None:
    first = draft(5)
    second = draft(258, by="bob", parents=[id_of(first)])
    box.put_all([first, second])
    ids = [bytes.fromhex(id_of(each)) for each in (first, second)]
    assert box.rows(Family.OPS) == {op_id: raw_of(each) for op_id, each in zip(ids, (first, second), strict=True)}
    assert box.rows(Family.EDGES) == {ids[0]: b"", ids[1]: ids[0]}
    assert box.rows(Family.BY_AUTHOR) == {
        derive.key_of(each["key"]) + derive.hlc(each["ms"]) + op_id: b""
        for op_id, each in zip(ids, (first, second), strict=True)
    }


def test_a_fresh_store_says_what_it_is(box: Box) -> None:
    meta = box.rows(Family.META)
    assert meta[VERSION] == b"ecac:v1"
    assert len(meta[UUID]) == 36
    assert meta[LAST_CHECKPOINT] == meta[WATERMARK] == number(0)
    assert box.order() == []
    assert box.problems() == []


def test_two_stores_have_two_identities_and_one_state(tmp_path: Path) -> None:
    boxes = [Box(tmp_path / name) for name in "ab"]
    for box in boxes:
        box.root.mkdir()
        box.make().put_all([draft(1), draft(2)])
    first, second = boxes
    assert first.rows(Family.META)[UUID] != second.rows(Family.META)[UUID]
    assert first.full() == second.full()
    assert first.again().rows(Family.META)[UUID] == first.rows(Family.META)[UUID]


def test_an_operation_that_is_put_again_is_prior_and_changes_nothing(box: Box) -> None:
    each = draft()
    assert box.put(each).new
    before = {family: box.rows(family) for family in Family}
    assert [box.put(each).new for _ in range(3)] == [False] * 3
    again = box.again()
    assert not again.put(each).new
    assert {family: again.rows(family) for family in Family} == before


def test_a_refused_operation_leaves_nothing(box: Box) -> None:
    box.put(draft(1))
    before = {family: box.rows(family) for family in Family}
    for raw in (b"", raw_of({**draft(2), "signer": "mallory"}), raw_of({**draft(2), "tail": "00"})):
        with pytest.raises(RefusedError):
            box.parts.log.put(raw)
    assert {family: box.rows(family) for family in Family} == before


def test_a_child_waits_for_its_parents_over_a_restart_and_then_stands_once(box: Box) -> None:
    parent = draft(9)
    child = draft(1, parents=[id_of(parent)])
    grandchild = draft(0, parents=[id_of(child)])
    other = draft(5)
    box.put(other)
    assert box.put(grandchild).pending
    put = box.put(child)
    assert put.pending
    assert [op_id.hex() for op_id in put.missing] == [id_of(parent)]
    again = box.again()
    assert again.order() == [id_of(other)]
    assert not again.put(parent).pending
    expected = [id_of(each) for each in (other, parent, child, grandchild)]
    assert again.order() == expected
    assert again.again().order() == expected


@pytest.mark.parametrize("seed", range(4))
def test_the_state_does_not_depend_on_the_order_of_arrival_or_on_restarts(tmp_path: Path, seed: int) -> None:
    drafts = random_drafts(seed, 25)
    expected = derive.state({"ops": drafts})
    for again in range(3):
        root = tmp_path / str(again)
        root.mkdir()
        box = Box(root).make()
        chosen = random.Random(again)
        arrived = chosen.sample(drafts, k=len(drafts))
        for each in arrived:
            box.put(each)
            if chosen.random() < 0.15:
                box = box.again()
            if chosen.random() < 0.15:
                box.parts.log.checkpoint_create()
            if chosen.random() < 0.15:
                box.live()
        assert box.live() == box.full() == box.latest()[0] == expected
        assert box.order() == derive.order(drafts)
        assert box.problems() == []
        box = box.again()
        assert box.live() == box.full() == box.latest()[0] == expected
        box.parts.store.release()


def test_a_file_is_appended_whole_or_not_at_all(box: Box) -> None:
    good = [derive.op(draft(ms)) for ms in range(5)]
    bad = derive.op({**draft(7), "signer": "mallory"})
    with pytest.raises(RefusedError) as caught:
        box.parts.log.put_file(derive.decoded(derive.batch([*good[:2], bad, *good[2:]])))
    assert caught.value.reason is Reason.SIGNATURE_INVALID
    assert box.order() == []
    puts = box.parts.log.put_file(derive.decoded(derive.batch([*good, good[0]])))
    assert [put.new for put in puts] == [True] * 6
    assert len(box.order()) == 5
    assert box.problems() == []


def test_every_batch_is_written_and_synced_once(box: Box) -> None:
    box.put(draft(0))
    assert box.parts.store.held is not None
    before = box.parts.store.held.database.tickers()
    for ms in range(1, 6):
        box.put(draft(ms))
    box.parts.log.persist_vc(b"a.b.c".replace(b"a", b"YQ").replace(b"b", b"Yg").replace(b"c", b"Yw"))
    box.parts.log.checkpoint_create()
    box.put(draft(0))
    after = box.parts.store.held.database.tickers()
    assert (after.wal_synced - before.wal_synced, after.wal_writes - before.wal_writes) == (7, 7)


def test_a_second_writer_is_refused_and_a_reader_is_not(box: Box) -> None:
    box.put(draft(1))
    other = Box(box.root)
    with pytest.raises(StoreError):
        other.put(draft(2))
    assert other.order() == [id_of(draft(1))]
    box.put(draft(2))
    assert other.order() == [id_of(draft(1)), id_of(draft(2))]
    box.parts.store.release()
    assert other.put(draft(3)).new
    other.parts.store.release()


def test_a_scan_of_an_author_is_in_the_order_of_time(box: Box) -> None:
    drafts = [draft(ms) for ms in (65536, 256, 1, 255)]
    box.put_all([*drafts, draft(2, by="bob")])
    found = box.parts.observing.scan(derive.key_of("alice"), derive.hlc(1), derive.hlc(256))
    assert found["op_ids"] == [id_of(draft(ms)) for ms in (1, 255, 256)]
