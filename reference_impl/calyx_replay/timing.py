"""Time: what a timestamp is, the window around the receiver's clock, and what older versions wrote into seen_at."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from holdfast.reference_impl.calyx_replay.terms import Settings
from holdfast.reference_impl.instants import microseconds, parse_any_year, since_1970

# The first year of RFC 3339, which Python does not have.
_YEAR_ZERO = "0000-"
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# Hours are spelt out: newer Pythons read 24:00 as the next day.
_SEEN_AT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))?",
)


# An instant in the one spelling of `written`.
Written: TypeAlias = str


def later(instant: datetime, by: timedelta) -> datetime:
    """`instant + by`, or the last instant that Python has."""
    try:
        return instant + by
    except OverflowError:
        return _LAST


def earlier(instant: datetime, by: timedelta) -> datetime:
    """`instant - by`, or the first instant that Python has."""
    try:
        return instant - by
    except OverflowError:
        return _FIRST


def written(instant: datetime) -> Written:
    """An instant as this version writes it: UTC, six fractional digits, the letter Z; texts sort like instants."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class Window:
    """Which timestamps are admissible now."""

    def __init__(self, settings: Settings) -> None:
        self.width = settings.window

    def read(self, text: str) -> datetime:
        """The instant that a header's timestamp names. Raises InstantError.

        One of year 0000 is read as the first instant of Python, which no window admits.
        """
        return parse_any_year(text)

    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        """Whether it lies in the closed window around the receiver's clock, to the microsecond."""
        return timestamp > _FIRST and abs(timestamp - now) <= self.width


def seen_at(stored: object) -> int | None:
    """Microseconds since 1970 of a value of the column seen_at, in any form of any version; None for no instant.

    Text is RFC 3339 with T or a space, with or without a fraction, Z or an offset, without either in UTC. Integers
    and reals are seconds since 1970, because a TIMESTAMP column has numeric affinity.
    """
    if isinstance(stored, str):
        return _read_text(stored)
    if isinstance(stored, int | float):
        return _read_number(stored)
    return None


def _read_text(stored: str) -> int | None:
    found = _SEEN_AT.fullmatch(stored)
    if found is None:
        return None
    day, time, fraction, sign, hours, minutes = found.groups()
    try:
        whole = since_1970(f"{day}T{time}+00:00")
    except ValueError:
        return None
    # Nanoseconds are cut: only whole microseconds are compared.
    beyond = int(f"{fraction or ''}000000"[:6])
    offset = 0 if sign is None else (int(hours) * 60 + int(minutes)) * 60_000_000
    return whole + beyond + (offset if sign == "-" else -offset)


def _read_number(stored: float) -> int | None:
    moment = stored * 1e6
    if not math.isfinite(moment):
        return None
    # A double of today's seconds has steps of a quarter of a microsecond, so the nearest microsecond is right.
    # Whole seconds are exact, because a million of them is a multiple of 64.
    found = round(moment)
    # A writer of milliseconds did not write an instant of these years.
    return found if since_1970(f"{_YEAR_ZERO}01-01T00:00:00Z") <= found <= microseconds(_LAST) else None
