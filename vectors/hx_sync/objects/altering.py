"""Objects of `hx-sync` that were changed without any key. Places are offsets, or names of parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast.vectors.hx_sync.objects.format import PRELUDE, TAG, Parts, parts_of


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change: `bits` of the byte `at` a place are changed, or `data` is put there; `other` is for swaps."""

    how: str
    at: int | str = 0
    bits: int = 1
    data: bytes = b"\x00"
    other: bytes = b""


def regions(data: bytes) -> dict[str, int]:
    """The beginning of each part of an object. Raises ValueError if it is no object."""
    parts = parts_of(data)
    at = PRELUDE + len(parts.header)
    wrapped, nonce = at + len(parts.wrap_nonce), at + len(parts.wrap_nonce) + len(parts.wrapped_key)
    return {
        "magic": 0,
        "version": 5,
        "algorithm": 6,
        "length": 7,
        "header": PRELUDE,
        "wrap-nonce": at,
        "wrapped-key": wrapped,
        "wrap-tag": nonce - TAG,
        "nonce": nonce,
        "payload": nonce + len(parts.nonce),
        "tag": len(data) - TAG,
    }


def place_of(data: bytes, at: int | str) -> int:
    """The offset that a number, from the end if it is negative, or the name of a part means. Raises ValueError."""
    if isinstance(at, str):
        named = regions(data)
        if at not in named:
            raise ValueError(f"no part of an object is called {at!r}; known: {', '.join(named)}")
        at = named[at]
    place = at + len(data) if at < 0 else at
    if not 0 <= place <= len(data):
        raise ValueError(f"there is no place {at} in {len(data)} bytes")
    return place


def altered(data: bytes, change: Alteration) -> bytes:
    """The object after the change. Raises ValueError for an impossible change."""
    if change.how not in _WAYS:
        raise ValueError(f"no alteration is called {change.how!r}; known: {', '.join(_WAYS)}")
    return _WAYS[change.how](data, change)


def _flipped(data: bytes, change: Alteration) -> bytes:
    place = place_of(data, change.at)
    if place == len(data):
        raise ValueError(f"there is no byte {place} in {place} bytes")
    return data[:place] + bytes([data[place] ^ change.bits]) + data[place + 1 :]


def _inserted(data: bytes, change: Alteration) -> bytes:
    place = place_of(data, change.at)
    return data[:place] + change.data + data[place:]


def _swapped(data: bytes, change: Alteration) -> bytes:
    mine, other = parts_of(data), parts_of(change.other)
    swaps: dict[str, Callable[[], Parts]] = {
        "swap-header": lambda: replace(mine, prelude=other.prelude, header=other.header),
        "swap-wrap": lambda: replace(mine, wrap_nonce=other.wrap_nonce, wrapped_key=other.wrapped_key),
        "swap-wrap-nonce": lambda: replace(mine, wrap_nonce=other.wrap_nonce),
        "swap-nonce": lambda: replace(mine, nonce=other.nonce),
        "swap-payload": lambda: replace(mine, nonce=other.nonce, ciphertext=other.ciphertext),
    }
    return swaps[change.how]().joined()


_WAYS: dict[str, Callable[[bytes, Alteration], bytes]] = {
    "flip": _flipped,
    "truncate": lambda data, change: data[: place_of(data, change.at)],
    "append": lambda data, change: data + change.data,
    "insert": _inserted,
    **dict.fromkeys(("swap-header", "swap-wrap", "swap-wrap-nonce", "swap-nonce", "swap-payload"), _swapped),
}
