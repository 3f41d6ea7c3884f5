"""In what ways two canonical texts differ, so that a counterexample stays one of its kind while it shrinks.

Texts are compared as trees of raw tokens: an SDK may have written anything, and what is no JSON has no tokens less.
Nothing here recurses, because documents may be nested deeper than Python's stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum, unique
from typing import TypeAlias

from holdfast.vectors.taxonomy import Category

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+|[\[\]{},:]|\s+|.', re.DOTALL)
PUNCTUATION = b"[]{}:, \t\r\n"

# A token, or a list of a container's bracket and what is in it: names and values take turns in an object.
_Tree: TypeAlias = "bytes | list[_Tree]"
_Pair: TypeAlias = "tuple[_Tree, _Tree]"


@unique
class DiffKind(StrEnum):
    """What came out otherwise than expected: the text of a number or a string, or the place of a member."""

    NUMBER = "number"
    STRING = "string"
    ORDER = "order"
    OTHER = "other"


def wanted(kinds: frozenset[DiffKind], category: Category | None) -> frozenset[DiffKind]:
    """The kinds that a smaller document has to keep: that of its category if it is among them, otherwise all."""
    family = _FAMILIES.get(category) if category is not None else None
    return kinds if family is None else kinds & {family} or kinds


def kinds(expected: bytes, answered: bytes) -> frozenset[DiffKind]:
    """All kinds in which the texts differ, which they do."""
    found: set[DiffKind] = set()
    pairs: list[_Pair] = [(_tree(expected), _tree(answered))]
    while pairs:
        ours, theirs = pairs.pop()
        if isinstance(ours, bytes) or isinstance(theirs, bytes):
            if ours != theirs:
                found.add(_kind(ours))
        elif len(ours) != len(theirs):
            found.add(DiffKind.OTHER)
        elif ours[0] == theirs[0] == b"{":
            found.update(_misplaced(ours, theirs))
            pairs += _values(ours, theirs)
        else:
            pairs += zip(ours, theirs, strict=True)
    # Equal but for whitespace, commas and colons.
    return frozenset(found or {DiffKind.OTHER})


def _tree(text: bytes) -> list[_Tree]:
    root: list[_Tree] = [b""]
    open_ = [root]
    for token in TOKEN.findall(text):
        if token in (b"[", b"{"):
            inner: list[_Tree] = [token]
            open_[-1].append(inner)
            open_.append(inner)
        elif token in (b"]", b"}") and len(open_) > 1:
            open_.pop()
        elif token[:1] not in PUNCTUATION:
            open_[-1].append(token)
    return root


def _kind(expected: _Tree) -> DiffKind:
    """What a token is that did not come out."""
    if isinstance(expected, bytes) and expected.startswith(b'"'):
        return DiffKind.STRING
    return DiffKind.NUMBER if isinstance(expected, bytes) and expected[:1] in b"-0123456789" else DiffKind.OTHER


def _misplaced(ours: list[_Tree], theirs: list[_Tree]) -> Iterator[DiffKind]:
    """What is wrong with the names of an object's members."""
    expected, answered = ([name for name in names if isinstance(name, bytes)] for names in (ours[1::2], theirs[1::2]))
    common = set(expected) & set(answered)
    if len(common) < len(expected):
        yield DiffKind.STRING
    if [name for name in expected if name in common] != [name for name in answered if name in common]:
        yield DiffKind.ORDER


def _values(ours: list[_Tree], theirs: list[_Tree]) -> Iterator[_Pair]:
    """The values that stand under the same name."""
    answered = dict(_members(theirs))
    return ((value, answered[name]) for name, value in _members(ours) if name in answered)


def _members(of: list[_Tree]) -> Iterator[tuple[bytes, _Tree]]:
    for name, value in zip(of[1::2], of[2::2], strict=False):
        if isinstance(name, bytes):
            yield name, value


_FAMILIES = {
    category: kind
    for kind, categories in (
        (DiffKind.NUMBER, [category for category in Category if category.name.startswith("NUMBER_")]),
        (DiffKind.STRING, [category for category in Category if category.name.startswith("STRING_")]),
        (DiffKind.ORDER, [category for category in Category if category.name.startswith("ORDER_")]),
    )
    for category in categories
}
