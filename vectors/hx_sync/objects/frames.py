"""Zstandard frames (RFC 8878) that blobs of `hx-sync` may have, and those that they may not have. Lengths are bytes.

They are written out here, of blocks that hold their bytes as they are or one byte many times over, so that they are the
same with every version of a library. `compressed` asks the library for one that is really compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

# The most bytes that `plain` returns.
MOST = 64 * 1024 * 1024
_MAGIC = bytes.fromhex("28b52ffd")
_SKIPPABLE = bytes.fromhex("502a4d18")
# RFC 8878 section 3.1.1.2.4: no block is larger.
_BLOCK = 128 * 1024
_RAW, _RUN = 0, 1
# Section 3.1.1.1.1: the size in eight bytes, without a window descriptor.
_EIGHT = 0xC0
_SINGLE = 0x20
# Section 3.1.1.1.2: a window of 128 KiB.
_WINDOW = 7 << 3
# How many bytes the size of the content takes, by the two highest bits of a descriptor that is not of a single segment.
_SIZES = {0: 0, 1: 2, 2: 4, 3: 8}
_DICTIONARIES = (0, 1, 2, 4)


def frame(plain: bytes, *, with_size: bool = True) -> bytes:
    """One frame of these bytes."""
    pieces = [plain[at : at + _BLOCK] for at in range(0, len(plain), _BLOCK)]
    blocks = [
        (_RUN, len(piece), piece[:1]) if piece.count(piece[:1]) == len(piece) else (_RAW, len(piece), piece)
        for piece in pieces
    ]
    return _framed(len(plain), blocks, with_size=with_size)


def frame_of_zeros(count: int, *, with_size: bool = True) -> bytes:
    """One frame of `count` zeros, made without holding them."""
    blocks = [(_RUN, min(_BLOCK, count - at), b"\x00") for at in range(0, count, _BLOCK)]
    return _framed(count, blocks, with_size=with_size)


def _framed(size: int, blocks: list[tuple[int, int, bytes]], *, with_size: bool) -> bytes:
    head = bytes([_EIGHT | _SINGLE]) + size.to_bytes(8, "little") if with_size else bytes([0, _WINDOW])
    parts = [_MAGIC, head]
    blocks = blocks or [(_RAW, 0, b"")]
    for number, (kind, length, content) in enumerate(blocks, start=1):
        # Section 3.1.1.2: whether it is the last one, its kind, its length.
        parts.append((int(number == len(blocks)) | kind << 1 | length << 3).to_bytes(3, "little") + content)
    return b"".join(parts)


def compressed(plain: bytes, *, with_size: bool = True, checksum: bool = False) -> bytes:
    """One frame as the library makes it; another version of it may make another."""
    return zstandard.ZstdCompressor(write_content_size=with_size, write_checksum=checksum).compress(plain)


def zeros(count: int) -> Iterator[bytes]:
    """`count` zeros in pieces."""
    for at in range(0, count, _BLOCK):
        yield bytes(min(_BLOCK, count - at))


def skippable(data: bytes) -> bytes:
    """A frame that readers skip (RFC 8878 section 3.1.2)."""
    return _SKIPPABLE + len(data).to_bytes(4, "little") + data


def stating(data: bytes, size: int) -> bytes:
    """The first frame with another size of its content in its header, in eight bytes."""
    descriptor = data[len(_MAGIC)]
    single = bool(descriptor & _SINGLE)
    at = len(_MAGIC) + 1 + int(not single) + _DICTIONARIES[descriptor & 3]
    length = _SIZES[descriptor >> 6] or int(single)
    head = _MAGIC + bytes([descriptor & ~_EIGHT & 0xFF | _EIGHT]) + data[len(_MAGIC) + 1 : at]
    return head + size.to_bytes(8, "little") + data[at + length :]


def plain(data: bytes) -> bytes:
    """The content of a frame with a stated size. Raises zstandard.ZstdError, ValueError for more than MOST bytes."""
    # The library allocates what a frame states before it reads the rest.
    size = zstandard.frame_content_size(data)
    if not 0 <= size <= MOST:
        raise ValueError(f"a frame that states its size, at most {MOST}, is expected; it states {size}")
    return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
