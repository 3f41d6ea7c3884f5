"""The parts that SQLite keeps as text only: conflict clauses, CHECK constraints and heads of triggers, read as tokens.

The text says what to try and what to show; only a trial shows that a constraint holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_TOKENS = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<blob>[xX]'(?:[0-9a-fA-F]{2})*')
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d][\w$]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: a blob, string, quoted (name), number, word or sign; `text` without quotes. Blanks are none."""

    kind: str
    text: str

    def says(self, word: str) -> bool:
        """Whether it is this keyword or sign."""
        return self.kind in ("word", "sign") and self.text.upper() == word

    def names(self, name: str) -> bool:
        """Whether it can be this identifier. SQLite takes a text for one where it finds no other sense."""
        return self.kind in ("word", "quoted", "string") and self.text.casefold() == name.casefold()


def tokens(sql: str) -> tuple[Token, ...]:
    """The tokens of a statement, without comments."""
    found = ((str(match.lastgroup), match.group()) for match in _TOKENS.finditer(sql))
    return tuple(
        Token(kind, text[1:-1].replace(text[-1] * 2, text[-1]) if kind in ("string", "quoted") else text)
        for kind, text in found
        if kind != "space"
    )


def conflict_clauses(sql: str) -> tuple[str, ...]:
    """The words behind ON CONFLICT in a CREATE TABLE, upper case, in their order."""
    found = tokens(sql)
    three = zip(found, found[1:], found[2:], strict=False)
    return tuple(third.text.upper() for first, second, third in three if first.says("ON") and second.says("CONFLICT"))


def checks(sql: str) -> list[tuple[str, tuple[Token, ...]]]:
    """The CHECKs of a CREATE TABLE: the name of the constraint, empty without one, and the expression."""
    found = tokens(sql)
    return [
        (found[place - 1].text if found[max(place - 2, 0)].says("CONSTRAINT") else "", _inside(found[place + 1 :]))
        for place, (token, after) in enumerate(pairwise(found))
        if token.says("CHECK") and after.says("(")
    ]


def generated(sql: str) -> dict[str, tuple[Token, ...]]:
    """The expressions of the generated columns of a CREATE TABLE, by the column's name in small letters."""
    whole, expressions = tokens(sql), dict[str, tuple[Token, ...]]()
    begin = next((place for place, token in enumerate(whole) if token.says("(")), len(whole))
    body, depth, column = _inside(whole[begin:]), 0, ""
    for place, token in enumerate(body):
        if depth == 0 and (place == 0 or body[place - 1].says(",")):
            column = token.text.casefold()
        if depth == 0 and token.says("AS") and body[place + 1 : place + 2] and body[place + 1].says("("):
            expressions[column] = _inside(body[place + 1 :])
        depth += token.says("(") - token.says(")")
    return expressions


def unique_constraints(sql: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The named UNIQUE and PRIMARY KEY constraints of a CREATE TABLE, with their columns. No pragma gives the names."""
    found = tokens(sql)
    for place, token in enumerate(found[:-3]):
        behind = place + (4 if found[place + 2].says("PRIMARY") else 3)
        if token.says("CONSTRAINT") and found[behind - 1].text.upper() in ("UNIQUE", "KEY") and found[behind].says("("):
            inside = _inside(found[behind:])
            yield found[place + 1].text, tuple(each.text for each in inside if each.kind in ("word", "quoted"))


def _inside(found: Sequence[Token]) -> tuple[Token, ...]:
    """The part between the parenthesis that `found` begins with and the one that closes it."""
    depth = 0
    for place, token in enumerate(found):
        depth += token.says("(") - token.says(")")
        if depth == 0:
            return tuple(found[1:place])
    return tuple(found[1:])


_TIMES = ("BEFORE", "AFTER", "INSTEAD")


def only_raises(body: Iterable[Token]) -> bool:
    """Whether the body of a trigger refuses every change: nothing but SELECT RAISE(ABORT, text)."""
    said = [token.text.upper() for token in body]
    raised = len(said) == 10 and said[:4] == ["BEGIN", "SELECT", "RAISE", "("] and said[5] == ","
    return raised and said[4] in ("ABORT", "FAIL", "ROLLBACK") and said[7:] == [")", ";", "END"]


def takes_from(body: Sequence[Token], relation: str) -> bool:
    """Whether the body of a trigger can delete or change rows of this relation."""
    said = [token.text.upper() for token in body]
    return any(
        said[max(place - 2, 0) : place] in (["DELETE", "FROM"], ["REPLACE", "INTO"])
        or said[max(place - 1, 0) : place] == ["UPDATE"]
        or said[max(place - 3, 0) : place - 1] == ["UPDATE", "OR"]
        for place, token in enumerate(body)
        if token.names(relation)
    )


def trigger(sql: str) -> tuple[dict[str, Any], tuple[Token, ...]]:
    """What the head of a CREATE TRIGGER says, as PostgreSQL's catalogue would; and its body."""
    found = tokens(sql)
    # A word for the event that no name can be taken for: behind it stands ON or OF.
    event = next(
        place
        for place, (token, after) in enumerate(pairwise(found))
        if any(map(token.says, ("INSERT", "UPDATE", "DELETE"))) and (after.says("ON") or after.says("OF"))
    )
    begin = next((place for place, token in enumerate(found) if place > event and token.says("BEGIN")), len(found))
    head, said = found[event:begin], {word for word in _TIMES if any(token.says(word) for token in found[:event])}
    return {
        # Behind the change it guards too.
        "timing": "instead" if said == {"INSTEAD"} else "before",
        "events": [head[0].text.lower()],
        "columns": ["some columns"] if head[1].says("OF") else [],
        "conditional": any(token.says("WHEN") for token in head),
    }, found[begin:]
