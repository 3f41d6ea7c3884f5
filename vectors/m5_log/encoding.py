"""Deterministic CBOR of m5-log, written from RFC 8949 and the contract: JSON values of cases as bytes.

Bytes are hexadecimal text where a member holds bytes. `{cbor: HEX}` stands for an encoding as it is written, right or
wrong, so that a case can put anything in any place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def head(major: int, number: int) -> bytes:
    """Initial byte and argument in the shortest form (RFC 8949 section 3)."""
    if number < 24:
        return bytes([(major << 5) + number])
    size = next(size for size in (1, 2, 4, 8) if number >> (8 * size) == 0)
    return bytes([(major << 5) + 24 + (1, 2, 4, 8).index(size)]) + number.to_bytes(size, "big")


def text(value: str) -> bytes:
    """A text string."""
    raw = value.encode("utf-8")
    return head(3, len(raw)) + raw


def binary(value: bytes) -> bytes:
    """A byte string."""
    return head(2, len(value)) + value


def members(pairs: Mapping[str, bytes]) -> bytes:
    """A map of texts to encodings, in bytewise order of the encoded keys (section 4.2.1)."""
    encoded = {text(name): value for name, value in pairs.items()}
    return head(5, len(encoded)) + b"".join(name + encoded[name] for name in sorted(encoded))


def value(found: Any) -> bytes:
    """Any value of a case."""
    if isinstance(found, Mapping):
        if found.keys() == {"cbor"}:
            return bytes.fromhex(found["cbor"])
        return members({name: value(item) for name, item in found.items()})
    if found is None or isinstance(found, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[found]
    if isinstance(found, int):
        return head(0, found) if found >= 0 else head(1, -1 - found)
    if isinstance(found, str):
        return text(found)
    if isinstance(found, list):
        return head(4, len(found)) + b"".join(map(value, found))
    raise ValueError(f"expected a value that an operation may hold, got {found!r}")
