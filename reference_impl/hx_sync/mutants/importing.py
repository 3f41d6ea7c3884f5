"""Bugs of hx-sync: how objects are imported (HX-IMP-*, HX-T1)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
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
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.records import Batch
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part

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
            if not node.index.held().connection.in_transaction:
                with node.index.writing() as connection:
                    self._merging.segment(connection, found.header, batch)


def _unverified(found: Found) -> Found:
    """The same with a tag that fits the decrypted text: encryption and decryption use the same stream of bits."""
    sealed, algorithm = found.sealed, found.sealed.algorithm
    plain = algorithm.encrypt(found.key, sealed.nonce, sealed.body[:-TAG_BYTES], b"")[:-TAG_BYTES]
    return replace(found, sealed=replace(sealed, body=algorithm.encrypt(found.key, sealed.nonce, plain, sealed.clear)))


# Skipped by the hash of the bytes


class SkippedByName(Importing):
    def known(self, connection: sqlite3.Connection, node: Node, found: Found) -> bool:
        if found.place.kind in (Kind.SEGMENT, Kind.TOMBSTONE):
            return self._ledger.recorded(connection, found.place) is not None
        return super().known(connection, node, found)


class ReplacedIsDue(Importing):
    def check_unreplaced(self, connection: sqlite3.Connection, found: Found) -> None:
        if found.place.kind is not Kind.SEGMENT:
            super().check_unreplaced(connection, found)


class RecordedInItsPlace(Ledger):
    def record_segment(self, connection: sqlite3.Connection, place: Place, object_hash: str) -> None:
        connection.execute(
            "DELETE FROM imported_segments WHERE node_id = ? AND segment_id = ?", (place.node_id, place.object_id)
        )
        super().record_segment(connection, place, object_hash)


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
        self.check_unreplaced(connection, found)
        self._ledger.record_segment(connection, found.place, found.object_hash)
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        return True, self._merging.segment(connection, found.header, batch)


class NotedBeside(Importing):
    def is_known(self, node: Node, found: Found) -> bool:
        if super().is_known(node, found):
            return True
        # A new index is empty, and the import fills it.
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


class ForgottenNotRecorded(Importing):
    """A blob that may not lie in the cache is not recorded, and comes as new each time."""

    def apply_blob(self, connection: sqlite3.Connection, node: Node, found: Found, plain: bytes) -> tuple[bool, bool]:
        if not self._ledger.available(connection, found.place.object_id):
            return True, False
        return super().apply_blob(connection, node, found, plain)


class PurgedForEvents(Importing):
    """The log is purged where an event is forgotten, and not where a title alone is."""

    def run(self, node: Node, plan: Plan) -> bool:
        with node.index.writing() as connection:
            if self.known(connection, node, plan.found):
                return False
            before = self._ledger.forgotten(connection)
            fresh, leaves = plan.apply(connection)
            forgets = self._ledger.forgotten(connection) != before
        if leaves:
            self.sweep(node)
        if forgets:
            node.index.purge()
        return fresh


BUGS: Mapping[str, Change] = {
    "first-bad-object-ends-import": part(importing=FirstBadEnds),
    "applied-before-verified": part(importing=AppliedFirst),
    "skipped-by-name": part(importing=SkippedByName),
    "replaced-segment-imported": part(importing=ReplacedIsDue, ledger=RecordedInItsPlace),
    "blob-cached-before-verified": part(importing=CachedFirst, cache=ServedUnseen),
    "blob-not-cached": part(ledger=NeverCached),
    "recorded-before-applied": part(importing=RecordedFirst),
    "imports-noted-beside-index": part(importing=NotedBeside),
    "rejected-for-ever": part(importing=RejectedForEver),
    "own-segments-only": part(importing=OwnOnly),
    "forgotten-blob-not-recorded": part(importing=ForgottenNotRecorded),
    "log-purged-for-events-alone": part(importing=PurgedForEvents),
}
