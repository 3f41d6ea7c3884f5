"""How contracts spell values, read and written by the letter and with no library that a reference uses.

Bytes travel as base64url without padding, JSON in the canonical form of RFC 8785, instants as RFC 3339 in UTC with the
letter Z.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
# RFC 8785 section 3.2.2.2: these have a short escape, other control characters a lower-case \u one.
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
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


def encoded(data: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of a base64url text without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def canonical(value: Any) -> str:
    """The RFC 8785 text of `value`. Raises ValueError for fractions."""
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(_escape, value) + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    raise ValueError(f"an envelope cannot hold {value!r}")


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def known(asked: Mapping[str, Any], members: frozenset[str], what: str) -> None:
    """Raises ValueError for other members than these."""
    unknown = asked.keys() - members
    if unknown:
        raise ValueError(f"{what} is not made of {', '.join(sorted(unknown))}; known: {', '.join(sorted(members))}")


def checked(derivation: Callable[[Any], Any], *errors: type[Exception]) -> Callable[[Any], Any]:
    """A missing member, or one of a wrong kind, is a ValueError as everywhere; so is any of `errors`."""

    wrong: tuple[type[Exception], ...] = (KeyError, TypeError, AttributeError, *errors)

    def made(value: Any) -> Any:
        try:
            return derivation(value)
        except wrong as error:
            raise ValueError(f"{derivation.__name__} cannot be made of {str(value)[:200]}: {error!r}") from error

    return made
