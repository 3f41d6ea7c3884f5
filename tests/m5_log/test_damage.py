"""What RocksDB forgives silently is noticed, and what a crash may leave is opened."""

from __future__ import annotations

import os
from enum import Enum

import pytest

from holdfast.reference_impl.m5_log.opening import MARKS
from holdfast.reference_impl.m5_log.service import Service
from holdfast.reference_impl.m5_log.terms import Family, Reason, StoreError
from holdfast.reference_impl.m5_log.witness import Mark, Witness, decode_marks, newest
from holdfast.reference_impl.terms import RefusedError
from holdfast.vectors.m5_log import derive
from holdfast.vectors.spelling import decoded
from tests.m5_log.logs import DATABASE, Box, draft, id_of


def refused(box: Box, reason: Enum = Reason.STORE_UNAVAILABLE) -> None:
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
    box.alter(Family.OPS, forged_id, decoded(derive.op(forged)))
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
            shown = Service(box.again().parts).store({})
        except StoreError:
            continue
        assert len(shown["ops"]) == 3
