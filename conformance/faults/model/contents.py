"""The bytes of a file as a value: a changed copy shares the unchanged parts, and its digest costs only the changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

CHUNK = 16384


@dataclass(frozen=True)
class Chunk:
    """Up to CHUNK bytes, without the zeros at the end: bytes that are missing up to CHUNK are zero."""

    data: bytes

    @cached_property
    def digest(self) -> bytes:
        return hashlib.blake2b(self.data, digest_size=16).digest()


@dataclass(frozen=True)
class Content:
    """A file of `size` bytes. A chunk of zeros is not among `chunks`, so equal files are equal values."""

    size: int
    chunks: Mapping[int, Chunk]

    @staticmethod
    def of(data: bytes) -> Content:
        """The file with these bytes."""
        return EMPTY.write(0, data)

    @cached_property
    def digest(self) -> bytes:
        """16 bytes; equal for equal files only."""
        whole = hashlib.blake2b(b"%d" % self.size, digest_size=16)
        for index in sorted(self.chunks):
            whole.update(b"/%d:" % index + self.chunks[index].digest)
        return whole.digest()

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` up to `end`, or up to the end of the file."""
        end = min(end, self.size)
        if begin >= end:
            return b""
        found = bytearray(end - begin)
        for index in range(begin // CHUNK, (end - 1) // CHUNK + 1):
            if (chunk := self.chunks.get(index)) is not None:
                at = index * CHUNK
                part = chunk.data[max(begin - at, 0) : end - at]
                place = max(at - begin, 0)
                found[place : place + len(part)] = part
        return bytes(found)

    def write(self, offset: int, data: bytes) -> Content:
        """With `data` at `offset`; a gap before it is zero."""
        draft = Draft(self)
        draft.write(offset, data)
        return draft.content()

    def resize(self, size: int) -> Content:
        """The content with this length; new bytes are zero."""
        draft = Draft(self)
        draft.resize(size)
        return draft.content()

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """The bytes that are not zero, with their offsets, in order."""
        for index in sorted(self.chunks):
            yield index * CHUNK, self.chunks[index].data


EMPTY = Content(0, {})


class Draft:
    """A content in the making: many changes cost one copy."""

    def __init__(self, base: Content) -> None:
        self.size = base.size
        self._chunks = dict(base.chunks)
        self._changed: dict[int, bytearray] = {}

    def write(self, offset: int, data: bytes) -> None:
        """Put `data` at `offset`; a gap before it is zero."""
        if not data:
            return
        end = offset + len(data)
        for index in range(offset // CHUNK, (end - 1) // CHUNK + 1):
            at = index * CHUNK
            begin, stop = max(offset - at, 0), min(end - at, CHUNK)
            chunk = self._open(index)
            if len(chunk) < begin:
                chunk.extend(bytes(begin - len(chunk)))
            chunk[begin:stop] = data[at + begin - offset : at + stop - offset]
        self.size = max(self.size, end)

    def resize(self, size: int) -> None:
        """Set its length; new bytes are zero."""
        if size < self.size:
            last = size // CHUNK
            for chunks in (self._chunks, self._changed):
                for index in [index for index in chunks if index > last]:
                    del chunks[index]
            if last in self._chunks or last in self._changed:
                del self._open(last)[size - last * CHUNK :]
        self.size = size

    def content(self) -> Content:
        """The finished content."""
        for index, raw in self._changed.items():
            data = bytes(raw.rstrip(b"\0"))
            if data:
                self._chunks[index] = Chunk(data)
            else:
                self._chunks.pop(index, None)
        self._changed = {}
        return Content(self.size, dict(self._chunks))

    def _open(self, index: int) -> bytearray:
        if index not in self._changed:
            old = self._chunks.get(index)
            self._changed[index] = bytearray(old.data if old is not None else b"")
        return self._changed[index]
