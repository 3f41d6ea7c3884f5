"""Rungs of length, of borders and of whitespace.

Of length: strings and names up to 70,000 units, with what matters in their first or last character. Of borders: what
may not be torn apart stands across the places where programs cut what they read or write. Of whitespace: up to 70,000
bytes of it before, between, inside and after, and a near miss at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from holdfast.vectors.jcs.ladder.pieces import (
    Made,
    Piece,
    Step,
    Tools,
    around,
    defective,
    object_of,
    plain,
    run,
    shuffled,
    step,
    text_of,
    within,
)
from holdfast.vectors.taxonomy import Category

# UTF-16 code units of one string or name.
_TEXTS = (16, 17, *around(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65535), 65537, 70_000)
_MEGABYTE = 2**20 + 1
_DEFECTIVE_TEXTS = (1, 16, 64, 256, 1024, 4096, 16384, 65535, 65536, 70_000)
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
    ("high", Category.LONE_SURROGATES, b"\\ud83d", b"\\ud7ff"),
    ("low", Category.LONE_SURROGATES, b"\\ude00", b"\\ue000"),
    ("cut-short", Category.INVALID_UTF8, b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80"),
    ("overlong", Category.INVALID_UTF8, b"\xc0\xaf", b"/"),
    ("surrogate-bytes", Category.INVALID_UTF8, b"\xed\xa0\x80", b"\xed\x9f\xbf"),
    ("raw-control", Category.STRING_GRAMMAR, b"\x1f", b" "),
    ("unknown-escape", Category.STRING_GRAMMAR, b"\\x", b"\\n"),
)
# Names that a hash function takes for one, whatever stands behind all of them.
_ONE_HASH = {
    "java": tuple(map("".join, product(("Aa", "BB"), repeat=4))),
    "djb2": tuple(map("".join, product(("Ez", "FY"), repeat=4))),
    "fnv1a": ("costarring", "liquid"),
    "crc32": ("codding", "gnu"),
}


def lengths() -> Iterator[Step]:
    """The rungs of length."""
    for length in _TEXTS:
        for where in ("first", "last"):
            for role in ("string", "name"):
                name = f"{role}-{length}-{where}"
                yield step(name, Category.SIZE, "JCS-STR-04", _special, length, where, role, None)
        yield step(f"names-{length}-last-unit", Category.ORDER_PREFIX, "JCS-ORD-01", _neighbours, length)
        yield step(f"names-{length}-prefix", Category.ORDER_PREFIX, "JCS-ORD-02", _prefixes, length)
        yield step(f"names-{length}-twice", Category.DUPLICATE_NAMES, "JCS-DUP-01", _twice, length)
    for name in _ONE_HASH:
        yield step(f"names-{name}", Category.ORDER_PREFIX, "JCS-DUP-04", _of_one_hash, name)
        yield step(f"names-{name}-twice", Category.DUPLICATE_NAMES, "JCS-DUP-01", _one_twice, name)
    # Only `vectors verify` sends as much.
    yield step(f"string-{_MEGABYTE}-last", Category.SIZE, "JCS-STR-04", _special, _MEGABYTE, "last", "string", None)
    longest = _TEXTS[-1]
    for number, (name, _, _, clause) in enumerate(_SPECIAL):
        rung = f"string-{longest}-last-{name}"
        yield step(rung, Category.SIZE, clause, _special, longest, "last", "string", number)
    for name, point, spelling in _WHOLE:
        for length in (1024, 16384, _MOST_WHOLE, 70_000):
            if length <= _MOST_WHOLE or name == "letters":
                yield step(f"string-{length}-{name}", Category.SIZE, "JCS-STR-04", _whole, length, point, spelling)
    for length in _DEFECTIVE_TEXTS:
        for name, category, bad, good in _DEFECTS:
            for where, role in _positions(length):
                in_a_name = role == "name" and category is Category.LONE_SURROGATES
                clause = "JCS-SUR-02" if in_a_name else category.clause
                asked = (length, where, role, category, bad, good, name)
                yield step(f"{role}-{length}-{name}-{where}", category, clause, _defective, *asked)


def _positions(length: int) -> tuple[tuple[str, str], ...]:
    """Where in the string its defect is, and whether it is a string or a name."""
    if length == 1:
        return (("alone", "string"), ("alone", "name"))
    last = (("last", "string"),)
    return (*last, ("first", "string"), ("first", "name"), ("last", "name")) if length <= _MOST_POSITIONS else last


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


def _of_one_hash(name: str, tools: Tools) -> Made:
    names = _named(name, tools)
    members = [(text_of(*[run(ord(each)) for each in text]), plain(b"0")) for text in names]
    return object_of(tools.dice, members, shuffled(tools.dice, len(members)))


def _one_twice(name: str, tools: Tools) -> Made:
    *before, last = [f'"{text}":0'.encode() for text in _named(name, tools)]
    again = last.removesuffix(b":0")
    note = "a name twice among some of one hash"
    return defective(Category.DUPLICATE_NAMES, b"{" + b",".join([*before, last, b""]), again, b'"~"', b":1}", note)


def _named(name: str, tools: Tools) -> list[str]:
    behind = "".join(tools.dice.pick("klmnop") for _ in range(8))
    return sorted(text + behind for text in _ONE_HASH[name])


def _twice(length: int, tools: Tools) -> Made:
    name = b"x" * (length - 1)
    last = b"\\u0079" if tools.turn % 2 else b"y"
    before = b'{"' + name + b'y":0,"' + name
    return defective(Category.DUPLICATE_NAMES, before, last, b"z", b'":1}', f"a name of {length} units twice")


def _defective(
    length: int, where: str, role: str, category: Category, bad: bytes, good: bytes, name: str, tools: Tools
) -> Made:
    # No hexadecimal digit stands after an escape, and none before it.
    filler = b"x" * (length - 1)
    inside = b"\0" + filler if where == "first" else filler + b"\0"
    before, behind = _alone(tools.turn, plain(b'"' + inside + b'"'), role).written.split(b"\0")
    return defective(category, before, bad, good, behind, f"{name.replace('-', ' ')} {where} of {length}")


# Bytes that programs read or write at once.
_CHUNKS = (4096, 8192)
_CHUNK = 65536
_RARE_CHUNKS = (16384, 32768, 131072)
# Inside a string and as a value: as the document has it, canonical, and the clause.
_IN_A_STRING = (
    ("two-bytes", "\u00e9".encode(), "\u00e9".encode(), "JCS-STR-03"),
    ("three-bytes", "\u20ac".encode(), "\u20ac".encode(), "JCS-STR-03"),
    ("four-bytes", "\U0001f600".encode(), "\U0001f600".encode(), "JCS-SUR-03"),
    ("escape", b"\\u20AC", "\u20ac".encode(), "JCS-STR-03"),
    ("pair", b"\\uD83D\\ude00", "\U0001f600".encode(), "JCS-SUR-03"),
    ("short-escape", b"\\n", b"\\n", "JCS-STR-01"),
    ("quote", b'\\"', b'\\"', "JCS-STR-01"),
    ("backslashes", b"\\\\\\\\", b"\\\\\\\\", "JCS-STR-01"),
    ("control", b"\\u001F", b"\\u001f", "JCS-STR-02"),
    ("combining", b"e\xcc\x81", b"e\xcc\x81", "JCS-STR-04"),
)
_AS_A_VALUE = (
    ("number", b"-12.50e-3", b"-0.0125", "JCS-NUM-08"),
    ("integer", b"1234567890123", b"1234567890123", "JCS-NUM-08"),
    ("literal", b"false", b"false", "JCS-LIT-01"),
    ("object", b'{"b":1,"a":2}', b'{"a":2,"b":1}', "JCS-ORD-01"),
)
_REFUSED = (
    ("lone-high", b"\\ud83dx", b"\\ud7ffx", Category.LONE_SURROGATES),
    ("lone-low", b"x\\ude00", b"x\\ue000", Category.LONE_SURROGATES),
    ("halves-apart", b"\\ud83d-\\ude00", b"\\ud83d\\ude00", Category.LONE_SURROGATES),
    ("cut-short", b"\xe2\x82x", b"\xe2\x82\xac", Category.INVALID_UTF8),
    ("alone", b"x\xac", b"xx", Category.INVALID_UTF8),
    ("raw-control", b"x\x01", b"xx", Category.STRING_GRAMMAR),
)
# Of the first every start around the border is tried, because each may be right but for one; of the second one start
# around a border that few programs have.
_EVERY_START = ("two-bytes", "three-bytes", "four-bytes", "escape", "pair", "cut-short")
_SCARCE = ("three-bytes", "four-bytes", "pair", "lone-high", "cut-short", "number")
_BEHIND = 3


def borders() -> Iterator[Step]:
    """The rungs of borders."""
    for border in (*_CHUNKS, _CHUNK, *_RARE_CHUNKS):
        for table, before, filled, behind in (
            (_IN_A_STRING, b'["', b"", b'y"]'),
            (_AS_A_VALUE, b'["', b'",', b",0]"),
        ):
            for name, written, canonical, clause in table:
                for start in _starts(border, name, len(written)):
                    asked = (start, before, filled, behind, Piece(canonical, written))
                    yield step(f"split-{border}-{name}-{start}", Category.SIZE, clause, _across, *asked)
        for name, bad, good, category in _REFUSED:
            for start in _starts(border, name, len(bad)):
                asked_for = (start, category, bad, good, name)
                yield step(f"split-{border}-{name}-{start}", category, category.clause, _refused, *asked_for)
    for length in around(4096, 65536, 131072):
        yield step(f"bytes-{length}", Category.SIZE, "JCS-STR-04", _long, length)
        yield step(f"bytes-{length}-more", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", _more_than_one, length)


def _starts(border: int, name: str, length: int) -> tuple[int, ...]:
    """Where it begins: across the border of the document, and where a border of the string's own content tears it."""
    if border == _CHUNK and name in _EVERY_START:
        return tuple(range(border - length, border + _BEHIND + 1))
    if border in _RARE_CHUNKS:
        return (border - length // 2,) if name in _SCARCE else ()
    # After `["` a unit of the content is two further on.
    return (border - length // 2, border + 1)


def _across(start: int, before: bytes, filled: bytes, behind: bytes, planted: Piece, _tools: Tools) -> Made:
    return within(before + b"x" * (start - len(before + filled)) + filled, planted, behind)


def _refused(start: int, category: Category, bad: bytes, good: bytes, name: str, _tools: Tools) -> Made:
    before = b'["' + b"x" * (start - 2)
    return defective(category, before, bad, good, b'z"]', f"{name.replace('-', ' ')} at byte {start}")


def _long(length: int, _tools: Tools) -> Piece:
    half = (length - 7) // 2
    return plain(b'["' + b"a" * half + b'","' + b"b" * (length - 7 - half) + b'"]')


def _more_than_one(length: int, tools: Tools) -> Made:
    whole = _long(length, tools).written
    note = f"a second document after {length} bytes"
    return defective(Category.STRUCTURE_GRAMMAR, whole, b"[]", b"  ", b"", note)


# Bytes between two tokens.
_SPACES = (16, 255, 256, 1024, 4096, 16384, 65536, 70_000)
# A document with one place for whitespace.
_AT = {
    "before": b'\0{"b":[],"a":1}',
    "behind": b'{"b":[],"a":1}\0',
    "name": b'{\0"b":[],"a":1}',
    "colon": b'{"b"\0:[],"a":1}',
    "value": b'{"b":\0[],"a":1}',
    "comma": b'{"b":[]\0,"a":1}',
    "empty": b'{"b":[\0],"a":1}',
    "close": b'{"b":[],"a":1\0}',
    "scalar": b"\x001.0",
}
_KINDS = (b" ", b"\n", b"\t", b"\r\n", b" \t\r\n")
_OTHERS = (
    ("form feed", b"\x0c"), ("vertical tab", b"\x0b"), ("nul", b"\x00"), ("no break space", b"\xc2\xa0"),
    ("mark", b"\xef\xbb\xbf"), ("comment", b"//\n"),
)  # fmt: skip


def spaces() -> Iterator[Step]:
    """The rungs of whitespace."""
    for length in _SPACES:
        for where in _AT:
            yield step(f"space-{length}-{where}", Category.WHITESPACE, "JCS-WS-01", _spaced, length, where)
        for where in ("before", "behind", "empty"):
            for at in ("first", "last"):
                name = f"space-{length}-{where}-{at}"
                yield step(name, Category.STRUCTURE_GRAMMAR, "JCS-GRAM-05", _other, length, where, at)
        yield step(f"space-{length}-alone", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", _nothing, length)


def _space(length: int, tools: Tools) -> bytes:
    kind = _KINDS[tools.turn % len(_KINDS)]
    return (kind * (length // len(kind) + 1))[:length]


def _spaced(length: int, where: str, tools: Tools) -> Made:
    canonical = b"1" if where == "scalar" else b'{"a":1,"b":[]}'
    return Piece(canonical, _AT[where].replace(b"\0", _space(length, tools)))


def _other(length: int, where: str, at: str, tools: Tools) -> Made:
    """One character that is no whitespace, among much that is."""
    # A mark at the very beginning is refused for another reason.
    choices = _OTHERS[:4] if where == "before" and at == "first" else _OTHERS
    name, other = choices[tools.turn % len(choices)]
    before, behind = _AT[where].split(b"\0")
    if at == "first":
        behind = _space(length, tools) + behind
    else:
        before += _space(length, tools)
    note = f"{name} {at} of {length} bytes of whitespace"
    return defective(Category.STRUCTURE_GRAMMAR, before, other, b"", behind, note)


def _nothing(length: int, tools: Tools) -> Made:
    note = f"nothing but {length} bytes of whitespace"
    return defective(Category.STRUCTURE_GRAMMAR, _space(length, tools), b"", b"0", b"", note)
