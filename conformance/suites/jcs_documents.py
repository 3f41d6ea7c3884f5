"""Documents for the suite of jcs: any JSON value, and legal disguises of it that change no canonical form."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st

# Strings without surrogates; control characters, quotation marks and the ends of the planes more often than they
# would come by themselves.
_CHARACTERS = st.characters(codec="utf-8") | st.sampled_from('\0\n\x1f"\\/<\x7f\x80\u2028\ue000\ufb33\U0001f600')
_TEXTS = st.text(_CHARACTERS, max_size=6)
# Few digits at every size, which random doubles almost never have, and random doubles.
_DECIMALS = st.builds(
    lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(-(10**6), 10**6), st.integers(-30, 30)
)
_NUMBERS = _DECIMALS | st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS | _TEXTS
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=12,
)

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "/": "\\/"}


def disguised(value: Any, way: Random) -> bytes:
    """A document that spells `value` in one of very many ways: blanks, member order, escapes, number spellings."""
    return (_blank(way) + _spelt(value, way) + _blank(way)).encode("utf-8")


def _blank(way: Random) -> str:
    return "".join(way.choices(" \t\n\r", k=way.choice((0, 0, 0, 1, 2))))


def _spelt(value: Any, way: Random) -> str:
    if isinstance(value, str):
        return '"' + "".join(_character(character, way) for character in value) + '"'
    if isinstance(value, float):
        return _number(value, way)
    if isinstance(value, list):
        return (
            "[" + ",".join(_blank(way) + _spelt(item, way) + _blank(way) for item in value) + _inside(value, way) + "]"
        )
    if isinstance(value, dict):
        members = list(value.items())
        way.shuffle(members)
        spelt = (
            f"{_blank(way)}{_spelt(name, way)}{_blank(way)}:{_blank(way)}{_spelt(item, way)}{_blank(way)}"
            for name, item in members
        )
        return "{" + ",".join(spelt) + _inside(value, way) + "}"
    return json.dumps(value)


def _inside(container: Any, way: Random) -> str:
    return "" if container else _blank(way)


def _character(character: str, way: Random) -> str:
    must = character < " " or character in '"\\'
    if character in _SHORT and way.random() < 0.5:
        return _SHORT[character]
    if not must and way.random() < 0.7:
        return character
    units = character.encode("utf-16-be")
    digits = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{four.upper() if way.random() < 0.5 else four}" for four in digits)


def _number(double: float, way: Random) -> str:
    if double == 0:
        return way.choice(("0", "-0", "0.0", "-0e9", "0E-7"))
    sign = "-" if math.copysign(1, double) < 0 else ""
    # `repr` reads back as the same double, and so does every other spelling of its digits.
    _, figures, exponent = Decimal(repr(abs(double))).as_tuple()
    digits = "".join(map(str, figures)) + "0" * (zeros := way.randrange(3))
    shift = int(exponent) - zeros
    point = way.randrange(1, len(digits) + 1)
    # Digits before the point, digits behind it, and the exponent that makes up for the point.
    whole, fraction = digits[:point].lstrip("0") or "0", digits[point:]
    behind = f".{fraction}" if fraction else way.choice(("", ".0"))
    power = shift + len(fraction)
    mark = way.choice("eE") + ("-" if power < 0 else way.choice(("", "+"))) + "0" * way.randrange(2) + str(abs(power))
    return sign + whole + behind + ("" if power == 0 and way.random() < 0.5 else mark)


def same_value(left: Any, right: Any) -> bool:
    """Whether two values are one as JSON has them: members in any order, minus zero is zero, true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return type(left) is type(right) and left == right


def value_of(canonical: bytes) -> Any:
    """The value of bytes that are said to be JSON. Raises ValueError if they are not."""
    return json.loads(canonical.decode("utf-8"), parse_int=float)


def depth_of(document: bytes) -> int:
    """How deep `document` nests at its deepest, as far as its brackets tell."""
    depth = deepest = 0
    inside = escaped = False
    for byte in document:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
