"""Blobs (source section 3.2): how their bytes are packed, and the local cache of the plain ones."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import zstandard

from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE, MAKE, READ, Disk, opened
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.terms import Hex
from holdfast.reference_impl.sqlite import StoreError

_FRAME = zstandard.FRAME_HEADER
# A block of zstd may grow from four bytes to 128 KiB: so little of a frame that says it is empty is read at once.
_STEP = 64


class MismatchError(ValueError):
    """The payload is not the blob that the header describes."""


class BlobCodec:
    """Packs and unpacks. Each check is one method and raises MismatchError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def compression(self) -> str:
        """How blobs are packed by this device."""
        return self._settings.compression

    def hash(self, plain: bytes) -> str:
        """The name of a blob."""
        return hashlib.sha256(plain).hexdigest()

    def pack(self, plain: bytes) -> bytes:
        """The payload of a blob."""
        if self.compression == "none":
            return plain
        return zstandard.ZstdCompressor(write_content_size=True).compress(plain)

    def unpack(self, header: Header, payload: bytes) -> bytes:
        """The plain bytes of a payload, checked against the header."""
        length, compression = header.members["byte_len_plain"], header.members["compression"]
        self.check_limit(length)
        plain = self.unpacked(compression, payload, length)
        self.check_length(plain, length)
        self.check_hash(plain, header.object_id)
        return plain

    def unpacked(self, compression: str, payload: bytes, length: int) -> bytes:
        """The plain bytes, by the codec that the header names."""
        return payload if compression == "none" else self.decompress(payload, length)

    def check_limit(self, length: int) -> None:
        """Check the limit on the length of a blob."""
        if length > self._settings.max_blob_bytes:
            raise MismatchError(f"expected at most {self._settings.max_blob_bytes} plain bytes, got {length}")

    def decompress(self, payload: bytes, length: int) -> bytes:
        """Unpack exactly one frame that states this very length, with no bytes after it, and never more than that."""
        if payload[: len(_FRAME)] != _FRAME:
            raise MismatchError("expected a zstd frame")
        try:
            stated = zstandard.get_frame_parameters(payload).content_size
            if stated != length:
                raise MismatchError(f"expected a frame that states {length} bytes, got {stated}")
            if length == 0:
                return self._empty(payload)
            return self.frame(payload)
        except zstandard.ZstdError as error:
            raise MismatchError(f"expected a zstd frame: {error}") from error

    def frame(self, payload: bytes) -> bytes:
        """The bytes of a frame, which states their number. Raises ZstdError too."""
        return zstandard.ZstdDecompressor().decompress(payload, allow_extra_data=False)

    def _empty(self, payload: bytes) -> bytes:
        # The library returns early here and ignores what follows.
        frame = zstandard.ZstdDecompressor().decompressobj()
        for start in range(0, len(payload), _STEP):
            if frame.eof or frame.decompress(payload[start : start + _STEP]):
                raise MismatchError("expected an empty frame and nothing behind it")
        if not frame.eof or frame.unused_data:
            raise MismatchError("expected one whole frame and nothing behind it")
        return b""

    def check_length(self, plain: bytes, length: int) -> None:
        """Check the length against the header."""
        if len(plain) != length:
            raise MismatchError(f"expected {length} plain bytes, got {len(plain)}")

    def check_hash(self, plain: bytes, blob_hash: Hex) -> None:
        """Check the hash in the header and in the key."""
        if self.hash(plain) != blob_hash:
            raise MismatchError("expected the bytes of this hash, got others")


class BlobCache:
    """The plain bytes of blobs in the folder of a node, for its owner alone. What is written is verified before."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        """`folder` is that of the node."""
        self._folder = folder / "blobs"
        self._disk = disk

    def path(self, blob_hash: Hex) -> Path:
        """Where a blob lies."""
        return self._folder / blob_hash

    def write(self, blob_hash: Hex, plain: bytes) -> None:
        """Keep a blob, durably. Raises OSError."""
        path = self.path(blob_hash)
        self._folder.mkdir(FOLDER_MODE, exist_ok=True)
        self._disk.sync_path(self._folder.parent)
        partial = path.with_name(f"{blob_hash}.{secrets.token_hex(8)}.partial")
        with opened(partial, MAKE) as handle:
            try:
                self._disk.write(handle, plain)
                self._disk.sync(handle)
                partial.rename(path)
            except BaseException:
                partial.unlink()
                raise
        self._disk.sync_path(self._folder)

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
            self._disk.sync_path(self._folder)
