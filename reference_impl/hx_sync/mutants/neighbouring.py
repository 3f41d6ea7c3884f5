"""Bugs that take nearly the same for the same, read beyond a format, or know only what their own process has done."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.hx_sync.blobs import BlobCodec
from holdfast.reference_impl.hx_sync.envelope import Nonces
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.records import Records
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.storage import Listing
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import Held

_DAY_US = 86_400_000_000
_DIGITS = 16
_PAGE = 4096
_BOM = b"\xef\xbb\xbf"

# Read beyond a format


class HourTwentyFour(Instants):
    def read(self, text: object) -> int:
        if isinstance(text, str) and "T24:00:00" in text:
            return super().read(text.replace("T24:00:00", "T00:00:00")) + _DAY_US
        return super().read(text)


class LastMemberWins(Records):
    def parse(self, payload: bytes) -> dict[str, Any]:
        try:
            value = json.loads(payload)
        except ValueError:
            return super().parse(payload)
        return super().parse(json.dumps(value).encode() if isinstance(value, dict) else payload)


class MarkPassedOver(Records):
    def parse(self, payload: bytes) -> dict[str, Any]:
        return super().parse(payload.removeprefix(_BOM))


class AnyWholeNumber(Records):
    def seq(self, value: Any) -> int:
        return super().seq(min(int(value), 2**53 - 1) if type(value) is float and value.is_integer() else value)


class LineBreaksPassedOver(Service):
    def call(self, method: str, args: Any) -> Answer:
        if isinstance(args, dict) and isinstance(args.get("bytes"), str):
            args = {**args, "bytes": "".join(args["bytes"].split())}
        return super().call(method, args)


class MembersPassedOver(Service):
    def call(self, method: str, args: Any) -> Answer:
        known = self._parts.contract.methods.get(method)
        if known is not None and isinstance(args, dict):
            names = known.args.schema.get("properties", {})
            args = {name: value for name, value in args.items() if name in names}
        return super().call(method, args)


# Taken for the same


class HashOfFirstPage(BlobCodec):
    def hash(self, plain: bytes) -> str:
        return super().hash(plain[:_PAGE])


class SixteenDigits(Objects):
    def check_id(self, place: Place, header: Header) -> None:
        if header.object_id[:_DIGITS] != place.object_id[:_DIGITS]:
            super().check_id(place, header)

    def blob(self, found: Found) -> bytes:
        # The digest of the bytes is that of the key.
        members = {**found.header.members, "blob_hash": found.place.object_id}
        header = replace(found.header, object_id=found.place.object_id, members=members)
        return super().blob(replace(found, sealed=replace(found.sealed, header=header)))


def _one_mebibyte(settings: Settings) -> Settings:
    return replace(settings, max_object_bytes=1 << 20)


# Fewer bits than there seem to be


class FourBytesOfKey(Nonces):
    def object_key(self) -> bytes:
        return secrets.token_bytes(4) * 8


class CountedNonces(Nonces):
    def __init__(self) -> None:
        self._next = secrets.randbits(96)

    def nonce(self, size: int) -> bytes:
        self._next += 1
        return self._next.to_bytes(size, "big")


# What one process knows


class Remembered(Importing):
    """Counts as known every object that this process has imported."""

    def is_known(self, node: Node, found: Found) -> bool:
        remembered: set[tuple[str, str]] = self.__dict__.setdefault("remembered", set())
        mine = (node.name, found.object_hash)
        if mine in remembered or super().is_known(node, found):
            remembered.add(mine)
            return True
        return False


class ListedOnce(FolderStore):
    """A process that has listed the store knows its own writes, and no others."""

    def list(self, prefix: str) -> Listing:
        lists: dict[str, Listing] = self.__dict__.setdefault("lists", {})
        if prefix not in lists:
            lists[prefix] = super().list(prefix)
        return lists[prefix]

    def finish(self, key: str, partial: str, folder: int) -> None:
        super().finish(key, partial, folder)
        self.__dict__.get("lists", {}).clear()


class HeldOpen(Index):
    def held(self) -> Held:
        return self._held or super().held()

    def _settle(self, held: Held) -> None:
        """The files are never looked at again."""

    def verify_unchanged(self, held: Held) -> None:
        """See `_settle`."""


BUGS: Mapping[str, Change] = {
    "imports-remembered-by-process": part(importing=Remembered),
    "store-listed-once": part(folder=ListedOnce),
    "index-held-open": part(index=HeldOpen),
}
