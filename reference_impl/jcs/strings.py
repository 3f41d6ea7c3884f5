"""Strings: what may stand in them, and what the escapes of RFC 8259 section 7 mean."""

from __future__ import annotations

import re

# The longest literal run. It ends at the closing quotation mark, an escape, or a raw control character.
PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
# A whole string without escapes, which most are.
WHOLE = re.compile(r'"([^"\\\x00-\x1f]*)"')
HEX4 = re.compile(r"[0-9A-Fa-f]{4}")
SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# Unicode 3.4 D14: U+FDD0 to U+FDEF, and the last two code points of each of the 17 planes.
_LAST_TWO = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
NONCHARACTER = re.compile(f"[\ufdd0-\ufdef{_LAST_TWO}]")


def is_high(unit: int) -> bool:
    """Whether a UTF-16 code unit is the first half of a surrogate pair."""
    return 0xD800 <= unit <= 0xDBFF


def is_low(unit: int) -> bool:
    """Whether a UTF-16 code unit is the second half of a surrogate pair."""
    return 0xDC00 <= unit <= 0xDFFF


def joined(high: int, low: int) -> str:
    """The character that a surrogate pair stands for."""
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
