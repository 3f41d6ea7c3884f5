"""A second opinion: RFC 8785 and the core profile in a few lines of Python, over the standard library's parser.

Not code of the kit: number text comes from an oracle over `repr`, order from sorting UTF-16, escapes from a table.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tests.vectors.es6 import oracle

_ESCAPES = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}
_TABLE = {code: f"\\u{code:04x}" for code in range(0x20)} | _ESCAPES


class RefusedError(Exception):
    """A document is refused; the message is the reason."""


def read(document: bytes) -> Any:
    """The value of a document, numbers as doubles. Raises RefusedError with the reason of the contract."""
    try:
        text = document.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("INVALID_UTF8") from None
    if text.startswith("\ufeff"):
        raise RefusedError("BYTE_ORDER_MARK")
    try:
        value = json.loads(
            text, parse_int=_number, parse_float=_number, parse_constant=_constant, object_pairs_hook=_members
        )
    except json.JSONDecodeError:
        raise RefusedError("SYNTAX") from None
    _scalars(value)
    return value


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise RefusedError("NUMBER_OUT_OF_RANGE")
    return value


def _constant(_text: str) -> NoReturn:
    raise RefusedError("SYNTAX")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise RefusedError("DUPLICATE_NAME")
    return dict(pairs)


def _scalars(value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RefusedError("LONE_SURROGATE") from None
    elif isinstance(value, list):
        for item in value:
            _scalars(item)
    elif isinstance(value, dict):
        _scalars([*value, *value.values()])


def canonical(document: bytes) -> bytes:
    """The canonical form of a valid document."""
    return _text(read(document)).encode()


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return oracle.text(value)
    if isinstance(value, str):
        return f'"{value.translate(_TABLE)}"'
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
    return "{" + ",".join(f"{_text(name)}:{_text(item)}" for name, item in members) + "}"
