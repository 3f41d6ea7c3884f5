"""Rungs of borders: what may not be torn apart stands across the places where programs cut what they read or write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.ladder.pieces import Defective, Made, Piece, Step, Tools
from holdfast.vectors.jcs.ladder.sizes import CHUNK, CHUNKS, RARE_CHUNKS
from holdfast.vectors.taxonomy import Category

# Inside a string: as the document has it, canonical, and the clause.
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
# As a value: as the document has it, canonical, and the clause.
_AS_A_VALUE = (
    ("number", b"-12.50e-3", b"-0.0125", "JCS-NUM-08"),
    ("integer", b"1234567890123", b"1234567890123", "JCS-NUM-08"),
    ("literal", b"false", b"false", "JCS-LIT-01"),
    ("object", b'{"b":1,"a":2}', b'{"a":2,"b":1}', "JCS-ORD-01"),
)
_REFUSED = (
    ("lone-high", b"\\ud83dx", b"\\ud7ffx", Category.LONE_SURROGATES, "JCS-SUR-01", Reason.LONE_SURROGATE),
    ("lone-low", b"x\\ude00", b"x\\ue000", Category.LONE_SURROGATES, "JCS-SUR-01", Reason.LONE_SURROGATE),
    ("halves-apart", b"\\ud83d-\\ude00", b"\\ud83d\\ude00", Category.LONE_SURROGATES, "JCS-SUR-01",
     Reason.LONE_SURROGATE),
    ("cut-short", b"\xe2\x82x", b"\xe2\x82\xac", Category.INVALID_UTF8, "JCS-UTF8-01", Reason.INVALID_UTF8),
    ("alone", b"x\xac", b"xx", Category.INVALID_UTF8, "JCS-UTF8-01", Reason.INVALID_UTF8),
    ("raw-control", b"x\x01", b"xx", Category.STRING_GRAMMAR, "JCS-GRAM-03", Reason.SYNTAX),
)  # fmt: skip
# Of the first every start around the border is tried, because each may be right but for one; of the second one start
# around a border that few programs have.
_EVERY_START = ("two-bytes", "three-bytes", "four-bytes", "escape", "pair", "cut-short")
_SCARCE = ("three-bytes", "four-bytes", "pair", "lone-high", "cut-short", "number")
_BEHIND = 3
_LENGTHS = tuple(length + step for length in (4096, 65536, 131072) for step in (-1, 0, 1))


def steps() -> Iterator[Step]:
    """The rungs of borders."""
    for border in (*CHUNKS, CHUNK, *RARE_CHUNKS):
        for name, written, canonical, clause in _IN_A_STRING:
            for start in _starts(border, name, len(written)):
                make = partial(_string, start, Piece(canonical, written))
                yield Step(f"split-{border}-{name}-{start}", Category.SIZE, clause, make)
        for name, written, canonical, clause in _AS_A_VALUE:
            for start in _starts(border, name, len(written)):
                make = partial(_value, start, Piece(canonical, written))
                yield Step(f"split-{border}-{name}-{start}", Category.SIZE, clause, make)
        for name, bad, good, category, clause, reason in _REFUSED:
            for start in _starts(border, name, len(bad)):
                make = partial(_refused, start, reason, bad, good, name)
                yield Step(f"split-{border}-{name}-{start}", category, clause, make)
    for length in _LENGTHS:
        yield Step(f"bytes-{length}", Category.SIZE, "JCS-STR-04", partial(_long, length))
        yield Step(
            f"bytes-{length}-more", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", partial(_more_than_one, length)
        )  # fmt: skip


def _starts(border: int, name: str, length: int) -> tuple[int, ...]:
    """Where it begins: across the border of the document, and where a border of the string's own content tears it."""
    if border == CHUNK and name in _EVERY_START:
        return tuple(range(border - length, border + _BEHIND + 1))
    if border in RARE_CHUNKS:
        return (border - length // 2,) if name in _SCARCE else ()
    # Behind `["` a unit of the content is two further on.
    return (border - length // 2, border + 1)


def _string(start: int, planted: Piece, _tools: Tools) -> Made:
    filler = b"x" * (start - 2)
    return Piece(b'["' + filler + planted.canonical + b'y"]', b'["' + filler + planted.written + b'y"]')


def _value(start: int, planted: Piece, _tools: Tools) -> Made:
    filler = b'"' + b"x" * (start - 4) + b'"'
    return Piece(b"[" + filler + b"," + planted.canonical + b",0]", b"[" + filler + b"," + planted.written + b",0]")


def _refused(start: int, reason: Reason, bad: bytes, good: bytes, name: str, _tools: Tools) -> Made:
    filler = b"x" * (start - 2)
    document, twin = (b'["' + filler + planted + b'z"]' for planted in (bad, good))
    return Defective(document, twin, reason, f"{name.replace('-', ' ')} at byte {start}")


def _long(length: int, _tools: Tools) -> Piece:
    half = (length - 7) // 2
    texts = b'"' + b"a" * half + b'","' + b"b" * (length - 7 - half) + b'"'
    return Piece(b"[" + texts + b"]", b"[" + texts + b"]")


def _more_than_one(length: int, tools: Tools) -> Made:
    whole = _long(length, tools)
    return Defective(
        whole.written + b"[]", whole.written + b"  ", Reason.SYNTAX, f"a second document behind {length} bytes"
    )
