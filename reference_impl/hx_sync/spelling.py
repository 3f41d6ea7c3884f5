"""Bytes as they travel: base64url without padding and without spare bits."""

from __future__ import annotations

import base64


class SpellingError(ValueError):
    """Text is not the one spelling of any bytes."""


def from_base64url(text: str) -> bytes:
    """The bytes. Raises SpellingError."""
    try:
        # As much padding as any text needs; more of it is passed over.
        data = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise SpellingError(f"expected base64url: {error}") from error
    # Python passes over other characters, and over bits of the last one: one value would have several spellings.
    if to_base64url(data) != text:
        raise SpellingError("expected base64url without padding and without spare bits")
    return data


def to_base64url(data: bytes) -> str:
    """The text."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
