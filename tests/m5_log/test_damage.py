"""What RocksDB forgives silently is noticed, and what a crash may leave is opened."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast.reference_impl.m5_log.opening import MARKS
from holdfast.reference_impl.m5_log.terms import Family, Reason, RefusedError, StoreError
from holdfast.reference_impl.m5_log.witness import PERIOD, Mark, Witness, decode_marks, newest
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import DATABASE, Box, draft, id_of

COUNT = 20


@pytest.fixture
def filled(box: Box) -> Box:
    """A store of twenty operations in its log, closed as a crash closes it: nothing was flushed."""
    box.put_all([draft(ms) for ms in range(COUNT)])
    copy = box.root / "crashed"
    shutil.copytree(box.root / "m5", copy / "m5")
    box.parts.store.release()
    return Box(copy)


def log_of(box: Box) -> Path:
    """The log that holds the operations."""
    return max((box.root / DATABASE).glob("*.log"), key=lambda path: path.stat().st_size)


def refused(box: Box, reason: Reason = Reason.STORE_UNAVAILABLE) -> None:
    """Neither written nor read, and no file has changed but RocksDB's logs of events."""

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(box.root)): path.read_bytes()
            for path in sorted((box.root / "m5").rglob("*"))
            if path.is_file() and not path.name.startswith("LOG")
        }

    before = files()
    with pytest.raises(StoreError) as caught:
        box.put(draft(999))
    assert caught.value.reason is reason
    with pytest.raises(RefusedError):
        box.full()
    assert box.problems() != []
    assert files() == before


def test_a_crashed_store_opens_with_all_that_was_written(filled: Box) -> None:
    assert len(filled.order()) == COUNT
    filled.put(draft(999))
    assert len(filled.order()) == COUNT + 1
    assert filled.problems() == []
    filled.parts.store.release()


@pytest.mark.parametrize(
    "tail", [b"\x00" * 700, b"\xff" * 700, random.Random(7).randbytes(700)], ids=["zeros", "ones", "garbage"]
)
def test_garbage_behind_what_was_acknowledged_is_dropped(filled: Box, tail: bytes) -> None:
    log = log_of(filled)
    log.write_bytes(log.read_bytes() + tail)
    assert len(filled.order()) == COUNT
    assert filled.problems() == []
    filled.put(draft(999))
    again = filled.again()
    assert len(again.order()) == COUNT + 1
    assert again.problems() == []


@pytest.mark.parametrize("part", [1, 6, 7, 8, 40, 200, 400, 600, -1])
def test_a_batch_that_was_not_acknowledged_may_be_torn_anywhere(filled: Box, part: int) -> None:
    log, store, before = log_of(filled), filled.root / "m5", filled.root / "before"
    shutil.copytree(store, before)
    filled.put(draft(999))
    # RocksDB begins a new log at each opening; what it holds is what a crash within this batch may leave of it.
    batch = max((filled.root / DATABASE).glob("*.log")).read_bytes()
    filled.parts.store.release()
    shutil.rmtree(store)
    before.rename(store)
    with log.open("ab") as torn:
        torn.write(batch[:part])
    assert len(filled.order()) == COUNT
    assert filled.put(draft(999)).new
    assert filled.problems() == []
    filled.parts.store.release()


@pytest.mark.parametrize("count", range(1, 20))
def test_a_witness_that_a_power_failure_set_back_is_made_good(box: Box, count: int) -> None:
    witness, states = box.root / "m5/witness", []
    for ms in range(count):
        box.put(draft(ms))
        states.append(witness.read_bytes())
    anchor, now = decode_marks(box.rows(Family.META)[MARKS])
    # What was not synced may be there, as it was behind any batch since, or torn. Batches and operations count alike.
    shutil.copytree(box.root / "m5", box.root / "crashed/m5")
    crashed = Box(box.root / "crashed")
    for data in states[max(anchor.batches - 1, 0) :]:
        torn = bytearray(data)
        torn[now.slot : now.slot + 120] = b"\x00" * 120
        for found in (data, bytes(torn)):
            (crashed.root / "m5/witness").write_bytes(found)
            assert len(crashed.order()) == count
            assert crashed.problems() == []
    again = crashed.again()
    again.put(draft(999))
    assert len(again.order()) == count + 1
    assert again.problems() == []
    again.parts.store.release()


def test_a_witness_from_before_its_anchor_is_noticed(box: Box) -> None:
    witness = box.root / "m5/witness"
    early = witness.read_bytes()
    # Two anchors are behind it: the first one is what a power failure may leave as long as there is no second one.
    box.put_all([draft(ms) for ms in range(2 * PERIOD)])
    box.parts.store.release()
    witness.write_bytes(early)
    with pytest.raises(StoreError):
        box.put(draft(999))


def test_no_mark_is_written_over_the_anchor_before_the_next_one_is_synced(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness, synced = Witness(box.root / "m5/witness"), []
    monkeypatch.setattr(os, "fdatasync", lambda _: synced.append(newest(witness.slots())))
    anchor = Mark()
    for ms in range(50):
        box.put(draft(ms))
        anchor = synced[-1] if synced else anchor
        assert anchor in witness.slots()
        assert decode_marks(box.rows(Family.META)[MARKS])[1] == newest(witness.slots())


def test_a_witness_is_made_anew_from_the_older_slot_on(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.put_all([draft(ms) for ms in range(10)])
    witness = Witness(box.root / "m5/witness")
    before = newest(witness.slots())

    def failing(_: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="gone"):
        witness.make(Mark(batches=99), witness.slots())
    assert before in witness.slots()


def test_the_sum_of_a_mark_depends_on_every_operation(box: Box) -> None:
    box.put_all([draft(1), draft(2)])
    victim, forged = bytes.fromhex(id_of(draft(1))), draft(7, by="mallory")
    forged_id = bytes.fromhex(id_of(forged))
    box.alter(Family.OPS, victim, None)
    box.alter(Family.EDGES, victim, None)
    box.alter(Family.BY_AUTHOR, derive.key_of("alice") + derive.hlc(1) + victim, None)
    box.alter(Family.OPS, forged_id, derive.decoded(derive.op(forged)))
    box.alter(Family.EDGES, forged_id, b"")
    box.alter(Family.BY_AUTHOR, derive.key_of("mallory") + derive.hlc(7) + forged_id, b"")
    refused(box)


def test_tables_that_a_compaction_replaces_are_not_gone(box: Box) -> None:
    # RocksDB compacts when there are four tables of one level, and each opening makes one.
    for ms in range(24):
        box.put(draft(ms))
        assert len(box.order()) == ms + 1
        box.parts.store.release()
    assert box.problems() == []


def test_a_manifest_that_is_cut_shows_no_older_store(box: Box) -> None:
    for ms in range(3):
        box.put(draft(ms))
        box.parts.store.release()
    (manifest,) = (box.root / DATABASE).glob("MANIFEST-*")
    whole = manifest.read_bytes()
    for size in range(0, len(whole), len(whole) // 20):
        manifest.write_bytes(whole[:size])
        try:
            shown = box.again().parts.observing.rows()
        except StoreError:
            continue
        assert len(shown["ops"]) == 3
