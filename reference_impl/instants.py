"""Instants as they travel: RFC 3339 in UTC with the letter Z, whole seconds or up to six fractional digits."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# RFC 3339 has a year 0000, and the dates of Python begin with year 1. The calendar repeats every 400 years, so that the
# year 2000 has the days of 0000; five times 400 years have 730,485 days.
_YEAR_ZERO, _STAND_IN = "0000", "2000"
_YEARS_BETWEEN = timedelta(days=730_485)
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = datetime.min.replace(tzinfo=UTC)
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


def _in_python(text: str) -> tuple[datetime, timedelta]:
    """A date that Python has, and how far it lies after the date in the text. Raises ValueError."""
    if text.startswith(_YEAR_ZERO):
        return datetime.fromisoformat(_STAND_IN + text[len(_YEAR_ZERO) :]), _YEARS_BETWEEN
    return datetime.fromisoformat(text), timedelta(0)


def since_1970(text: str) -> int:
    """Microseconds since 1970-01-01T00:00:00Z of RFC 3339 text of any year, exactly.

    The caller has checked the shape. Raises ValueError for a day or time that does not exist.
    """
    found, behind = _in_python(text)
    return (found - _EPOCH) // _MICROSECOND - behind // _MICROSECOND


def microseconds(instant: datetime) -> int:
    """Microseconds of an aware datetime since 1970-01-01T00:00:00Z, exactly."""
    return (instant - _EPOCH) // _MICROSECOND


def parse_any_year(text: str) -> datetime:
    """As `parse_instant`, of year 0000 too: that is read as the first instant of Python, before every clock."""
    if not text.startswith(_YEAR_ZERO):
        return parse_instant(text)
    parse_instant(_STAND_IN + text[len(_YEAR_ZERO) :])
    return FIRST


def normal_instant(text: str) -> str:
    """Text that `parse_any_year` has read, as `format_instant` writes it."""
    found, _ = _in_python(text)
    return text[: len(_YEAR_ZERO)] + format_instant(found)[len(_YEAR_ZERO) :]


def format_instant(instant: datetime) -> str:
    """Write an aware datetime; without a fraction when it has none."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
