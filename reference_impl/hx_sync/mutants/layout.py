"""Bugs in where objects lie, and in what is taken for one (HX-LAY-1 to -6)."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Answer, Ok
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.layout import UUID, Layout, Place
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.spelling import to_base64url
from holdfast.reference_impl.hx_sync.storage import Listing, Put
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.planting import Change, part

# Another place, in writing and in reading


class SegmentWithoutNode(Layout):
    def segment(self, node_id: str, segment_id: str) -> str:
        return f"{self.objects}/segments/{segment_id}.hxseg"

    def place(self, key: str) -> Place | None:
        folder, _, name = key.rpartition("/")
        if folder == f"{self.objects}/segments":
            object_id = name.removesuffix(".hxseg")
            return (
                Place(key, Kind.SEGMENT, object_id, "")
                if name.endswith(".hxseg") and UUID.fullmatch(object_id)
                else None
            )
        return super().place(key)


class NodeOfHeader(Objects):
    def fetch(self, key: str, master: bytes) -> Found:
        found = super().fetch(key, master)
        return replace(found, place=replace(found.place, node_id=found.header.node_id))


class TombstoneInFolder(Layout):
    def place(self, key: str) -> Place | None:
        folder, _, name = key.rpartition("/")
        above, _, node_id = folder.rpartition("/")
        flat = f"{self.objects}/tombstones"
        if above != flat:
            return None if folder == flat else super().place(key)
        place = super().place(f"{flat}/{name}")
        return None if place is None else replace(place, key=key, node_id=node_id)


class ForgetsIntoFolder(Forgetting):
    def key(self, tombstone_id: str, node_id: str) -> str:
        folder, _, name = super().key(tombstone_id, node_id).rpartition("/")
        return f"{folder}/{node_id}/{name}"


class ManifestOfVault(Layout):
    def manifest(self, node_id: str) -> str:
        return f"{self.objects}/manifests/{self.vault.rpartition('/')[2]}.hxman"


class ManifestOfAnyNode(Objects):
    def check_place(self, place: Place, header: Header) -> None:
        if place.kind is Kind.MANIFEST:
            self.check_kind(place, header)
        else:
            super().check_place(place, header)


# Temporary files


class TemporaryBeside(FolderStore):
    def partial_key(self, key: str) -> str:
        return f"{key}.{secrets.token_hex(8)}.partial"


class PlacesInTmp(Layout):
    def place(self, key: str) -> Place | None:
        if not key.startswith(f"{self.partials}/"):
            return super().place(key)
        place = super().place(f"{self.vault}/{key.removeprefix(f'{self.partials}/').removesuffix('.partial')}")
        return None if place is None else replace(place, key=key)

    def is_object(self, key: str) -> bool:
        return super().is_object(key) or key.startswith(f"{self.partials}/")


class ListsTmpToo(FolderStore):
    def list(self, prefix: str) -> Listing:
        listing = super().list(prefix)
        if prefix != self._layout.objects:
            return listing
        more = super().list(self._layout.partials)
        return Listing([*listing.keys, *more.keys], [*listing.strays, *more.strays])


class PartialImported(Layout):
    def place(self, key: str) -> Place | None:
        place = super().place(key.removesuffix(".partial"))
        return None if place is None else replace(place, key=key)

    def is_finished(self, key: str) -> bool:
        return True


# What has no place

_COPY = re.compile(r"([0-9a-f-]{36})[^0-9a-f/][^/]*(\.hx(?:seg|tomb|man))")


class ConflictCopiesImported(Layout):
    def place(self, key: str) -> Place | None:
        folder, _, name = key.rpartition("/")
        copy = _COPY.fullmatch(name)
        if copy is None:
            return super().place(key)
        place = super().place(f"{folder}/{copy[1]}{copy[2]}")
        return None if place is None else replace(place, key=key)


class LinksFollowed(FolderStore):
    def is_plain(self, entry: os.DirEntry[str]) -> bool:
        return super().is_plain(entry) or entry.is_symlink()

    def open_flags(self) -> int:
        return super().open_flags() & ~os.O_NOFOLLOW


class LinksOpened(FolderStore):
    """It lists no links, but a read of a link returns the file that the link leads to."""

    def open_flags(self) -> int:
        return super().open_flags() & ~os.O_NOFOLLOW


class AnyFileIsGot(Service):
    """Imports follow no link, and `get` is a read of the path."""

    def get(self, args: Any) -> Answer:
        answer = super().get(args)
        store = self._parts.store
        if not isinstance(store, FolderStore):
            return answer
        try:
            data = (store._root / args["key"]).read_bytes()
        except OSError:
            return answer
        return Ok({"found": True, "bytes": to_base64url(data)})


class WrittenThroughLinks(FolderStore):
    def put_atomic(self, key: str, data: bytes) -> Put:
        if (self._root / key).is_symlink():
            (self._root / key).write_bytes(data)
            return Put.NEW
        return super().put_atomic(key, data)


class FolderLinksFollowed(FolderStore):
    def _walk(self, parts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
        for key, plain in super()._walk(parts):
            if (self._root / key).is_dir():
                yield from self._walk(tuple(key.split("/")))
            else:
                yield key, plain

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str]) -> Iterator[int]:
        handle = os.open(self._root.joinpath(*parts), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)


class UpperCaseTaken(Layout):
    def place(self, key: str) -> Place | None:
        below = key.removeprefix(f"{self.objects}/")
        if below == key:
            return super().place(key)
        place = super().place(f"{self.objects}/{below.lower()}")
        return None if place is None else replace(place, key=key)


class ForeignUntold(Importing):
    def sorted_out(self, listing: Listing) -> tuple[list[Place], Sequence[str]]:
        places, _ = super().sorted_out(listing)
        return places, ()


BUGS: Mapping[str, Change] = {
    "tombstone-by-node": part(layout=TombstoneInFolder, forgetting=ForgetsIntoFolder),
    "imports-from-tmp": part(layout=PlacesInTmp, folder=ListsTmpToo),
    "links-followed": part(folder=LinksFollowed),
    "links-opened": part(folder=LinksOpened),
}
