"""Instants as they travel: RFC 3339 in UTC with the letter Z, whole seconds or up to six fractional digits."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# Hours are spelt out: newer Pythons read 24:00 as the next day.
_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z")


class InstantError(ValueError):
    """Text is not an instant: of another shape, or of a day or time that does not exist."""


def parse_instant(text: str) -> datetime:
    """Read an instant as an aware datetime in UTC. Raises InstantError."""
    # `fromisoformat` alone reads much more than this.
    if _SHAPE.fullmatch(text) is None:
        raise InstantError(f"expected an instant like 2026-01-01T00:00:00Z, got {text!r}")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InstantError(f"no such day or time: {text!r}") from error


def format_instant(instant: datetime) -> str:
    """Write an aware datetime; without a fraction when it has none."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
