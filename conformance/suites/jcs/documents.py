"""Documents for suites: constructed ones, any JSON value, and legal disguises that change no canonical form of jcs.

All are generated from a seed: an adapter that knows the committed vectors does not know them.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import count, islice, product
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.vectors.record import Canonical, Expected, Refused, Vector
from holdfast.vectors.spelling import canonical
from holdfast.vectors.taxonomy import Category, Profile

if TYPE_CHECKING:
    from holdfast.vectors.jcs.construct import Row

T = TypeVar("T")
# Control characters, quotation marks and the ends of the planes, more often than they would come by themselves.
_MARKED = '\0\n\x1f"\\/<\x7f\x80\u2028\ue000\ufb33\U0001f600'
# Code points up to each of these: ASCII, two bytes of UTF-8, three, four.
_PLANES = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
# Constructed documents come in slices of this number; one slice takes a tenth of a second.
_SLICE = 512
# Characters of a long string, and the most zeros in a long number.
_LONG = 20_000
# Levels of containers above the scalars of a generated value, at the most.
_LEVELS = 4


def constructed(seed: str) -> Iterator[tuple[Vector, bytes]]:
    """Documents whose canonical bytes are known by construction, without end, each beside itself without its defect.

    Negative ones have one defect, the others none.
    """
    number = number_of(seed)
    for row, twin in constructed_rows(seed):
        name, category = f"{row['category']} {number}/{row['index']}", Category(row["category"])
        due = _due(row["refused_by"], row["reason"], row["canonical"])
        yield replace(_vector(name, category, row["document"], due), clause=category.clause), twin


def constructed_rows(seed: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The same as rows of the stream."""
    # numpy and pyarrow take a third of a second, for which no list of cases should wait.
    from holdfast.vectors.jcs.construct.stream import batch, twins

    number = number_of(seed)
    for start in count(0, _SLICE):
        rows = batch(number, start, _SLICE).to_pylist()
        yield from zip(rows, twins(number, start, _SLICE).to_pylist(), strict=True)


def number_of(seed: str) -> int:
    """A number of the run that an adapter cannot know."""
    return int.from_bytes(sha256(seed.encode()).digest()[:7], "big")


