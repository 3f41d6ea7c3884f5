"""ECMAScript's Number::toString written from the specification, over Python's shortest digits.

Slow and plain, and of other making than what it checks: Python's `repr` gives the digits (shortest, closest, ties to
even), this file the notation.
"""

from __future__ import annotations

import struct
from decimal import Decimal


def text(value: float) -> str:
    """ECMA-262 Number::toString(value), radix 10, of a finite double."""
    if value == 0:
        return "0"
    if value < 0:
        return "-" + text(-value)
    _, numerals, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, numerals)).lstrip("0")
    stripped = digits.rstrip("0")
    k, n = len(stripped), len(digits) + exponent
    if k <= n <= 21:
        return stripped + "0" * (n - k)
    if 0 < n <= 21:
        return stripped[:n] + "." + stripped[n:]
    if -6 < n <= 0:
        return "0." + "0" * -n + stripped
    mantissa = stripped if k == 1 else stripped[0] + "." + stripped[1:]
    return f"{mantissa}e{n - 1:+d}"


def double(pattern: int) -> float:
    """The double with these 64 bits."""
    value: float = struct.unpack(">d", pattern.to_bytes(8, "big"))[0]
    return value
