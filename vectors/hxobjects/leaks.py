"""Whether a text can be read in what lies in a store, in any of the spellings that programs give to bytes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# A shorter one would be met by chance.
_SHORTEST = 6


def leaks(canaries: Iterable[str], values: Any) -> list[str]:
    """The canaries, sorted, that occur in any text of a JSON value, or in the bytes that such a text spells.

    A canary is found as UTF-8, UTF-16, in JSON escapes, in hexadecimal, and as base64 wherever in the encoded bytes it
    began. Raises ValueError for one of less than six bytes.
    """
    wanted = {canary: list(_spellings(canary)) for canary in canaries}
    found = set()
    for text in _texts(values):
        for hay in _readings(text):
            found |= {canary for canary, needles in wanted.items() if any(needle in hay for needle in needles)}
    return sorted(found)


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
    if text.isascii() and not text.strip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="):
        try:
            yield base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
        except binascii.Error:
            return


def _spellings(canary: str) -> Iterator[bytes]:
    data = canary.encode("utf-8")
    if len(data) < _SHORTEST:
        raise ValueError(f"a text of less than {_SHORTEST} bytes may occur by chance: {canary!r}")
    yield data
    yield json.dumps(canary)[1:-1].encode()
    yield data.hex().encode()
    yield data.hex().upper().encode()
    yield canary.encode("utf-16-le")
    yield canary.encode("utf-16-be")
    for before in range(3):
        # What depends on the bytes before and behind is cut off.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + data)[first:last]
