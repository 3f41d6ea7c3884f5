"""Deterministic CBOR (RFC 8949 section 4.2.1): one value has one encoding, and only that is read.

Only what an operation may hold: integers of 64 bits, byte strings, text, arrays, maps, false, true and null. Keys of
maps lie in the bytewise order of their encodings, not in the length-first order of RFC 7049.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
# RFC 8949 section 3.3: the simple values that are read.
_CONSTANTS: Mapping[int, bool | None] = {20: False, 21: True, 22: None}
# RFC 8949 section 3: the argument stands in the first byte, or in the 1, 2, 4 or 8 bytes after it.
_DIRECT = 24
_WIDTHS = {24: 1, 25: 2, 26: 4, 27: 8}
# What is less has a shorter form.
_LEAST = {24: _DIRECT, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}
KEY_TYPES = (int, bytes, str)


class CborError(ValueError):
    """Bytes are not the one encoding of a value, or a value has none."""


@dataclass(frozen=True, slots=True)
class Map:
    """A map as its pairs, in the order of their encodings. No dict, because there the keys 1 and true are one."""

    pairs: tuple[tuple[Value, Value], ...]

    def members(self) -> dict[str, Value]:
        """The pairs by name. Raises CborError where a key is no text."""
        found: dict[str, Value] = {}
        for key, value in self.pairs:
            if not isinstance(key, str):
                raise CborError(f"expected text as key, got {key!r}")
            found[key] = value
        return found


Value: TypeAlias = "int | bytes | str | bool | Sequence[Value] | Map | Mapping[str, Value] | None"


def encode(value: Value) -> bytes:
    """The one encoding of a value that an operation or a state holds."""
    return b"".join(_parts(value))


def _parts(value: Value) -> Iterator[bytes]:
    if value is None or isinstance(value, bool):
        yield bytes([_SIMPLE << 5 | {False: 20, True: 21, None: 22}[value]])
    elif isinstance(value, int):
        yield _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    elif isinstance(value, bytes):
        yield _head(_BYTES, len(value)) + value
    elif isinstance(value, str):
        text = value.encode("utf-8")
        yield _head(_TEXT, len(text)) + text
    elif isinstance(value, Map | Mapping):
        pairs = value.pairs if isinstance(value, Map) else tuple(value.items())
        encoded = sorted((encode(key), encode(item)) for key, item in pairs)
        yield _head(_MAP, len(encoded))
        yield from map(b"".join, encoded)
    else:
        yield _head(_ARRAY, len(value))
        for item in value:
            yield from _parts(item)


def _head(major: int, argument: int) -> bytes:
    if argument < _DIRECT:
        return bytes([major << 5 | argument])
    code, width = next((code, width) for code, width in _WIDTHS.items() if argument < 1 << 8 * width)
    return bytes([major << 5 | code]) + argument.to_bytes(width, "big")


def decode(data: bytes, *, max_depth: int) -> Value:
    """The value whose one encoding these bytes are. Raises CborError."""
    value, end = _Reader(data).read(0, max_depth)
    if end != len(data):
        raise CborError(f"expected one value, got {len(data) - end} bytes after it")
    return value


class _Reader:
    """Reads values from one place of the data on; each method returns what it found and where it ends."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, at: int, depth: int) -> tuple[Value, int]:
        """The value that begins at `at`; arrays and maps may still be `depth` deep."""
        if at >= len(self._data):
            raise CborError(f"expected a value at {at}, got the end")
        major, info = self._data[at] >> 5, self._data[at] & 31
        if major == _SIMPLE:
            if info not in _CONSTANTS:
                raise CborError(f"expected false, true or null at {at}, got a float or another simple value")
            return _CONSTANTS[info], at + 1
        if major == _TAG:
            raise CborError(f"expected no tag, got one at {at}")
        argument, behind = (info, at + 1) if info < _DIRECT else self._argument(info, at)
        if major == _TEXT:
            return self._text(argument, behind)
        if major == _BYTES:
            return self._bytes(argument, behind)
        if major == _MAP:
            return self._map(argument, behind, depth)
        if major == _ARRAY:
            return self._array(argument, behind, depth)
        return argument if major == _UNSIGNED else -1 - argument, behind

    def _argument(self, info: int, at: int) -> tuple[int, int]:
        if info not in _WIDTHS:
            raise CborError(f"expected a definite length at {at}")
        raw, behind = self._bytes(_WIDTHS[info], at + 1)
        argument = int.from_bytes(raw, "big")
        if argument < _LEAST[info]:
            raise CborError(f"expected the shortest form of {argument} at {at}")
        return argument, behind

    def _bytes(self, length: int, at: int) -> tuple[bytes, int]:
        if length > len(self._data) - at:
            raise CborError(f"expected {length} bytes at {at}, got {len(self._data) - at}")
        return self._data[at : at + length], at + length

    def _text(self, length: int, at: int) -> tuple[str, int]:
        raw, behind = self._bytes(length, at)
        try:
            return raw.decode("utf-8"), behind
        except UnicodeDecodeError as error:
            raise CborError(f"expected UTF-8 at {at}") from error

    def _array(self, length: int, at: int, depth: int) -> tuple[Value, int]:
        self._deeper(depth, at)
        items: list[Value] = []
        for _ in range(length):
            item, at = self.read(at, depth - 1)
            items.append(item)
        return tuple(items), at

    def _map(self, length: int, at: int, depth: int) -> tuple[Value, int]:
        self._deeper(depth, at)
        pairs: list[tuple[Value, Value]] = []
        before = b""
        for _ in range(length):
            key, behind = self.read(at, depth - 1)
            encoded = self._data[at:behind]
            if not isinstance(key, KEY_TYPES):
                raise CborError(f"expected a number, bytes, text or boolean as key at {at}")
            if pairs and encoded <= before:
                raise CborError(f"expected a key in bytewise order, each once, at {at}")
            value, at = self.read(behind, depth - 1)
            pairs.append((key, value))
            before = encoded
        return Map(tuple(pairs)), at

    def _deeper(self, depth: int, at: int) -> None:
        if depth == 0:
            raise CborError(f"expected nothing that deep at {at}")
