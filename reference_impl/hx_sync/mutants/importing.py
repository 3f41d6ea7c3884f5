"""Bugs of hx-sync: how objects are imported (HX-IMP-*, HX-T1)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import zstandard

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.hx_sync.algorithms import TAG_BYTES
from holdfast.reference_impl.hx_sync.blobs import BlobCache
from holdfast.reference_impl.hx_sync.importing import Importing, Plan, Round
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.records import Batch
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

_Taken = TypeVar("_Taken")

# Verified first


class FirstBadEnds(Importing):
    def attempt(self, done: Round, place: Place, take: Callable[[], bool]) -> None:
        if not done.rejected:
            super().attempt(done, place, take)


class AppliedFirst(Importing):
    def plan(self, node: Node, found: Found) -> Plan:
        try:
            return super().plan(node, found)
        except RefusedError as error:
            if error.reason is Reason.OBJECT_UNAUTHENTIC and found.place.kind is Kind.SEGMENT:
                self._apply(node, _unverified(found))
            raise

    def _apply(self, node: Node, found: Found) -> None:
        with contextlib.suppress(RefusedError):
            batch = self._objects.batch(found)
            if not node.index.connection().in_transaction:
                with node.index.writing() as connection:
                    self._merging.segment(connection, found.header, batch)


def _unverified(found: Found) -> Found:
    """The same with a tag that fits whatever the ciphertext decrypts to: both ways it is the same stream of bits."""
    sealed, algorithm = found.sealed, found.sealed.algorithm
    plain = algorithm.encrypt(found.key, sealed.nonce, sealed.body[:-TAG_BYTES], b"")[:-TAG_BYTES]
    return replace(found, sealed=replace(sealed, body=algorithm.encrypt(found.key, sealed.nonce, plain, sealed.clear)))


# Skipped by the hash of the bytes


class SkippedByName(Importing):
    def known(self, connection: sqlite3.Connection, node: Node, found: Found) -> bool:
        place = found.place
        if place.kind is Kind.SEGMENT:
            return self._ledger.recorded_segment(connection, place.node_id or "", place.object_id) is not None
        if place.kind is Kind.TOMBSTONE:
            return self._ledger.recorded_tombstone(connection, place.object_id) is not None
        return super().known(connection, node, found)


class ReplacedIsDue(Importing):
    def is_due(self, recorded: str | None, found: Found) -> bool:
        try:
            return super().is_due(recorded, found)
        except RefusedError:
            if found.place.kind is not Kind.SEGMENT:
                raise
            return True


class RecordedInItsPlace(Ledger):
    def record_segment(self, connection: sqlite3.Connection, node_id: str, segment_id: str, object_hash: str) -> None:
        connection.execute("DELETE FROM imported_segments WHERE node_id = ? AND segment_id = ?", (node_id, segment_id))
        super().record_segment(connection, node_id, segment_id, object_hash)


# The cache


class CachedFirst(Importing):
    def plan(self, node: Node, found: Found) -> Plan:
        try:
            return super().plan(node, found)
        except RefusedError as error:
            if error.reason is Reason.BLOB_MISMATCH:
                plain = _unpacked(self._objects.payload(found))
                with node.index.writing() as connection:
                    node.cache.write(found.place.object_id, plain)
                    self._ledger.record_blob(connection, found.place.object_id, found.object_hash, cached=True)
            raise


def _unpacked(payload: bytes) -> bytes:
    with contextlib.suppress(zstandard.ZstdError):
        return zstandard.ZstdDecompressor().decompress(payload, max_output_size=1 << 16)
    return payload


class ServedUnseen(BlobCache):
    def read(self, blob_hash: str) -> bytes:
        with contextlib.suppress(OSError):
            return self.path(blob_hash).read_bytes()
        return super().read(blob_hash)


class NeverCached(Ledger):
    def available(self, connection: sqlite3.Connection, blob_hash: str) -> bool:
        return False


# What is recorded


class RecordedFirst(Importing):
    def apply_segment(self, connection: sqlite3.Connection, found: Found, batch: Batch) -> tuple[bool, bool]:
        node_id, segment_id = found.place.node_id or "", found.place.object_id
        if not self.is_due(self._ledger.recorded_segment(connection, node_id, segment_id), found):
            return False, False
        self._ledger.record_segment(connection, node_id, segment_id, found.object_hash)
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        return True, self._merging.segment(connection, found.header, batch)


class NotedBeside(Importing):
    def is_known(self, node: Node, found: Found) -> bool:
        if super().is_known(node, found):
            return True
        # One that was made anew has nothing yet, and is filled.
        with node.index.reading() as connection:
            (count,) = connection.execute("SELECT count(*) FROM imported_segments").fetchone()
        return count > 0 and _noted(node, found).is_file()

    def run(self, node: Node, plan: Plan) -> bool:
        fresh = super().run(node, plan)
        if plan.found.place.kind in (Kind.SEGMENT, Kind.TOMBSTONE):
            note = _noted(node, plan.found)
            note.parent.mkdir(exist_ok=True)
            note.touch()
        return fresh


def _noted(node: Node, found: Found) -> Path:
    return node.index.folder.with_suffix(".noted") / found.object_hash


class RejectedForEver(Importing):
    def import_object(self, node: Node, key: str, master: bytes) -> Answer:
        return self._once(node, key, partial(super().import_object, node, key, master))

    def take(self, node: Node, place: Place, master: bytes) -> bool:
        return self._once(node, place.key, partial(super().take, node, place, master))

    def _once(self, node: Node, key: str, take: Callable[[], _Taken]) -> _Taken:
        reasons = list(Reason)
        with node.index.reading() as connection:
            known = connection.execute("SELECT value FROM counters WHERE name = ?", (f"refused: {key}",)).fetchone()
        if known is not None:
            raise RefusedError(reasons[known[0]], "it was refused before", key=key)
        try:
            return take()
        except RefusedError as error:
            if error.reason not in (Reason.OBJECT_MISSING, Reason.STORE_UNAVAILABLE):
                with node.index.writing() as connection:
                    self._ledger.count(connection, f"refused: {key}", reasons.index(error.reason))
            raise


class OwnOnly(Importing):
    def take(self, node: Node, place: Place, master: bytes) -> bool:
        if place.kind is Kind.SEGMENT and place.node_id != node.index.node_id:
            return False
        return super().take(node, place, master)


_REPLACED = "an object is imported and then replaced"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "first-bad-object-ends-import",
        "After the first object that is refused no other is looked at",
        part(importing=FirstBadEnds),
        {"IMP-1": "over_refusal"},
        {EVERYTHING: "an import refuses something"},
    ),
    mutant(
        "applied-before-verified",
        "A segment is applied before its tag is looked at",
        part(importing=AppliedFirst),
        {"IMP-1": "state_leak"},
        also("the tag of a segment is altered", "CRY-6 T3 T5"),
    ),
    mutant(
        "skipped-by-name",
        "A segment is skipped if its id was imported, whatever its bytes are",
        part(importing=SkippedByName),
        {"IMP-2": "fail_open"},
        also(_REPLACED, "CRY-2 CRY-6 T5"),
    ),
    mutant(
        "replaced-segment-imported",
        "A segment with other bytes than those that were imported is imported as well",
        part(importing=ReplacedIsDue, ledger=RecordedInItsPlace),
        {"IMP-2": "fail_open"},
        also(_REPLACED, "CRY-2 T5"),
    ),
    mutant(
        "blob-cached-before-verified",
        "The bytes of a blob lie in the cache before they are verified, and stay",
        part(importing=CachedFirst, cache=ServedUnseen),
        {"IMP-3": "state_leak"},
        also("a blob is not what its header says", "BLB-1 BLB-4 BLB-5 BLB-6 IMP-1 IMP-5"),
    ),
    mutant(
        "blob-not-cached",
        "Blobs are verified and not kept",
        part(ledger=NeverCached),
        {"IMP-3": "wrong_reason"},
        also(
            "it looks at a blob that was imported",
            "P1 P4 BLB-1 BLB-2 BLB-3 BLB-4 BLB-5 BLB-6 BLB-7 TMB-8 T1 LOC-5 P3 P5 CRY-5 CRY-6 IMP-5 MAN-1 T2 T3 T4 T5",
        ),
    ),
    mutant(
        "recorded-before-applied",
        "A segment is recorded as imported, and its events are inserted afterwards",
        part(importing=RecordedFirst),
        {"IMP-4": "lost_durability"},
        faults={"kill-imports": "lost_durability"},
    ),
    mutant(
        "imports-noted-beside-index",
        "What was imported is noted beside the index as well, and passed over by an index that holds anything",
        part(importing=NotedBeside),
        {"T4": "lost_durability"},
    ),
    mutant(
        "rejected-for-ever",
        "What was refused once is refused from then on",
        part(importing=RejectedForEver),
        {"IMP-5": "over_refusal", "T3": "over_refusal"},
        {EVERYTHING: "an object is refused, and then another lies at its key"},
    ),
    mutant(
        "own-segments-only",
        "An import leaves out the segments of other nodes",
        part(importing=OwnOnly),
        {"T1": "wrong_reason"},
        {EVERYTHING: "it imports what another node has published"},
    ),
)
