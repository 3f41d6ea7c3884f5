"""The canonical form of an envelope, written out (RFC 8785), and how bytes travel: base64url without padding."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
# RFC 8785 section 3.2.2.2.
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def canonical(value: Any) -> str:
    """The RFC 8785 text of `value`. Raises ValueError for fractions, which no envelope has."""
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(_escape, value) + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    raise ValueError(f"an envelope cannot hold {value!r}")


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def encoded(data: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of a base64url text without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
