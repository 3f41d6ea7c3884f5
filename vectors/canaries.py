"""Searches for a text or a secret, in all spellings that programs commonly use for bytes.

A canary is a text, or bytes as {bytes: base64url without padding}. A whole file of gzip, zlib, bzip2
or xz is searched unpacked as well. Other compressed or encrypted data is not searched.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

# A shorter one would occur by chance.
_SHORTEST = 6
# Of what is packed no more is searched than this; it is more than a test writes.
_MOST = 64 << 20
_GZIP = 31
# More zeros in a row than a canary has in any spelling.
_EMPTY = bytes(16)
_PACKED: tuple[tuple[bytes, Callable[[], Callable[[bytes, int], bytes]]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(_GZIP).decompress),
    *((head, lambda: zlib.decompressobj().decompress) for head in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")),
    (b"BZh", lambda: bz2.BZ2Decompressor().decompress),
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor().decompress),
)
_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="


def leaks(canaries: Iterable[str], values: Any) -> list[str]:
    """The canaries, sorted, that occur in any text of a JSON value, or in the bytes that such a text spells.

    Raises ValueError for one of less than six bytes, see `spellings`.
    """
    wanted = {canary: spellings(canary) for canary in canaries}
    found = set()
    for text in _texts(values):
        for hay in _readings(text):
            found |= {canary for canary, needles in wanted.items() if any(needle in hay for needle in needles)}
    return sorted(found)


def occurring(wanted: Iterable[Sequence[bytes]], data: bytes) -> list[int]:
    """Which canaries, by their numbers from 0, occur in these bytes; `wanted` are the spellings of each."""
    wanted = [list(dict.fromkeys(needles)) for needles in wanted]
    hays = [data, *_unpacked(data)]
    if not any(_EMPTY in needle for needles in wanted for needle in needles):
        hays = list(map(_without_emptiness, hays))
    return [number for number, needles in enumerate(wanted) if any(needle in hay for needle in needles for hay in hays)]


def _without_emptiness(data: bytes) -> bytes:
    """These bytes with shorter runs of zeros, of which a database is full; none gets shorter than _EMPTY."""
    first, *rest = data.split(_EMPTY)
    return _EMPTY.join([first, *filter(None, rest[:-1]), *rest[-1:]])


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What is packed in these bytes, no more than its beginning. A packer that was killed leaves a beginning."""
    for magic, unpacker in _PACKED:
        if data.startswith(magic):
            with contextlib.suppress(zlib.error, lzma.LZMAError, OSError, EOFError):
                yield unpacker()(data, _MOST)


def spellings(canary: Any) -> list[bytes]:
    """The searched spellings: the bytes, in hexadecimal, as base64 for each position where they can begin.

    A text is also searched in UTF-16 and in JSON escapes, bytes also as lists of decimal numbers. Raises ValueError for
    what is no canary, and for one of less than six bytes.
    """
    if isinstance(canary, str):
        data = canary.encode("utf-8")
        written = [json.dumps(canary)[1:-1].encode(), canary.encode("utf-16-le"), canary.encode("utf-16-be")]
    else:
        data = _secret(canary)
        written = [data.hex().encode("utf-16-le"), data.hex().encode("utf-16-be")]
        # As programs print them that were asked to print a value.
        written += [between.join(b"%d" % byte for byte in data) for between in (b" ", b",", b", ")]
    if len(data) < _SHORTEST:
        raise ValueError(f"what has less than {_SHORTEST} bytes may occur by chance: {canary!r}")
    return [data, data.hex().encode(), data.hex().upper().encode(), *written, *_in_base64(data)]


def _secret(canary: Any) -> bytes:
    if not isinstance(canary, Mapping) or canary.keys() != {"bytes"} or not isinstance(canary["bytes"], str):
        raise ValueError(f"expected a text, or bytes as {{bytes: base64url}}, got {canary!r}")
    text = canary["bytes"]
    if text.strip(_BASE64URL) or "=" in text:
        raise ValueError(f"not base64url without padding: {text[:40]!r}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _in_base64(data: bytes) -> Iterator[bytes]:
    for before in range(3):
        # Digits that depend on neighbouring bytes are cut off, and any padding with them.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + data)[first:last]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield str(name)
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _readings(text: str) -> Iterator[bytes]:
    yield text.encode("utf-8")
    if text.isascii() and not text.strip(_BASE64URL):
        try:
            yield base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
        except binascii.Error:
            return
