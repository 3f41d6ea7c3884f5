"""Operators on texts of SQL, whole statements and parts of them, by the tokens that sqlglot finds.

Tokens and not a syntax tree: a reference puts statements together from parts, and what a change leaves alone must stay
as it is written. A value that an f-string fills in is one identifier to the tokeniser.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from holdfast.reference_impl.automatic.operators import Operator

# Words that a reference writes in capitals only in SQL.
_SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|WHERE|NOT NULL|UNIQUE|PRIMARY KEY|ON CONFLICT|NOT GLOB|"
    r"STRICT|ISOLATION LEVEL|REVOKE|GRANT|ALTER TABLE)\b"
)
_FILLED = re.compile(r"hf_filled_([0-9]+)_")
# The words after which a condition has ended.
_AFTER_WHERE = frozenset({"ORDER", "GROUP", "LIMIT", "RETURNING", "ON", "UNION", "DO", "ORDER BY", "GROUP BY", ";"})
_BOUNDARIES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
# A weaker value of each pragma that a reference sets.
_WEAKER = {"FULL": "OFF", "EXTRA": "OFF", "NORMAL": "OFF", "WAL": "DELETE", "ON": "OFF", "1": "0", "IMMEDIATE": "NONE"}

# The word, and where it begins and ends in the text.
_Token = tuple[str, int, int]


def changes(node: ast.expr) -> Iterator[tuple[Operator, str]]:
    """Each change of a text of SQL, as an expression; none if the node is no text of SQL."""
    filled: list[ast.expr] = []
    text = _text(node, filled)
    if text is None or not _SQL.search(text):
        return
    for operator, changed in dict.fromkeys(_changed(text)):
        if changed != text:
            yield operator, _written(changed, filled)


def _text(node: ast.expr, filled: list[ast.expr]) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        else:
            parts.append(f"hf_filled_{len(filled)}_")
            filled.append(part)
    return "".join(parts)


def _written(text: str, filled: Sequence[ast.expr]) -> str:
    """The text as an expression: one literal, or a sum of literals and what is filled in."""
    parts = []
    for number, part in enumerate(_FILLED.split(text)):
        if number % 2:
            parts.append(ast.unparse(ast.JoinedStr([filled[int(part)]])))
        elif part:
            parts.append(repr(part))
    return f"({' + '.join(parts) or repr('')})"


def _changed(text: str) -> Iterator[tuple[Operator, str]]:
    tokens = _tokens(text)
    words = [word for word, _, _ in tokens]

    def cut(first: int, last: int, instead: str = "") -> str:
        return text[: tokens[first][1]] + instead + text[tokens[last][2] :]

    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        before = words[at - 1] if at else ""
        if word == "NOT" and following == "NULL" and before != "IS":
            yield Operator.SCHEMA, cut(at, at + 1)
        elif word == "UNIQUE" and following == "(":
            yield Operator.SCHEMA, _without_item(text, tokens, at, _closing(words, at + 1))
        elif word in ("UNIQUE", "STRICT"):
            yield Operator.SCHEMA, cut(at, at)
        elif word == "CHECK" and following == "(":
            yield Operator.SCHEMA, cut(at, _closing(words, at + 1))
        elif word == "PRIMARY KEY" or (word == "PRIMARY" and following == "KEY"):
            last = at if word == "PRIMARY KEY" else at + 1
            if words[last + 1 : last + 2] == ["("]:
                yield Operator.SCHEMA, _without_item(text, tokens, at, _closing(words, last + 1))
            else:
                yield Operator.SCHEMA, cut(at, last)
        elif word == "WHERE":
            yield from ((Operator.WHERE, each) for each in _conditions(text, tokens, at + 1, where=at))
        elif word in _BOUNDARIES:
            yield Operator.BOUNDARY, cut(at, at, _BOUNDARIES[word])
        elif word == "ON" and following == "CONFLICT":
            yield Operator.CONFLICT, cut(at, _end_of_conflict(words, at))
        elif word == "OR" and following in ("IGNORE", "REPLACE", "ABORT"):
            yield Operator.CONFLICT, cut(at, at + 1)
        elif word in ("IMMEDIATE", "EXCLUSIVE") and before in ("BEGIN", "TRANSACTION"):
            yield Operator.ISOLATION, cut(at, at)
        elif word == "FOR" and following == "UPDATE":
            yield Operator.ISOLATION, cut(at, at + 1)
        elif word in ("SERIALIZABLE", "REPEATABLE"):
            last = at + 1 if word == "REPEATABLE" else at
            yield Operator.ISOLATION, cut(at, last, "READ COMMITTED")
        elif word == "PRAGMA" and "=" in words[at:]:
            value = words.index("=", at) + 1
            if value < len(words):
                yield Operator.PRAGMA, cut(value, value, _WEAKER.get(words[value].upper(), "0"))
    if "WHERE" not in words and "AND" in words and words[0] not in ("SELECT", "CREATE", "INSERT", "UPDATE", "DELETE"):
        yield from ((Operator.WHERE, each) for each in _conditions(text, tokens, 0, where=None))


def _conditions(text: str, tokens: Sequence[_Token], first: int, *, where: int | None) -> Iterator[str]:
    """The text without each of the conditions that AND joins from the token `first` on."""
    words = [word for word, _, _ in tokens]
    depth, starts, end = 0, [first], len(tokens)
    for at in range(first, len(tokens)):
        depth += {"(": 1, ")": -1}.get(words[at], 0)
        if depth < 0 or (depth == 0 and words[at] in _AFTER_WHERE):
            end = at
            break
        if depth == 0 and words[at] == "AND" and "BETWEEN" not in words[starts[-1] : at]:
            starts.append(at + 1)
    if end == first:
        return
    if len(starts) == 1:
        if where is not None:
            yield text[: tokens[where][1]] + text[tokens[end - 1][2] :]
        return
    for number, start in enumerate(starts):
        if number + 1 < len(starts):
            yield text[: tokens[start][1]] + text[tokens[starts[number + 1]][1] :]
        else:
            yield text[: tokens[start - 2][2]] + text[tokens[end - 1][2] :]


def _without_item(text: str, tokens: Sequence[_Token], first: int, last: int) -> str:
    """The text without one item of a list, and without one of the commas around it."""
    words = [word for word, _, _ in tokens]
    while first and words[first - 1] not in (",", "("):
        first -= 1
    if first and words[first - 1] == ",":
        return text[: tokens[first - 1][1]] + text[tokens[last][2] :]
    if words[last + 1 : last + 2] == [","]:
        return text[: tokens[first][1]] + text[tokens[last + 1][2] :]
    return text[: tokens[first][1]] + text[tokens[last][2] :]


def _closing(words: Sequence[str], opening: int) -> int:
    """The bracket that closes the one at `opening`, or the last token where a part of a statement has none."""
    depth = 0
    for at in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[at], 0)
        if depth == 0:
            return at
    return len(words) - 1


def _end_of_conflict(words: Sequence[str], at: int) -> int:
    return next((end for end in range(at, len(words)) if words[end] in ("NOTHING", "UPDATE")), len(words) - 1)


def _tokens(text: str) -> Sequence[_Token]:
    # Some texts of a reference look like SQL and are none, such as a pattern; they have no token that matters.
    from sqlglot.errors import TokenError

    try:
        found = _tokeniser().tokenize(text)
    except TokenError:
        return ()
    return [(text[one.start : one.end + 1], one.start, one.end + 1) for one in found]


@cache
def _tokeniser() -> Any:
    from sqlglot.tokens import Tokenizer

    return Tokenizer()
