"""Strict JSON: reading I-JSON (RFC 7493), writing the canonical form (RFC 8785), and digests over it.

`specs` owns this because contracts have digests. Everything that crosses a process boundary is read here, so that a
duplicate member name, a lone surrogate or a NaN is an error everywhere and never a silent choice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any, Final, NoReturn

import msgspec
import rfc8785

from holdfast.specs.errors import StrictJsonError

# RFC 7493 section 2.2: beyond this an integer is not interoperable; such numbers travel as strings.
MAX_SAFE_INTEGER = 2**53 - 1
# From here on ECMAScript, and so RFC 8785, writes a number with an exponent.
_FIRST_WITH_EXPONENT = 1e21
# Deeper nesting is refused, far from where the recursive parser of the standard library gives up.
MAX_DEPTH = 200


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise StrictJsonError(f"duplicate member name {name!r}")
        found[name] = value
    return found


def _constant(text: str) -> NoReturn:
    raise StrictJsonError(f"{text} is not JSON")


def _integer(text: str) -> int:
    # The length first: converting a million digits is quadratic.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER:
        raise StrictJsonError(f"integer beyond 2^53: {text[:24]}; send it as a string")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise StrictJsonError(f"number out of range: {text[:24]}")
    # `1e20` is the integer 100000000000000000000, and that is how RFC 8785 writes it down.
    if MAX_SAFE_INTEGER < abs(value) < _FIRST_WITH_EXPONENT:
        raise StrictJsonError(f"integer beyond 2^53: {text[:24]}; send it as a string")
    # `1.0` is the integer 1, for a schema and for RFC 8785.
    return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value


def _refuse_surrogates(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if any("\ud800" <= character <= "\udfff" for character in item):
                raise StrictJsonError("lone surrogate in a string")
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def loads(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> Any:
    """Read one I-JSON value from `data`.

    Raises StrictJsonError for bytes that are not UTF-8, a byte order mark, duplicate member names, lone surrogates,
    NaN or Infinity, integers beyond 2^53, nesting deeper than `max_depth` (at most
    MAX_DEPTH), or anything after the value.
    """
    return _loaded(data, max_depth)[0]


def parsed(data: bytes | str) -> tuple[Any, bool]:
    """One I-JSON value, and whether `data` is its RFC 8785 form. Raises StrictJsonError as `loads` does."""
    value, is_canonical = _loaded(data, MAX_DEPTH)
    return value, is_canonical or canonical(value) == (data if isinstance(data, bytes) else data.encode())


def _loaded(data: bytes | str, max_depth: int) -> tuple[Any, bool]:
    """The value, and whether it showed that the text is its RFC 8785 form."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"not UTF-8 at byte {error.start}") from error
    if text.startswith("\ufeff"):
        raise StrictJsonError("starts with a byte order mark")
    # Counting brackets as text bounds the depth from above; only suspicious texts pay for the exact count.
    suspicious = text.count("[") + text.count("{") > max_depth
    # Most texts that the kit reads are their own RFC 8785 form, or a common other one. A plain value whose form is the
    # text shows that no member came twice, no surrogate was alone, and each number is one of I-JSON.
    with contextlib.suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        value = _read(text)
        if _is_plain(value) and (not suspicious or _deepest(value) <= max_depth):
            if (is_canonical := _plainly(value) == (raw := text.encode())) or _in_order(value) == raw:
                return value, is_canonical
            if json.dumps(value) == text:
                return value, False
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_float
        )
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise StrictJsonError(f"nested deeper than {max_depth} levels") from error
    if suspicious and _deepest(value) > max_depth:
        raise StrictJsonError(f"nested deeper than {max_depth} levels")
    if "\\u" in text or not text.isascii():
        _refuse_surrogates(value)
    return value, False


# Written in C; the library that knows all of RFC 8785 is not.
_plainly: Final = msgspec.json.Encoder(order="sorted").encode
_in_order: Final = msgspec.json.Encoder().encode
_read: Final = msgspec.json.Decoder().decode


def _is_plain(value: Any) -> bool:
    """Whether there is nothing in `value` on which RFC 8785 differs from JSON with sorted keys.

    That is no number but integers within 2^53, and no name outside of ASCII: UTF-16 sorts some of these otherwise.
    """
    kind = type(value)
    # Loops: this is asked of all that crosses a process boundary, and most of that is text.
    if kind is dict:
        for name, inner in value.items():
            if type(name) is not str or not name.isascii() or (type(inner) is not str and not _is_plain(inner)):
                return False
        return True
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return (
        kind is str or value is None or kind is bool or (kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    )


def _deepest(value: Any) -> int:
    """How deep lists and objects are nested in a value."""
    level: list[Any] = [value]
    depth = 0
    while level := [each for each in level if type(each) is list or type(each) is dict]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if type(each) is dict else each)]
    return depth


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of `value`, as bytes. Raises StrictJsonError for what JSON cannot hold."""
    try:
        return _canonical(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise StrictJsonError(f"cannot be canonicalised: {error}") from error


def _canonical(value: Any) -> bytes:
    if _is_plain(value):
        return _plainly(value)
    # One number in a large value must not make all of it slow.
    if type(value) is list or type(value) is tuple:
        return b"[" + b",".join(map(_canonical, value)) + b"]"
    if type(value) is dict and all(type(name) is str and name.isascii() for name in value):
        return b"{" + b",".join(_canonical(name) + b":" + _canonical(value[name]) for name in sorted(value)) + b"}"
    return rfc8785.dumps(value)


def digest(value: Any) -> str:
    """`sha256:` and the hexadecimal SHA-256 of the RFC 8785 form of `value`."""
    return digest_bytes(canonical(value))


def digest_bytes(data: bytes) -> str:
    """`sha256:` and the hexadecimal SHA-256 of `data`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
