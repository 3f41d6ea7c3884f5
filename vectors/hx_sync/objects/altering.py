"""Objects of `hx-sync` that were changed without any key. Places are offsets, or names of parts."""

from __future__ import annotations

from dataclasses import replace

from holdfast.vectors.hx_sync.objects.format import PRELUDE, TAG, parts_of

# The parts that a swap takes from the other object.
_SWAPS = {
    "swap-header": ("prelude", "header"),
    "swap-wrap": ("wrap_nonce", "wrapped_key"),
    "swap-wrap-nonce": ("wrap_nonce",),
    "swap-nonce": ("nonce",),
    "swap-payload": ("nonce", "ciphertext"),
}
_WAYS = ("flip", "truncate", "append", "insert", *_SWAPS)


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


def altered(
    data: bytes, how: str, *, at: int | str = 0, bits: int = 1, more: bytes = b"\x00", other: bytes = b""
) -> bytes:
    """The object after a change: `bits` of the byte `at` a place are changed, or `more` is put there.

    `other` is for swaps. Raises ValueError for an impossible change.
    """
    if how not in _WAYS:
        raise ValueError(f"no alteration is called {how!r}; known: {', '.join(_WAYS)}")
    if how in _SWAPS:
        theirs = parts_of(other)
        return replace(parts_of(data), **{name: getattr(theirs, name) for name in _SWAPS[how]}).joined()
    if how == "append":
        return data + more
    place = place_of(data, at)
    if how == "truncate":
        return data[:place]
    if how == "insert":
        return data[:place] + more + data[place:]
    if place == len(data):
        raise ValueError(f"there is no byte {place} in {place} bytes")
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]
