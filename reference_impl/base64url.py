"""Bytes as they travel: base64url without padding and without spare bits, so that each value has one spelling."""

from __future__ import annotations

import base64


class SpellingError(ValueError):
    """Text is not the one spelling of any bytes."""


def read(text: str) -> bytes:
    """The bytes. Raises SpellingError."""
    try:
        # As much padding as any text needs; more of it is passed over.
        data = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise SpellingError(f"expected base64url, got {len(text)} characters that are none") from error
    # Other characters are passed over, and the last one may have unused bits: one value would have several spellings.
    if write(data) != text:
        raise SpellingError("expected base64url without padding and spare bits, got another spelling of the same bytes")
    return data


def write(data: bytes) -> str:
    """The text."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
