"""Rungs of whitespace: up to 70,000 bytes of it before, between, inside and behind, and a near miss at its end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.ladder.pieces import Defective, Made, Piece, Step, Tools
from holdfast.vectors.jcs.ladder.sizes import SPACES
from holdfast.vectors.taxonomy import Category

# A document with one place for whitespace, and its canonical form.
_AT = {
    "before": (b'\0{"b":[],"a":1}', b'{"a":1,"b":[]}'),
    "behind": (b'{"b":[],"a":1}\0', b'{"a":1,"b":[]}'),
    "name": (b'{\0"b":[],"a":1}', b'{"a":1,"b":[]}'),
    "colon": (b'{"b"\0:[],"a":1}', b'{"a":1,"b":[]}'),
    "value": (b'{"b":\0[],"a":1}', b'{"a":1,"b":[]}'),
    "comma": (b'{"b":[]\0,"a":1}', b'{"a":1,"b":[]}'),
    "empty": (b'{"b":[\0],"a":1}', b'{"a":1,"b":[]}'),
    "close": (b'{"b":[],"a":1\0}', b'{"a":1,"b":[]}'),
    "scalar": (b"\x001.0", b"1"),
}
_KINDS = (b" ", b"\n", b"\t", b"\r\n", b" \t\r\n")
_OTHERS = (
    ("form-feed", b"\x0c"), ("vertical-tab", b"\x0b"), ("nul", b"\x00"), ("no-break-space", b"\xc2\xa0"),
    ("mark", b"\xef\xbb\xbf"), ("comment", b"//\n"),
)  # fmt: skip


def steps() -> Iterator[Step]:
    """The rungs of whitespace."""
    for length in SPACES:
        for where in _AT:
            yield Step(f"space-{length}-{where}", Category.WHITESPACE, "JCS-WS-01", partial(_spaced, length, where))
        for where in ("before", "behind", "empty"):
            for at in ("first", "last"):
                make = partial(_other, length, where, at)
                yield Step(f"space-{length}-{where}-{at}", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-05", make)
        yield Step(f"space-{length}-alone", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", partial(_nothing, length))


def _space(length: int, tools: Tools) -> bytes:
    kind = _KINDS[tools.turn % len(_KINDS)]
    return (kind * (length // len(kind) + 1))[:length]


def _spaced(length: int, where: str, tools: Tools) -> Made:
    document, canonical = _AT[where]
    return Piece(canonical, document.replace(b"\0", _space(length, tools)))


def _other(length: int, where: str, at: str, tools: Tools) -> Made:
    """One character that is no whitespace, among much that is."""
    # A mark at the very beginning is refused for another reason.
    choices = _OTHERS[:4] if where == "before" and at == "first" else _OTHERS
    name, other = choices[tools.turn % len(choices)]
    space = _space(length, tools)
    document, _ = _AT[where]
    bad = other + space if at == "first" else space + other
    return Defective(
        document.replace(b"\0", bad), document.replace(b"\0", space), Reason.SYNTAX,
        f"{name.replace('-', ' ')} {at} of {length} bytes of whitespace",
    )  # fmt: skip


def _nothing(length: int, tools: Tools) -> Made:
    space = _space(length, tools)
    return Defective(space, space + b"0", Reason.SYNTAX, f"nothing but {length} bytes of whitespace")
