"""Bugs in how blobs are named, placed and unpacked (HX-BLB-1 to -7)."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import zstandard

from holdfast.reference_impl.answers import Effect
from holdfast.reference_impl.hx_sync.blobs import BlobCache, BlobCodec, MismatchError
from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE
from holdfast.reference_impl.hx_sync.header import Header, Headers, MalformedError
from holdfast.reference_impl.hx_sync.layout import HASH, Layout, Place
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.terms import COMPRESSIONS, Kind
from holdfast.reference_impl.planting import Change, part

_ENDING = ".hxblob"

# The hash


class BlobHashUnchecked(BlobCodec):
    def check_hash(self, plain: bytes, payload: bytes, blob_hash: str) -> None:
        pass


class BlobHashOfCompressed(BlobCodec):
    def hash(self, plain: bytes) -> str:
        return hashlib.sha256(self.pack(plain)).hexdigest()


# The place


class FanOutFromTheEnd(Layout):
    def fan_out(self, blob_hash: str) -> tuple[str, str]:
        return blob_hash[-4:-2], blob_hash[-2:]


class NoFanOut(Layout):
    def blob(self, blob_hash: str) -> str:
        return f"{self.objects}/blobs/{blob_hash}{_ENDING}"

    def place(self, key: str) -> Place | None:
        folder, _, name = key.rpartition("/")
        if folder == f"{self.objects}/blobs":
            return self.named(key, Kind.BLOB, name.removesuffix(_ENDING), "")
        return super().place(key)


class FanOutUnchecked(Layout):
    def named(self, key: str, kind: Kind, object_id: str, node_id: str) -> Place | None:
        if kind is Kind.BLOB and HASH.fullmatch(object_id) is not None and key.endswith(_ENDING):
            return Place(key, kind, object_id, node_id)
        return super().named(key, kind, object_id, node_id)


# The header

# A length that no header states. It marks a header without a length between the two checks that read it.
_UNSTATED = (1 << 53) - 47


class BlobHeaderDefaulted(Headers):
    def parse(self, data: bytes) -> dict[str, Any]:
        members = super().parse(data)
        if members.get("object_type") == Kind.BLOB.value:
            members.setdefault("compression", "zstd")
            members.setdefault("byte_len_plain", _UNSTATED)
        return members


class LengthOfFrame(BlobCodec):
    def unpack(self, header: Header, payload: bytes) -> bytes:
        if header.members["byte_len_plain"] == _UNSTATED:
            header = _stating(header, payload)
        return super().unpack(header, payload)


def _stating(header: Header, payload: bytes) -> Header:
    """The header with the length that the payload has."""
    length = len(payload)
    if header.members["compression"] == "zstd":
        try:
            length = max(zstandard.get_frame_parameters(payload).content_size, 0)
        except zstandard.ZstdError as error:
            raise MismatchError(f"expected a zstd frame: {error}") from error
    return replace(header, members={**header.members, "byte_len_plain": length})


class HeaderMembersIgnored(Headers):
    def check_members(self, members: Mapping[str, Any], kind: Kind) -> None:
        for left_out in members:
            with contextlib.suppress(MalformedError):
                super().check_members({name: members[name] for name in members if name != left_out}, kind)
                return
        super().check_members(members, kind)


class BlobLengthUnchecked(BlobCodec):
    def unpack(self, header: Header, payload: bytes) -> bytes:
        self.check_limit(header.members["byte_len_plain"])
        return super().unpack(_stating(header, payload), payload)


# The codec


class AnyCompression(Headers):
    def is_compression(self, value: Any) -> bool:
        return isinstance(value, str)


class UnknownCompressionIsNone(BlobCodec):
    def unpacked(self, compression: str, payload: bytes, length: int) -> bytes:
        return super().unpacked(compression if compression in COMPRESSIONS else "none", payload, length)


class BadZstdIsPlain(BlobCodec):
    def decompress(self, payload: bytes, length: int) -> bytes:
        try:
            return super().decompress(payload, length)
        except MismatchError:
            return payload


class BombCutToLength(BlobCodec):
    def decompress(self, payload: bytes, length: int) -> bytes:
        try:
            with zstandard.ZstdDecompressor().stream_reader(payload) as reader:
                return reader.read(length)
        except zstandard.ZstdError as error:
            raise MismatchError(f"expected a zstd frame: {error}") from error


class FramesBehindIgnored(BlobCodec):
    def frame(self, payload: bytes) -> bytes:
        return zstandard.ZstdDecompressor().decompress(payload, allow_extra_data=True)


class BlobSizeUnlimited(BlobCodec):
    def check_limit(self, length: int) -> None:
        pass


class BlobPublishedTwice(Publishing):
    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        if not key.endswith(_ENDING):
            return super().once(key, raw, master, is_same)
        self._store.replace(key, raw)
        return Effect.NEW


class CachedUnsynced(BlobCache):
    def write(self, blob_hash: str, plain: bytes) -> None:
        self._folder.mkdir(FOLDER_MODE, exist_ok=True)
        self.path(blob_hash).write_bytes(plain)


BUGS: Mapping[str, Change] = {
    "blob-hash-unchecked": part(codec=BlobHashUnchecked),
    "blob-hash-of-compressed": part(codec=BlobHashOfCompressed),
    "fan-out-from-the-end": part(layout=FanOutFromTheEnd),
    "no-fan-out": part(layout=NoFanOut),
    "fan-out-unchecked": part(layout=FanOutUnchecked),
    "blob-header-defaulted": part(headers=BlobHeaderDefaulted, codec=LengthOfFrame),
    "header-members-ignored": part(headers=HeaderMembersIgnored),
    "blob-length-unchecked": part(codec=BlobLengthUnchecked),
    "unknown-compression-is-none": part(headers=AnyCompression, codec=UnknownCompressionIsNone),
    "bad-zstd-is-plain": part(codec=BadZstdIsPlain),
    "bomb-cut-to-length": part(codec=BombCutToLength),
    "frames-behind-ignored": part(codec=FramesBehindIgnored),
    "blob-size-unlimited": part(codec=BlobSizeUnlimited),
    "blob-published-twice": part(publishing=BlobPublishedTwice),
    "blob-cached-unsynced": part(cache=CachedUnsynced),
}
