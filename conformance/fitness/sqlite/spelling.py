"""CHECKs of SQLite whose text shows that a key has one spelling only; see `criteria.spelling` for why a text is asked.

SQLite has two traps more: without STRICT or typeof() the bytes of a text are another value that every other condition
takes for the text, and length() and GLOB end at a NUL, so that anything may stand behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.conformance.fitness.criteria.spelling import is_of_one_case
from holdfast.conformance.fitness.sqlite.catalogue import Relation
from holdfast.conformance.fitness.sqlite.sqltext import Kind, Token

# What a reason suggests for another form; {0} is the column.
WRITE_AS = "typeof({0}) = 'text' AND length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
# An AND inside one of these does not separate conditions.
_NOT_PARTED = ("CASE", "BETWEEN")
_BYTES = ("length ( cast ( {c} as blob ) ) =", "octet_length ( {c} ) =")
_NO_NUL = ("instr ( {c} , char ( 0 ) ) =", "instr ( {c} , x'00' ) =")
_NUMBER, _TEXT = "[1-9][0-9]*", "'[^']*'"


def one_spelling(relation: Relation, column: str) -> bool:
    """Whether the CHECKs of a relation leave each key in the column one spelling, for all values of other columns."""
    parts = [_written(part, column) for part in _parts(relation)]
    strict = relation.strict and relation.columns[column].affinity == "TEXT"
    if not (strict or _found(parts, "typeof ( {c} ) =", "'text'")):
        return False
    long = set(_found(parts, "length ( {c} ) =", _NUMBER))
    octets = {number for form in _BYTES for number in _found(parts, form, _NUMBER)}
    whole = any(_found(parts, form, "0") for form in _NO_NUL)
    if any(places and (whole or str(places) in octets) for places in map(_places, _found(parts, "{c} glob", _TEXT))):
        return True
    only = any(map(_is_of_one_set, _found(parts, "{c} not glob", _TEXT)))
    return only and bool(long & octets or (whole and long | octets))


def _parts(relation: Relation) -> Iterator[Sequence[Token]]:
    for check in relation.checks:
        if not any(token.says(word) for token in check.body for word in _NOT_PARTED):
            yield from check.conjuncts


def _written(part: Sequence[Token], column: str) -> str:
    """The tokens of a condition in one spelling, the column as {c}; a text keeps its case and its quotes."""
    return " ".join(_word(token, column) for token in part)


def _word(token: Token, column: str) -> str:
    if token.kind is Kind.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind in (Kind.WORD, Kind.QUOTED) and token.names(column):
        return "{c}"
    # A name in quotes is no function and no keyword.
    return f'"{token.text}"' if token.kind is Kind.QUOTED else token.text.lower()


def _found(parts: Sequence[str], before: str, value: str) -> list[str]:
    """What stands behind `before`, for each condition that consists of it and of such a value."""
    pattern = re.compile(f"{re.escape(before)} ({value})")
    return [match.group(1) for part in parts if (match := pattern.fullmatch(part)) is not None]


def _is_of_one_set(text: str) -> bool:
    """Whether a text that is NOT GLOB this pattern has characters of one set only."""
    inside = re.fullmatch(r"'\*\[\^([^\]]+)\]\*'", text)
    return inside is not None and is_of_one_case(inside.group(1))


def _places(text: str) -> int:
    """How many places a pattern of GLOB has that names the characters of each; 0 for any other pattern."""
    places = 0
    for inside, plain in re.findall(r"\[([^\]^][^\]]*)\]|(.)", text[1:-1], re.DOTALL):
        if not (is_of_one_case(inside) if inside else re.fullmatch(r"[A-Za-z0-9_:/@=.+-]", plain)):
            return 0
        places += 1
    return places
