"""Blobs (source section 3.2): how their bytes are packed, and the local cache of the plain ones."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import zstandard

from holdfast.reference_impl.hx_sync import disk
from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE, MAKE, READ, opened
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.terms import Hex
from holdfast.reference_impl.sqlite import StoreError

_FRAME = zstandard.FRAME_HEADER
# A block of zstd may grow from four bytes to 128 KiB: so little of a frame that says it is empty is read at once.
_STEP = 64


def hash_of(plain: bytes) -> Hex:
    """The name of a blob."""
    return hashlib.sha256(plain).hexdigest()


def pack(plain: bytes, compression: str) -> bytes:
    """The payload of a blob."""
    if compression == "none":
        return plain
    return zstandard.ZstdCompressor(write_content_size=True).compress(plain)


def unpack(header: Header, payload: bytes, *, max_blob_bytes: int) -> bytes:
    """The plain bytes of a payload, held to the header. Raises MalformedError."""
    length = header.members["byte_len_plain"]
    if length > max_blob_bytes:
        raise MalformedError(f"expected at most {max_blob_bytes} plain bytes, got {length}")
    plain = payload if header.members["compression"] == "none" else _decompressed(payload, length)
    if len(plain) != length:
        raise MalformedError(f"expected {length} plain bytes, got {len(plain)}")
    if hash_of(plain) != header.object_id:
        raise MalformedError("expected the bytes of this hash, got others")
    return plain


def _decompressed(payload: bytes, length: int) -> bytes:
    """Exactly one frame that states this very length, with no bytes after it, and never more than that."""
    if payload[: len(_FRAME)] != _FRAME:
        raise MalformedError("expected a zstd frame")
    try:
        stated = zstandard.get_frame_parameters(payload).content_size
        if stated != length:
            raise MalformedError(f"expected a frame that states {length} bytes, got {stated}")
        if length == 0:
            return _empty(payload)
        return zstandard.ZstdDecompressor().decompress(payload, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise MalformedError(f"expected a zstd frame: {error}") from error


def _empty(payload: bytes) -> bytes:
    # The library returns early here and ignores what follows.
    frame = zstandard.ZstdDecompressor().decompressobj()
    for start in range(0, len(payload), _STEP):
        if frame.eof or frame.decompress(payload[start : start + _STEP]):
            raise MalformedError("expected an empty frame and nothing after it")
    if not frame.eof or frame.unused_data:
        raise MalformedError("expected one whole frame and nothing after it")
    return b""


class BlobCache:
    """The plain bytes of blobs in the folder of a node, for its owner alone. What is written is verified before."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the node."""
        self._folder = folder / "blobs"

    def path(self, blob_hash: Hex) -> Path:
        """Where a blob lies."""
        return self._folder / blob_hash

    def write(self, blob_hash: Hex, plain: bytes) -> None:
        """Keep a blob, durably. Raises OSError."""
        path = self.path(blob_hash)
        self._folder.mkdir(FOLDER_MODE, exist_ok=True)
        disk.sync_path(self._folder.parent)
        partial = path.with_name(f"{blob_hash}.{secrets.token_hex(8)}.partial")
        with opened(partial, MAKE) as handle:
            try:
                disk.write(handle, plain)
                disk.sync(handle)
                partial.rename(path)
            except BaseException:
                partial.unlink()
                raise
        disk.sync_path(self._folder)

    def read(self, blob_hash: Hex) -> bytes:
        """The bytes of a blob that the index expects here. Raises StoreError if it is absent or damaged."""
        try:
            with opened(self.path(blob_hash), READ) as handle, os.fdopen(handle, "rb", closefd=False) as file:
                plain = file.read()
        except OSError as error:
            raise StoreError(f"the cache has lost {blob_hash}: {error.strerror}; import again") from error
        if hashlib.sha256(plain).hexdigest() != blob_hash:
            raise StoreError(f"the cache has other bytes as {blob_hash}; import again")
        return plain

    def check(self, blob_hash: Hex) -> None:
        """Check that a file lies at the place of a blob. Raises StoreError."""
        try:
            found = os.lstat(self.path(blob_hash))
        except OSError as error:
            raise StoreError(f"the cache has lost {blob_hash}: {error.strerror}; import again") from error
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"the cache has no file as {blob_hash}; import again")

    def files(self) -> Iterator[Path]:
        """Everything that lies here, finished or not. Raises OSError."""
        for folder, _, names in os.walk(self._folder):
            yield from (Path(folder, name) for name in names)

    def sweep(self, kept: set[str]) -> None:
        """Remove everything but these blobs. Raises OSError."""
        swept = [path for path in self.files() if path.name not in kept]
        for path in swept:
            path.unlink()
        if swept:
            disk.sync_path(self._folder)
