"""Rungs of length: strings and names up to 70,000 units, with what matters in their first or last character."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.ladder.pieces import (
    Defective,
    Made,
    Piece,
    Step,
    Tools,
    object_of,
    plain,
    run,
    shuffled,
    text_of,
)
from holdfast.vectors.jcs.ladder.sizes import DEFECTIVE_TEXTS, TEXTS
from holdfast.vectors.taxonomy import Category

_FILLER = ord("x")
# Characters that a limit or a cut would spoil: their points, and which of their spellings the document has.
_SPECIAL = (
    ("newline", (0x0A,), 2, "JCS-STR-01"), ("control", (0x1F,), 3, "JCS-STR-02"), ("quote", (0x22,), 1, "JCS-STR-01"),
    ("slash", (0x2F,), 3, "JCS-STR-03"), ("backslash", (0x5C,), 1, "JCS-STR-01"), ("accent", (0xE9,), 1, "JCS-STR-03"),
    ("combining", (0x65, 0x301), 1, "JCS-STR-04"), ("separator", (0x2028,), 1, "JCS-STR-03"),
    ("euro", (0x20AC,), 2, "JCS-STR-03"), ("mark", (0xFEFF,), 1, "JCS-STR-03"),
    ("astral", (0x1F600,), 1, "JCS-SUR-03"), ("pair", (0x1F600,), 2, "JCS-SUR-03"), ("nul", (0x00,), 1, "JCS-STR-02"),
    ("blank", (0x20,), 1, "JCS-STR-04"), ("replacement", (0xFFFD,), 1, "JCS-STR-04"),
)  # fmt: skip
# Characters that fill a string whole. The tails of raw ones lie on either side of every border of bytes.
_WHOLE = (
    ("letters", 0x78, 1), ("accents", 0xE9, 1), ("euros", 0x20AC, 1), ("astral", 0x1F600, 1), ("controls", 0x01, 1),
    ("quotes", 0x22, 1), ("escaped-letters", 0x78, 2), ("escaped-pairs", 0x1F600, 3),
)  # fmt: skip
# A character of four raw bytes, or of twelve as an escape, fills a document soon.
_MOST_WHOLE = 35_000
# Of longer names an object has only two.
_FEW_NAMES = 8192
# In longer strings a defect stands only at the end.
_MOST_POSITIONS = 16384
_DEFECTS = (
    ("high", Category.LONE_SURROGATES, "JCS-SUR-01", Reason.LONE_SURROGATE, b"\\ud83d", b"\\ud7ff"),
    ("low", Category.LONE_SURROGATES, "JCS-SUR-01", Reason.LONE_SURROGATE, b"\\ude00", b"\\ue000"),
    ("cut-short", Category.INVALID_UTF8, "JCS-UTF8-01", Reason.INVALID_UTF8, b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80"),
    ("overlong", Category.INVALID_UTF8, "JCS-UTF8-01", Reason.INVALID_UTF8, b"\xc0\xaf", b"/"),
    ("surrogate-bytes", Category.INVALID_UTF8, "JCS-UTF8-01", Reason.INVALID_UTF8, b"\xed\xa0\x80", b"\xed\x9f\xbf"),
    ("raw-control", Category.STRING_GRAMMAR, "JCS-GRAM-03", Reason.SYNTAX, b"\x1f", b" "),
    ("unknown-escape", Category.STRING_GRAMMAR, "JCS-GRAM-03", Reason.SYNTAX, b"\\x", b"\\n"),
)


def steps() -> Iterator[Step]:
    """The rungs of length."""
    for length in TEXTS:
        for where in ("first", "last"):
            for role in ("string", "name"):
                make = partial(_special, length, where, role, None)
                yield Step(f"{role}-{length}-{where}", Category.SIZE, "JCS-STR-04", make)
        yield Step(f"names-{length}-last-unit", Category.ORDER_PREFIX, "JCS-ORD-01", partial(_neighbours, length))
        yield Step(f"names-{length}-prefix", Category.ORDER_PREFIX, "JCS-ORD-02", partial(_prefixes, length))
        yield Step(f"names-{length}-twice", Category.DUPLICATE_NAMES, "JCS-DUP-01", partial(_twice, length))
    for number, (name, _, _, clause) in enumerate(_SPECIAL):
        make = partial(_special, TEXTS[-1], "last", "string", number)
        yield Step(f"string-{TEXTS[-1]}-last-{name}", Category.SIZE, clause, make)
    for name, point, spelling in _WHOLE:
        for length in (1024, 16384, _MOST_WHOLE, 70_000):
            if length <= _MOST_WHOLE or name == "letters":
                make = partial(_whole, length, point, spelling)
                yield Step(f"string-{length}-{name}", Category.SIZE, "JCS-STR-04", make)
    for length in DEFECTIVE_TEXTS:
        for name, category, clause, reason, bad, good in _DEFECTS:
            for where, role in _positions(length):
                make = partial(_defective, length, where, role, reason, bad, good, name)
                named = "JCS-SUR-02" if role == "name" and category is Category.LONE_SURROGATES else clause
                yield Step(f"{role}-{length}-{name}-{where}", category, named, make)


def _positions(length: int) -> Iterator[tuple[str, str]]:
    """Where in the string its defect is, and whether it is a string or a name."""
    if length == 1:
        yield from (("alone", "string"), ("alone", "name"))
        return
    yield "last", "string"
    if length <= _MOST_POSITIONS:
        yield from (("first", "string"), ("first", "name"), ("last", "name"))


def _alone(turn: int, piece: Piece, role: str) -> Piece:
    """The string by itself or in an array, or as the only name of an object."""
    if role == "name":
        return Piece(b"{" + piece.canonical + b":0}", b"{" + piece.written + b" : 0}")
    if turn % 2:
        return piece
    return Piece(b"[" + piece.canonical + b"]", b"[ " + piece.written + b" ]")


def _special(length: int, where: str, role: str, number: int | None, tools: Tools) -> Made:
    _, points, spelling, _ = _SPECIAL[tools.turn % len(_SPECIAL) if number is None else number]
    special = [run(point, 1, spelling) for point in points]
    filler = run(_FILLER, length - sum(1 + (point > 0xFFFF) for point in points))
    text = text_of(*special, filler) if where == "first" else text_of(filler, *special)
    return _alone(tools.turn, text, role)


def _whole(length: int, point: int, spelling: int, tools: Tools) -> Made:
    # Up to three letters before them, so that their tails lie on different borders.
    before = tools.dice.below(4)
    count = (length - before) // (1 + (point > 0xFFFF))
    return _alone(tools.turn, text_of(run(_FILLER, before), run(point, count, spelling)), "string")


def _neighbours(length: int, tools: Tools) -> Made:
    """Names that are equal but for their last unit, out of order. An astral one comes before U+FB33 (UTF-16)."""
    lasts: tuple[int, ...] = (0x61, 0x62, 0x20AC, 0x1F600, 0xFB33)
    if length > _FEW_NAMES:
        lasts = tools.dice.pick((lasts[:2], lasts[3:]))
    begin = run(_FILLER, length - 1)
    members = [(text_of(begin, run(last)), plain(b"%d" % number)) for number, last in enumerate(lasts)]
    return object_of(tools.dice, members, shuffled(tools.dice, len(members)) if len(members) > 2 else (1, 0))


def _prefixes(length: int, tools: Tools) -> Made:
    begin = run(_FILLER, length)
    more: tuple[tuple[Piece, ...], ...] = ((), (run(0x00),), (run(0x20),), (run(_FILLER),))
    if length > _FEW_NAMES:
        more = ((), tools.dice.pick(more[1:]))
    members = [(text_of(begin, *each), plain(b"%d" % number)) for number, each in enumerate(more)]
    return object_of(tools.dice, members, range(len(members) - 1, -1, -1))


def _twice(length: int, tools: Tools) -> Made:
    name = b"x" * (length - 1)
    last = b"\\u0079" if tools.turn % 2 else b"y"
    bad, good = (b'{"' + name + b'y":0,"' + name + end + b'":1}' for end in (last, b"z"))
    return Defective(bad, good, Reason.DUPLICATE_NAME, f"a name of {length} units twice")


def _defective(
    length: int, where: str, role: str, reason: Reason, bad: bytes, good: bytes, name: str, tools: Tools
) -> Made:
    filler = b"x" * (length - 1)

    def written(planted: bytes) -> bytes:
        # No hexadecimal digit stands behind an escape, and none before it.
        inside = planted + filler if where == "first" else filler + planted
        return _alone(tools.turn, Piece(b"", b'"' + inside + b'"'), role).written

    return Defective(written(bad), written(good), reason, f"{name.replace('-', ' ')} {where} of {length}")
