"""Bugs in how objects are listed, read and written (HX-P2, HX-P6, HX-STO-1 to -4)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.reference_impl.answers import Answer, Effect, Ok
from holdfast.reference_impl.hx_sync.disk import FILE_MODE, Disk
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.storage import Listing, Put
from holdfast.reference_impl.hx_sync.terms import RefusedError
from holdfast.reference_impl.planting import Change, part
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
            with self._making(tuple(above)) as folder:
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
    # The key of the object that is published in place; `put` is not affected.
    published = ""

    def put_atomic(self, key: str, data: bytes) -> Put:
        if key != self.published:
            return super().put_atomic(key, data)
        # Made and not used, so that an inspection of tmp finds no error.
        with self._written(key, b""):
            return self.in_place(key, data, self.two_writes)

    def two_writes(self, handle: int, data: bytes) -> None:
        # No sync in between, so that an inspection rarely finds the first one alone.
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

    def is_key(self, key: str) -> bool:
        return super().is_key(key) or key.startswith(f"{self._layout.partials}/")


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


BUGS: Mapping[str, Change] = {
    "segment-published-in-place": part(folder=InTwoWrites, publishing=SegmentInPlace),
    "blob-published-in-place": part(folder=InTwoWrites, publishing=BlobInPlace),
    "list-by-text": part(folder=ListByText),
}
