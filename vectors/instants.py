"""Instants as contracts write them, read from their text and from no library: RFC 3339 in UTC with the letter Z."""

from __future__ import annotations

import re
from datetime import date

_SHAPE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,6}))?Z"
)


def utc_instant(text: object) -> str | None:
    """The instant with six digits of a fraction; None for a leap second, of which the contracts do not speak.

    RFC 3339 has a year 0000, which has the days of the year 2000. Raises ValueError for what is no instant.
    """
    found = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{text!r} is no instant in UTC")
    if int(found["hour"]) > 23 or int(found["minute"]) > 59 or int(found["second"]) > 60:
        raise ValueError(f"{text!r} is no time of a day")
    date.fromisoformat(re.sub("^0000", "2000", found["day"]))
    if found["second"] == "60":
        return None
    return (
        f"{found['day']}T{found['hour']}:{found['minute']}:{found['second']}.{(found['fraction'] or '').ljust(6, '0')}Z"
    )
