"""Where objects lie in a store (source section 4): keys are paths with /, and every object has exactly one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.reference_impl.hx_sync.terms import Hex, Kind

MAX_KEY = 1024
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HASH = re.compile(r"[0-9a-f]{64}")
# The form of each part of a key. The places of objects have stricter forms.
_PART = re.compile(r"[^/\\\x00-\x1f\x7f]+")
# In UTF-8; a file system takes 255, and a temporary file has a longer name than the key.
_PART_BYTES = 220
_PARTIAL = ".partial"
_ENDINGS = {Kind.SEGMENT: ".hxseg", Kind.BLOB: ".hxblob", Kind.TOMBSTONE: ".hxtomb", Kind.MANIFEST: ".hxman"}


@dataclass(frozen=True, slots=True)
class Place:
    """A key of the layout. `object_id` is its last part without the ending.

    `node_id` is whose segment or manifest it is, empty for all others.
    """

    key: str
    kind: Kind
    object_id: str
    node_id: str


def parts_of(key: str) -> tuple[str, ...] | None:
    """The parts of a key that stays below the root on every file system; None for any other."""
    parts = tuple(key.split("/"))
    if len(key) > MAX_KEY or not all(map(_is_part, parts)):
        return None
    return parts


def _is_part(part: str) -> bool:
    if part in (".", "..") or _PART.fullmatch(part) is None:
        return False
    return len(part.encode("utf-8", "surrogatepass")) <= _PART_BYTES


class Layout:
    """The keys of one vault."""

    def __init__(self, store_folder: str, vault_id: str) -> None:
        self.root = store_folder
        self.vault = f"{store_folder}/vaults/{vault_id}"
        self.objects = f"{self.vault}/objects"
        self.partials = f"{self.vault}/tmp"  # noqa: S108 - a folder of the store

    def segment(self, node_id: Hex, segment_id: Hex) -> str:
        """Key of a segment."""
        return f"{self.objects}/segments/{node_id}/{segment_id}{_ENDINGS[Kind.SEGMENT]}"

    def blob(self, blob_hash: Hex) -> str:
        """Key of a blob."""
        # Its two folders are its first and its second byte in hexadecimal.
        return f"{self.objects}/blobs/{blob_hash[0:2]}/{blob_hash[2:4]}/{blob_hash}{_ENDINGS[Kind.BLOB]}"

    def tombstone(self, tombstone_id: Hex) -> str:
        """Key of a tombstone."""
        return f"{self.objects}/tombstones/{tombstone_id}{_ENDINGS[Kind.TOMBSTONE]}"

    def manifest(self, node_id: Hex) -> str:
        """Key of a manifest."""
        return f"{self.objects}/manifests/{node_id}{_ENDINGS[Kind.MANIFEST]}"

    def key_of(self, kind: Kind, object_id: Hex, node_id: Hex) -> str:
        """The one key of an object with these ids."""
        if kind is Kind.SEGMENT:
            return self.segment(node_id, object_id)
        if kind is Kind.BLOB:
            return self.blob(object_id)
        return self.tombstone(object_id) if kind is Kind.TOMBSTONE else self.manifest(object_id)

    def partial(self, key: str, infix: str) -> str:
        """Where a writer of this key puts the bytes before they are published. `infix` makes the name unique."""
        return f"{self.partials}/{key.removeprefix(f'{self.vault}/')}.{infix}{_PARTIAL}"

    def place(self, key: str) -> Place | None:
        """The place of a key; None if the layout has none. Each place has exactly one spelling."""
        owner = ""
        match key.split("/")[4:]:
            case ("segments", node_id, name):
                kind, owner = Kind.SEGMENT, node_id
            case ("blobs", _, _, name):
                kind = Kind.BLOB
            case ("tombstones", name):
                kind = Kind.TOMBSTONE
            case ("manifests", name):
                kind, owner = Kind.MANIFEST, name.removesuffix(_ENDINGS[Kind.MANIFEST])
            case _:
                return None
        object_id = name.removesuffix(_ENDINGS[kind])
        shape = HASH if kind is Kind.BLOB else UUID
        if shape.fullmatch(object_id) is None:
            return None
        if kind is Kind.SEGMENT and UUID.fullmatch(owner) is None:
            return None
        if self.key_of(kind, object_id, owner) != key:
            return None
        return Place(key, kind, object_id, owner)

    def is_object(self, key: str) -> bool:
        """Whether a key lies under objects/ of some vault: nothing else is ever listed or read."""
        parts = parts_of(key)
        return parts is not None and parts[:2] == (self.root, "vaults") and parts[3:4] == ("objects",)

    def is_finished(self, key: str) -> bool:
        """Whether an object can lie at a key: a file with the name of a temporary file is no object."""
        return self.is_object(key) and not key.endswith(_PARTIAL)


def begins(key: str, prefix: str) -> bool:
    """Whether `prefix` is a beginning of the key that ends with a part of the path."""
    trimmed = prefix.rstrip("/")
    return not trimmed or key == trimmed or key.startswith(f"{trimmed}/")