def large(seed: str) -> Iterator[Vector]:
    """A few documents of a hundred kilobytes, and numbers of thousands of digits."""
    way = Random(f"{seed} large")  # noqa: S311 - no secret
    parts = [record for record, _ in islice(constructed(seed), _SLICE) if record.canonical is not None]
    # Names of equal length and without escapes, so that their order is that of their digits.
    named = sorted({f"{way.getrandbits(48):012x}": part for part in parts}.items())
    shuffled = way.sample(named, len(named))
    text = "".join(_any_character(way) for _ in range(_LONG))
    digit, zeros = way.randint(1, 9), "0" * way.randint(_LONG // 2, _LONG)
    yield _large(
        "an array",
        b"[" + b" ,\n".join(part.document for part in parts) + b"]",
        b"[" + b",".join(part.canonical or b"" for part in parts) + b"]",
    )
    yield _large(
        "an object",
        b"{" + b",".join(b'"%s" : %s' % (name.encode(), part.document) for name, part in shuffled) + b"}",
        b"{" + b",".join(b'"%s":%s' % (name.encode(), part.canonical or b"") for name, part in named) + b"}",
    )
    yield _large("a string", _spelt(text, way).encode(), canonical(text).encode())
    yield _large("a large literal", f"{digit}{zeros}e-{len(zeros)}".encode(), f"{digit}".encode())
    yield _large("a small literal", f"-0.{zeros}{digit}E{len(zeros) + 1}".encode(), f"-{digit}".encode())


def _large(name: str, document: bytes, canonical: bytes) -> Vector:
    return _vector(name, Category.SIZE, document, dict.fromkeys(Profile, Canonical(canonical)))


def drawn(way: Random, levels: int = _LEVELS) -> Any:
    """Any JSON value of at most `levels` levels: None, bool, float, str without surrogates, list or dict."""
    kind = way.choice("vnntaaooo") if levels else way.choice("vnntt")
    if kind == "v":
        return way.choice((None, True, False))
    if kind == "n":
        return _double(way)
    if kind == "t":
        return _text(way)
    if kind == "a":
        return [drawn(way, levels - 1) for _ in range(way.randrange(4))]
    return {_text(way): drawn(way, levels - 1) for _ in range(way.randrange(5))}


def _double(way: Random) -> float:
    """Few digits at every size, which random doubles almost never have, or a random double."""
    if way.random() < 0.5:
        return float(f"{way.randint(-(10**6), 10**6)}e{way.randint(-30, 30)}")
    double: float = struct.unpack("<d", way.randbytes(8))[0]
    return double if math.isfinite(double) else 0.0


def _text(way: Random) -> str:
    return "".join(_any_character(way) for _ in range(way.randrange(7)))


def _any_character(way: Random) -> str:
    if way.random() < 0.3:
        return way.choice(_MARKED)
    code = way.randint(0, way.choice(_PLANES))
    # Surrogates are no characters.
    return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"


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
    from holdfast.vectors.jcs.construct.characters import spellings

    # Two of the four are the character itself, where JSON allows that.
    return way.choice(spellings(ord(character))).decode("utf-8")


def _number(double: float, way: Random) -> str:
    from holdfast.vectors.jcs.construct.decimals import double_of_bits, shortest
    from holdfast.vectors.jcs.construct.dice import Dice
    from holdfast.vectors.jcs.construct.numbers import spell

    (bits,) = struct.unpack(">Q", struct.pack(">d", abs(double)))
    sign = "-" if math.copysign(1, double) < 0 else ""
    return sign + spell(Dice(way.getrandbits(63)), shortest(double_of_bits(bits)))


def same_value(left: Any, right: Any) -> bool:
    """Whether two values have the same texts, members and elements, in any order of members.

    Not compared are which number a number is, and which empty container an empty one: their bytes are judged apart.
    """
    if isinstance(left, dict | list) and isinstance(right, dict | list) and not (left or right):
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return type(left) is type(right) and (isinstance(left, float) or left == right)


def value_of(canonical: bytes) -> Any:
    """The value of bytes that are said to be JSON. Raises ValueError if they are not."""
    return json.loads(canonical.decode("utf-8"), parse_int=float)


# Documents at the edges of what strings may hold: halves of characters, noncharacters, byte order marks, long names.
#
# Each differs in one thing from one that is judged otherwise. What is expected follows from how it is made.


# Code units at the ends of the ranges of both halves, beside them, and far from them.
_UNITS = (0x0000, 0x0041, 0xD7FF, 0xD800, 0xD801, 0xDBFF, 0xDC00, 0xDC01, 0xDFFF, 0xE000, 0xFFFD)
# Code points of Unicode's noncharacters and beside them.
_POINTS = (0xFDCF, 0xFDD0, 0xFDEF, 0xFDF0, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFD, 0x1FFFE, 0x10FFFF)
# How many characters stand before them, at both sides of the sizes that buffers have.
_BEFORE = (0, 1, 15, 16, 17, 33, 65, 129, 257)
# What a lenient reader takes for a quotation mark, and what it may pass over.
_QUOTES = ("'", "`", "\u201c", "\u2033", "\uff02", "a", "_", "$", "!", "#", " ", "\\", "\t", "0")
_MARK = b"\xef\xbb\xbf"
# Of the ladder of sizes the contract asks for what is small, for each kind at the size of a buffer, and for the largest
# of each axis and category that the protocol carries (the longest `document` of methods.yaml); bytes.
# `vectors verify` asks for all of it.
_SMALL, _BUFFER, _MOST = 5_200, 20_000, 750_000
_EVERY_DEFECT = "every"


def pairs_of_units() -> Iterator[Vector]:
    """Two escaped code units beside each other, in a string and in a name."""
    for first, second in product(_UNITS, repeat=2):
        written = f'"\\u{first:04x}\\u{second:04X}"'
        text = _joined(first, second)
        for before, behind in (("[", "]"), ("{", ":0}")):
            due: Expected = Refused("LONE_SURROGATE")
            if text is not None:
                due = Canonical(f"{before}{canonical(text)}{behind}".encode())
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


@lru_cache(maxsize=1)
def rungs(seed: str) -> Mapping[str, Sequence[tuple[Vector, bytes | None]]]:
    """Rungs of the ladder by axis, each beside itself without its defect."""
    # Its stocks take a third of a second, for which no list of cases should wait.
    from holdfast.vectors.jcs.ladder import rung, steps

    made = sorted((rung(number_of(seed), name) for name in steps()), key=lambda one: len(one.document))
    chosen: dict[str, Row] = {}
    largest: dict[tuple[str, ...], Row] = {}
    for one in made:
        axis, size = _axis(one.name), len(one.document)
        if axis == _EVERY_DEFECT:
            # The same defect in the smallest of its hosts.
            largest.setdefault((axis, one.name.split("-", 2)[2]), one)
            continue
        if size <= _SMALL:
            chosen[one.name] = one
        if size <= _BUFFER:
            largest[axis, re.sub(r"[0-9]+", "", one.name)] = one
        if size <= _MOST:
            largest[axis, one.category, "of all"] = one
    chosen |= {one.name: one for one in largest.values()}
    found: dict[str, list[tuple[Vector, bytes | None]]] = {}
    for one in chosen.values():
        due = _due(one.refused_by, one.reason, one.canonical)
        record = replace(_vector(one.name, one.category, one.document, due), clause=one.clause)
        found.setdefault(_axis(one.name), []).append((record, one.twin))
    return found


def _axis(name: str) -> str:
    return name.partition("-")[0]


def in_any_order(records: Iterable[T], seed: str) -> list[T]:
    """The records in an order of the seed, so that what is asked before does not decide."""
    listed = list(records)
    return Random(f"{seed} edges").sample(listed, len(listed))  # noqa: S311 - no secret


def _joined(first: int, second: int) -> str | None:
    """The text that two code units spell; None if one of them is half of nothing."""
    try:
        return (first.to_bytes(2, "big") + second.to_bytes(2, "big")).decode("utf-16-be")
    except UnicodeDecodeError:
        return None


def _due(refused_by: int, reason: str | None, canonical: bytes | None) -> Mapping[Profile, Expected]:
    return {
        profile: Refused(reason or "") if refused_by & profile.bit else Canonical(canonical or b"")
        for profile in Profile
    }


def _vector(name: str, category: Category, document: bytes, due: Mapping[Profile, Expected]) -> Vector:
    return Vector(name, category, document, due, "", (), "constructed", None, "")
