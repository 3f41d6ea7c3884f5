"""Bugs in how objects are listed, read and written (HX-P2, HX-P6, HX-STO-1 to -4)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.reference_impl.answers import Answer, Effect, Ok
from holdfast.reference_impl.hx_sync.disk import Disk
from holdfast.reference_impl.hx_sync.folder import FILE_MODE, FolderStore
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.storage import Listing, Put
from holdfast.reference_impl.hx_sync.terms import RefusedError
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.sqlite import StoreError

_FIRST_PAGE, _PIECES, _BEGINNING = 10, 64, 100
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

# Writing


class PutReplaces(FolderStore):
    def put_atomic(self, key: str, data: bytes) -> Put:
        self.replace(key, data)
        return Put.NEW


class PublishReplaces(Publishing):
    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        try:
            return super().once(key, raw, master, is_same)
        except RefusedError:
            if not key.endswith(".hxseg"):
                raise
            self._store.replace(key, raw)
            return Effect.NEW


class RefusedBytesLeft(Publishing):
    def put(self, key: str, data: bytes) -> Answer:
        try:
            return super().put(key, data)
        except RefusedError:
            self._store.replace(f"{self._layout.partials}/{key.rpartition('/')[2]}.refused", data)
            raise


class InPlace(FolderStore):
    def in_place(self, key: str, data: bytes, fill: Callable[[int, bytes], None]) -> Put:
        with self._asked():
            self.check()
            found = self._compare(key, data)
            if found is not None:
                return found
            *above, name = key.split("/")
            with self._making(tuple(above), []) as folder:
                try:
                    handle = os.open(name, _MAKE, FILE_MODE, dir_fd=folder)
                except FileExistsError:
                    return self._compare(key, data) or Put.OTHER
                try:
                    fill(handle, data)
                finally:
                    os.close(handle)
                self._disk.sync(folder)
        return Put.NEW


class WrittenInPlace(InPlace):
    def put_atomic(self, key: str, data: bytes) -> Put:
        return self.in_place(key, data, self.in_pieces)

    def in_pieces(self, handle: int, data: bytes) -> None:
        for piece in _pieces(data):
            self.fill(handle, piece)


class InTwoWrites(InPlace):
    # The key of what is being published in place; what is put is not.
    published = ""

    def put_atomic(self, key: str, data: bytes) -> Put:
        if key != self.published:
            return super().put_atomic(key, data)
        # Made and not used, so that who looks into tmp finds nothing wrong.
        with self._written(key, b""):
            return self.in_place(key, data, self.two_writes)

    def two_writes(self, handle: int, data: bytes) -> None:
        # No sync in between, so that who looks hardly ever meets the first alone.
        self._disk.write(handle, data[:_BEGINNING])
        self._disk.write(handle, data[_BEGINNING:])
        self._disk.sync(handle)


class _PublishedInPlace(Publishing):
    ending: str

    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        assert isinstance(self._store, InTwoWrites)
        self._store.published = key if key.endswith(self.ending) else ""
        try:
            return super().once(key, raw, master, is_same)
        finally:
            self._store.published = ""


class SegmentInPlace(_PublishedInPlace):
    ending = ".hxseg"


class BlobInPlace(_PublishedInPlace):
    ending = ".hxblob"


def _pieces(data: bytes) -> Iterator[bytes]:
    size = len(data) // _PIECES + 1
    return (data[start : start + size] for start in range(0, len(data), size))


class PutUnsynced(Disk):
    def sync(self, handle: int) -> None:
        pass


class WritesOnce(Disk):
    def write(self, handle: int, data: bytes) -> None:
        os.write(handle, data)


class PutErrorsSwallowed(FolderStore):
    def put_atomic(self, key: str, data: bytes) -> Put:
        self.check()
        try:
            return super().put_atomic(key, data)
        except StoreError:
            return Put.NEW


# Listing and reading


class ListByText(FolderStore):
    def within(self, key: str, prefix: str) -> bool:
        return key.startswith(prefix)


class ListFirstPage(FolderStore):
    def list(self, prefix: str) -> Listing:
        found = super().list(prefix)
        return Listing(found.keys[:_FIRST_PAGE], found.strays)


class ListWithTmp(FolderStore):
    def listed(self, key: str) -> bool:
        return super().listed(key) or key.startswith(f"{self._layout.partials}/")


class MissingIsEmpty(Service):
    def get(self, args: Any) -> Answer:
        answer = super().get(args)
        if isinstance(answer, Ok) and answer.value is not None and not answer.value["found"]:
            return Ok({"found": True, "bytes": ""})
        return answer


class EmptyIsMissing(Service):
    def get(self, args: Any) -> Answer:
        answer = super().get(args)
        if isinstance(answer, Ok) and answer.value is not None and not answer.value["bytes"]:
            return Ok({"found": False, "bytes": None})
        return answer


_HALF = "lost_durability"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "put-replaces",
        "What is put replaces what lies there",
        part(folder=PutReplaces),
        {"P2": "fail_open"},
        also("of several writers each writes", "STO-3 BLB-7 P6"),
    ),
    mutant(
        "publish-replaces",
        "A segment that is published again with another batch replaces the first",
        part(publishing=PublishReplaces),
        {"P2": "fail_open"},
    ),
    mutant(
        "refused-bytes-left-in-tmp",
        "What may not be put stays behind as a file below tmp",
        part(publishing=RefusedBytesLeft),
        {"P2": "state_leak"},
        also("a put is refused", "STO-2 LAY-4 LAY-6"),
    ),
    mutant(
        "written-in-place",
        "An object is written at its key, byte after byte",
        part(folder=WrittenInPlace),
        {"P6": "fail_open", "LAY-4": "fail_open", "STO-3": "fail_open"},
        also("a reader meets half an object", "P2"),
        faults={"kill-within-a-write-puts": "fail_open"},
    ),
    mutant(
        "segment-published-in-place",
        "A segment is published at its key in two writes, and only what is put goes through tmp",
        part(folder=InTwoWrites, publishing=SegmentInPlace),
        {"P6": _HALF, "LAY-4": _HALF, "STO-3": _HALF},
        also("of several writers one meets half an object", "P2"),
        faults={"kill-publications": _HALF},
    ),
    mutant(
        "blob-published-in-place",
        "A blob is published at its key in two writes, and only what is put goes through tmp",
        part(folder=InTwoWrites, publishing=BlobInPlace),
        {"P6": _HALF, "LAY-4": _HALF, "STO-3": _HALF},
        also("of several writers one meets half an object", "P2 BLB-7"),
        faults={"kill-blobs": _HALF},
    ),
    mutant(
        "put-unsynced",
        "Nothing is synced before it is told to be stored",
        part(disk=PutUnsynced),
        {"STO-3": "lost_durability"},
        faults={"power-loss-puts": "lost_durability"},
    ),
    mutant(
        "half-a-write-is-whole",
        "A write that did less than it was asked is taken for a whole one",
        part(disk=WritesOnce),
        {"STO-3": _HALF, "P6": _HALF},
        faults={"short-writes-publications": _HALF, "short-writes-blobs": _HALF},
    ),
    mutant(
        "put-errors-swallowed",
        "An object that could not be written is told to be stored",
        part(folder=PutErrorsSwallowed),
        {"STO-3": "fail_open"},
        also("publishing succeeds whatever comes of it", "LAY-4 P6"),
    ),
    mutant(
        "list-by-text",
        "A prefix may end anywhere in a name",
        part(folder=ListByText),
        {"STO-1": "wrong_reason"},
    ),
    mutant(
        "list-first-page",
        "A list ends after ten keys",
        part(folder=ListFirstPage),
        {"STO-1": "wrong_reason"},
        also("an import sees ten objects", "IMP-1 P3 P4 P5 T1 T2 LAY-6"),
    ),
    mutant(
        "list-with-tmp",
        "Temporary files are listed too",
        part(folder=ListWithTmp),
        {"STO-1": "wrong_reason"},
        also("temporary files are listed", "LAY-5"),
    ),
    mutant(
        "missing-is-empty",
        "What is not there has no bytes",
        part(service=MissingIsEmpty),
        {"STO-2": "wrong_reason"},
    ),
    mutant(
        "empty-is-missing",
        "What has no bytes is not there",
        part(service=EmptyIsMissing),
        {"STO-2": "wrong_reason"},
    ),
)
