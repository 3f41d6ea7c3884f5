"""Rungs of depth: containers in containers, with what must be ordered or refused at the bottom."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.construct.segments import Segment
from holdfast.vectors.jcs.ladder.pieces import Defective, Made, Piece, Step, Tools
from holdfast.vectors.jcs.ladder.sizes import DEFECTIVE_DEPTHS, DEPTHS
from holdfast.vectors.taxonomy import Category

_SHAPES = ("arrays", "objects", "first", "last", "mixed")
_BOTTOM = Piece(b'{"a":1,"b":[2,{}]}', b'{"b":[2,{}],"a":1.0}')
# The levels of `_BOTTOM` at its deepest.
_BOTTOM_LEVELS = 3
_AT_THE_BOTTOM = (
    ("duplicate", Category.DUPLICATE_NAMES, "JCS-DUP-03", b'{"a":1,"\\u0061":1}', b'{"a":1,"b":1}'),
    ("surrogate", Category.LONE_SURROGATES, "JCS-SUR-01", b'"\\ud800"', b'"\\ud7ff"'),
    ("bytes", Category.INVALID_UTF8, "JCS-UTF8-01", b'"\xe2\x82"', b'"\xe2\x82\xac"'),
    ("range", Category.NUMBER_RANGE, "JCS-NUM-01", b"1e309", b"1e308"),
    ("number", Category.NUMBER_GRAMMAR, "JCS-GRAM-02", b"01", b"1"),
    ("string", Category.STRING_GRAMMAR, "JCS-GRAM-03", b'"\x01"', b'"\\u0001"'),
    ("comma", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", b"[1,]", b"[1]"),
)
_REASONS = {
    Category.DUPLICATE_NAMES: Reason.DUPLICATE_NAME,
    Category.LONE_SURROGATES: Reason.LONE_SURROGATE,
    Category.INVALID_UTF8: Reason.INVALID_UTF8,
    Category.NUMBER_RANGE: Reason.NUMBER_OUT_OF_RANGE,
}
_BRACKETS = ("one-too-few", "one-too-many", "wrong-inside", "wrong-outside")


def steps() -> Iterator[Step]:
    """The rungs of depth."""
    for levels in DEPTHS:
        for shape in _SHAPES:
            yield Step(f"depth-{shape}-{levels}", Category.SIZE, "JCS-ORD-05", partial(_nested, levels, shape))
        yield Step(f"depth-bare-{levels}", Category.SIZE, "JCS-DEPTH-01", partial(_bare, levels))
    for levels in DEFECTIVE_DEPTHS:
        for shape in ("arrays", "objects"):
            for name, category, clause, bad, good in _AT_THE_BOTTOM:
                make = partial(_defective, levels, shape, _REASONS.get(category, Reason.SYNTAX), bad, good, name)
                yield Step(f"depth-{shape}-{levels}-{name}", category, clause, make)
            for kind in _BRACKETS:
                make = partial(_brackets, levels, shape, kind)
                yield Step(f"depth-{shape}-{levels}-{kind}", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", make)
            yield Step(
                f"depth-{shape}-{levels}-duplicate-outside", Category.DUPLICATE_NAMES, "JCS-DUP-01",
                partial(_outermost, levels, shape),
            )  # fmt: skip


def _wrapped(inner: Piece, levels: int, shape: str) -> Piece:
    """`inner` in `levels` containers; what stands beside it on each level is out of order in the document."""
    array, bare = (b"[", b"]"), (b'{"a":', b"}")
    beside = {
        "arrays": [(array, array)],
        "objects": [(bare, bare)],
        "first": [((b'{"b":', b',"c":0}'), (b'{"c":0,"b":', b"}")), (array, array)],
        "last": [((b'{"a":0,"b":', b"}"), (b'{"b":', b',"a":0.0}'))],
        "mixed": [(array, (b"[ ", b"\n]")), ((b'{"a":0,"b":', b"}"), (b'{ "b" :', b',"a":-0}')), (bare, bare)],
    }[shape]
    chosen = [beside[level % len(beside)] for level in range(levels)]
    return Piece(
        b"".join([canonical[0] for canonical, _ in chosen])
        + inner.canonical
        + b"".join([canonical[1] for canonical, _ in reversed(chosen)]),
        b"".join([written[0] for _, written in chosen])
        + inner.written
        + b"".join([written[1] for _, written in reversed(chosen)]),
        inner.reasons,
    )


def _nested(levels: int, shape: str, tools: Tools) -> Made:
    if shape == "mixed":
        return _wrapped(tools.lexeme(Segment.TEXT), levels, shape)
    return _wrapped(_BOTTOM, levels - _BOTTOM_LEVELS, shape)


def _bare(levels: int, _tools: Tools) -> Made:
    return _wrapped(Piece(b"[]", b"[]"), levels - 1, "arrays")


def _defective(levels: int, shape: str, reason: Reason, bad: bytes, good: bytes, name: str, _tools: Tools) -> Made:
    level = levels - good.startswith((b"{", b"["))
    outside = _wrapped(Piece(b"", b"\0"), level, shape).written.split(b"\0")
    return Defective(bad.join(outside), good.join(outside), reason, f"{name} at level {levels}")


def _brackets(levels: int, shape: str, kind: str, _tools: Tools) -> Made:
    opening, closing = _wrapped(Piece(b"", b"0\0"), levels, shape).written.split(b"\0")
    wrong = b"}" if shape == "arrays" else b"]"
    bad = {
        "one-too-few": closing[:-1],
        "one-too-many": closing + closing[-1:],
        "wrong-inside": wrong + closing[1:],
        "wrong-outside": closing[:-1] + wrong,
    }[kind]
    return Defective(opening + bad, opening + closing, Reason.SYNTAX, f"{kind.replace('-', ' ')} at {levels}")


def _outermost(levels: int, shape: str, _tools: Tools) -> Made:
    inner = _wrapped(Piece(b"0", b"0"), levels - 1, shape).written
    bad, good = (b'{"a":' + inner + b',"%s":0}' % name for name in (b"a", b"b"))
    return Defective(bad, good, Reason.DUPLICATE_NAME, f"a name twice around {levels} levels")
