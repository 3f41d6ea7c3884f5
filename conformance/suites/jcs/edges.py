"""Documents at the edges of what strings may hold: halves of characters, noncharacters, byte order marks, long names.

Each differs in one thing from one that is judged otherwise. What is expected follows from how it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from random import Random

from holdfast.conformance.suites.jcs.documents import ESCAPED, number_of
from holdfast.vectors.record import Canonical, Expected, Refused, Vector
from holdfast.vectors.taxonomy import Category, Profile

# Code units at the ends of the ranges of both halves, beside them, and far from them.
_UNITS = (0x0000, 0x0041, 0xD7FF, 0xD800, 0xD801, 0xDBFF, 0xDC00, 0xDC01, 0xDFFF, 0xE000, 0xFFFD)
# Code points of Unicode's noncharacters and beside them.
_POINTS = (0xFDCF, 0xFDD0, 0xFDEF, 0xFDF0, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFD, 0x1FFFE, 0x10FFFF)
# How many characters stand before them, at both sides of the sizes that buffers have.
_BEFORE = (0, 1, 15, 16, 17, 33, 65, 129, 257)
# What a lenient reader takes for a quotation mark, and what it may pass over.
_QUOTES = ("'", "`", "\u201c", "\u2033", "\uff02", "a", "_", "$", "!", "#", " ", "\\", "\t", "0")
_MARK = b"\xef\xbb\xbf"
# Rungs of the ladder whose strings and names have at most this number of units: `vectors verify` has longer ones.
_MOST_UNITS = 1025
_AXES = ("string", "name", "names")


def pairs_of_units() -> Iterator[Vector]:
    """Two escaped code units beside each other, in a string and in a name."""
    for first, second in product(_UNITS, repeat=2):
        written = f'"\\u{first:04x}\\u{second:04X}"'
        text = _joined(first, second)
        for before, behind in (("[", "]"), ("{", ":0}")):
            due: Expected = Refused("LONE_SURROGATE")
            if text is not None:
                due = Canonical(f"{before}{_canonical(text)}{behind}".encode())
            document = f"{before}{written}{behind}".encode()
            category = Category.LONE_SURROGATES if text is None else Category.STRING_ESCAPED
            yield _vector(f"{first:04x} {second:04x} {before}", category, document, dict.fromkeys(Profile, due))


def noncharacters() -> Iterator[Vector]:
    """A code point behind various numbers of others, as it is and escaped; only i-json-strict refuses noncharacters."""
    for point, before, escaped in product(_POINTS, _BEFORE, (False, True)):
        character, filled = chr(point), "x" * before
        units = character.encode("utf-16-be")
        spelled = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        document = f'"{filled}{spelled if escaped else character}"'.encode()
        due: dict[Profile, Expected] = dict.fromkeys(Profile, Canonical(f'"{filled}{character}"'.encode()))
        if 0xFDD0 <= point <= 0xFDEF or point & 0xFFFE == 0xFFFE:
            due[Profile.I_JSON_STRICT] = Refused("NONCHARACTER")
        yield _vector(f"U+{point:04X} behind {before}", Category.STRING_RAW, document, due)


def beside_a_mark() -> Iterator[Vector]:
    """The mark with one bit changed, where that is a character; no document begins with one."""
    for at, bit in product(range(len(_MARK)), range(8)):
        first = bytes(byte ^ (1 << bit if at == number else 0) for number, byte in enumerate(_MARK))
        try:
            first.decode("utf-8")
        except UnicodeDecodeError:
            continue
        yield _vector(first.hex(), Category.ENCODING, first + b"1", dict.fromkeys(Profile, Refused("SYNTAX")))
    yield _vector(_MARK.hex(), Category.ENCODING, _MARK + b"1", dict.fromkeys(Profile, Refused("BYTE_ORDER_MARK")))


def beside_a_quotation_mark() -> Iterator[Vector]:
    """A string and a name that begin, or end, with another character than a quotation mark."""
    for other, (before, behind), first in product(_QUOTES, (("[", "]"), ("{", ":0}")), (True, False)):
        text = f'{other}a"' if first else f'"a{other}'
        due = dict.fromkeys(Profile, Refused("SYNTAX"))
        yield _vector(f"{other!r} {before} {first}", Category.STRING_GRAMMAR, f"{before}{text}{behind}".encode(), due)


def long_texts(seed: str) -> Iterator[tuple[Vector, bytes | None]]:
    """The rungs of the ladder about strings and names, up to a length, each beside itself without its defect."""
    # Its stocks take a third of a second, for which no list of cases should wait.
    from holdfast.vectors.jcs.ladder import rung, steps

    for name in steps():
        axis, _, rest = name.partition("-")
        if axis in _AXES and int(rest.partition("-")[0]) <= _MOST_UNITS:
            made = rung(number_of(seed), name)
            reason, canonical = made.reason or "", made.canonical or b""
            due: dict[Profile, Expected] = {
                profile: Refused(reason) if made.refused_by & profile.bit else Canonical(canonical)
                for profile in Profile
            }
            yield _vector(name, made.category, made.document, due), made.twin


def in_any_order(records: Iterable[Vector], seed: str) -> list[Vector]:
    """The records in an order of the seed, so that what is asked before does not decide."""
    listed = list(records)
    return Random(f"{seed} edges").sample(listed, len(listed))  # noqa: S311 - no secret


def _joined(first: int, second: int) -> str | None:
    """The text that two code units spell; None if one of them is half of nothing."""
    try:
        return (first.to_bytes(2, "big") + second.to_bytes(2, "big")).decode("utf-16-be")
    except UnicodeDecodeError:
        return None


def _canonical(text: str) -> str:
    return '"' + "".join(ESCAPED.get(character, character) for character in text) + '"'


def _vector(name: str, category: Category, document: bytes, due: Mapping[Profile, Expected]) -> Vector:
    return Vector(name, category, document, due, "", (), "constructed", None, "")
