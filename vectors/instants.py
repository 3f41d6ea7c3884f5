"""Instants as contracts write them, read from their text and from no library: RFC 3339 in UTC with the letter Z."""

from __future__ import annotations

import re
from datetime import date

_SHAPE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,6}))?Z"
)


def utc_instant(text: object) -> str | None:
    """The instant with six digits of a fraction; None where the contracts leave open whether it is one.

    RFC 3339 has the year 0000 and leap seconds, and many a library has neither. Raises ValueError for what is none.
    """
    found = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{text!r} is no instant in UTC")
    if int(found["hour"]) > 23 or int(found["minute"]) > 59 or int(found["second"]) > 60:
        raise ValueError(f"{text!r} is no time of a day")
    if found["day"].startswith("0000") or found["second"] == "60":
        return None
    day = date.fromisoformat(found["day"])
    return f"{day}T{found['hour']}:{found['minute']}:{found['second']}.{(found['fraction'] or '').ljust(6, '0')}Z"
