"""Bytes as they travel: base64url without padding and without spare bits."""

from __future__ import annotations

import base64
import re

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class SpellingError(ValueError):
    """Text is not the one spelling of any bytes."""


def from_base64url(text: str) -> bytes:
    """The bytes. Raises SpellingError."""
    if _BASE64URL.fullmatch(text) is None or len(text) % 4 == 1:
        raise SpellingError("expected base64url without padding")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # The last character may have unused bits, and then one value would have several spellings.
    if to_base64url(data) != text:
        raise SpellingError("expected base64url without spare bits")
    return data


def to_base64url(data: bytes) -> str:
    """The text."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
