"""Bugs in where objects lie, and in what is taken for one (HX-LAY-1 to -6)."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace

from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.layout import Layout, Place
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.storage import Listing
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

# Another place, in writing and in reading


class SegmentWithoutNode(Layout):
    def segment(self, node_id: str, segment_id: str) -> str:
        return f"{self.objects}/segments/{segment_id}.hxseg"

    def place(self, key: str) -> Place | None:
        folder, _, name = key.rpartition("/")
        if folder == f"{self.objects}/segments":
            return self.named(key, Kind.SEGMENT, name.removesuffix(".hxseg"), None)
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
    """None is listed, and whoever names one gets what it leads to."""

    def open_flags(self) -> int:
        return super().open_flags() & ~os.O_NOFOLLOW


class FolderLinksFollowed(FolderStore):
    def _walk(self, parts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
        for key, plain in super()._walk(parts):
            if (self._root / key).is_dir():
                yield from self._walk(tuple(key.split("/")))
            else:
                yield key, plain

    @contextlib.contextmanager
    def _folder(self, parts: tuple[str, ...]) -> Iterator[int]:
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


_ELSEWHERE = "its objects lie elsewhere, and it looks for those of others there"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "segment-without-node-folder",
        "Segments of all nodes lie in one folder",
        part(layout=SegmentWithoutNode, objects=NodeOfHeader),
        {"LAY-1": "wrong_reason"},
        {EVERYTHING: _ELSEWHERE},
    ),
    mutant(
        "tombstone-by-node",
        "Each node has a folder for its tombstones",
        part(layout=TombstoneInFolder, forgetting=ForgetsIntoFolder),
        {"LAY-2": "fail_open"},
        {EVERYTHING: _ELSEWHERE},
    ),
    mutant(
        "manifest-of-vault",
        "There is one manifest for all nodes",
        part(layout=ManifestOfVault, objects=ManifestOfAnyNode),
        {"LAY-3": "wrong_reason"},
        also(_ELSEWHERE, "MAN-1 P1 CRY-3 LOC-5 SEG-3"),
    ),
    mutant(
        "temporary-beside",
        "The temporary file is made beside the object",
        part(folder=TemporaryBeside),
        {"LAY-4": "wrong_reason"},
        also("a temporary file is in the way of a device that imports", "P6 STO-3"),
    ),
    mutant(
        "imports-from-tmp",
        "What lies in tmp is imported as well",
        part(layout=PlacesInTmp, folder=ListsTmpToo),
        {"LAY-5": "fail_open"},
        also("temporary files are listed", "STO-1 STO-2 LAY-4"),
    ),
    mutant(
        "partial-imported",
        "A name with .partial behind it counts as the one without",
        part(layout=PartialImported),
        {"LAY-5": "fail_open"},
    ),
    mutant(
        "conflict-copies-imported",
        "Of a name the id in front counts, whatever a synchroniser has put behind it",
        part(layout=ConflictCopiesImported),
        {"LAY-6": "fail_open"},
    ),
    mutant(
        "links-followed",
        "A link to a file is as good as the file",
        part(folder=LinksFollowed),
        {"LAY-6": "fail_open"},
    ),
    mutant(
        "links-opened",
        "A link is not listed, but an object that is asked for by its key is read through it",
        part(folder=LinksOpened),
        {"LAY-6": "fail_open"},
    ),
    mutant(
        "folder-links-followed",
        "A link to a folder is as good as the folder",
        part(folder=FolderLinksFollowed),
        {"LAY-6": "fail_open"},
    ),
    mutant(
        "upper-case-ids-taken",
        "Keys are read without regard to case",
        part(layout=UpperCaseTaken),
        {"LAY-6": "fail_open"},
        also("a name in upper case has a place", "LAY-1 LAY-5"),
    ),
    mutant(
        "foreign-untold",
        "Nobody is told of what has no place",
        part(importing=ForeignUntold),
        {"LAY-6": "wrong_reason"},
        also("their cases count what has no place", "LAY-5 BLB-2 LOC-5 LAY-1"),
    ),
)
