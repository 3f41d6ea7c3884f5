"""Strict JSON and its RFC 8785 form, with a fast path for JSON that is in that form already.

A segment may hold ten thousand records, and the general reader and writer are slow. orjson writes the RFC 8785 form of
a value without fractions, without integers of sixteen digits or more, and without characters beyond U+FFFF (RFC 8785
sorts names by UTF-16). If it writes the same bytes again, no name occurs twice.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from holdfast.specs.strictjson import MAX_DEPTH, MAX_SAFE_INTEGER, canonical, loads

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_HARD_NUMBER = re.compile(rb"[0-9][.eE]|[0-9]{16}")
_BEYOND_BMP = re.compile(rb"[\xf0-\xf4]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_easy(written: bytes) -> bool:
    """Whether orjson writes the RFC 8785 form of the value of this JSON, and of all that is in it.

    An escape \\u may stand for any character; a canonical form has it for control characters only.
    """
    return b"\\u" not in written and _is_easy(written, _without_texts(written))


def _without_texts(written: bytes) -> bytes:
    return _STRING.sub(b"", written)


def _is_easy(written: bytes, bare: bytes) -> bool:
    # Of what orjson has written itself; `bare` is the same without texts.
    return _BEYOND_BMP.search(written) is None and _HARD_NUMBER.search(bare) is None


def _is_shallow(bare: bytes) -> bool:
    """Whether the strict reader would go so deep."""
    brackets = bare.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def write(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value. Raises StrictJsonError for what JSON cannot hold."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return canonical(value)
    return written if _is_easy(written, _without_texts(written)) else canonical(value)


def write_easy(value: Any) -> bytes:
    """The RFC 8785 form of something that is in a value whose JSON `is_easy`."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def read(data: bytes) -> Any:
    """One I-JSON value, whose whole numbers are integers however they are spelt: 1.0 and 1e0 are 1.

    Raises StrictJsonError, as `holdfast.specs.strictjson.loads`.
    """
    try:
        value = orjson.loads(data)
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == data:
            bare = _without_texts(data)
            if _is_easy(data, bare) and _is_shallow(bare):
                return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _by_value(loads(data))


def _by_value(value: Any) -> Any:
    """The same value with an integer for each number that is one. Their RFC 8785 forms are equal."""
    if type(value) is float and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    if type(value) is list:
        return [_by_value(each) for each in value]
    if type(value) is dict:
        return {name: _by_value(each) for name, each in value.items()}
    return value
