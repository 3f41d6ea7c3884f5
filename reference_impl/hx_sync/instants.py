"""What an instant is in records and tombstones: RFC 3339 with an offset, compared in microseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from holdfast.reference_impl.instants import since_1970

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What can be written in UTC with a year of four digits.
_FIRST, _LAST = since_1970("0000-01-01T00:00:00Z"), since_1970("9999-12-31T23:59:59.999999Z")
# Python has no year 0. The year 400 has the same days, and lies `_YEARS_BETWEEN` microseconds after it.
_YEAR_ZERO, _STAND_IN = "0000", "0400"
_YEARS_BETWEEN = since_1970("0400-01-01T00:00:00Z") - _FIRST
_YEAR_ONE = since_1970("0001-01-01T00:00:00Z")
# Hours are spelt out: newer Pythons read 24:00 as the next day. `fromisoformat` alone reads much more than this.
_SHAPE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


class InstantError(ValueError):
    """Text is no instant: of another shape, without an offset, or of a day or time that does not exist."""


def read(text: object) -> int:
    """Microseconds since 1970-01-01T00:00:00Z, exactly. Raises InstantError."""
    if not isinstance(text, str) or _SHAPE.fullmatch(text) is None:
        raise InstantError(f"expected an instant like 2026-01-01T00:00:00Z, got {str(text)[:64]!r}")
    try:
        at = since_1970(text)
    except ValueError as error:
        raise InstantError(f"no such day or time: {text!r}") from error
    # An offset may lead out of the years that have four digits.
    if not _FIRST <= at <= _LAST:
        raise InstantError(f"no such day or time: {text!r}")
    return at


def write(at: int) -> str:
    """An instant in UTC with six fractional digits and the letter Z; texts sort like instants."""
    is_year_zero = at < _YEAR_ONE
    moment = _EPOCH + timedelta(microseconds=at + _YEARS_BETWEEN if is_year_zero else at)
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{_YEAR_ZERO + text[len(_STAND_IN) :] if is_year_zero else text}Z"
