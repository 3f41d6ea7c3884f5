"""The parts that SQLite keeps as text only: conflict clauses, CHECK constraints and heads of triggers, read as tokens.

The text says what to try and what to show; only a trial shows that a constraint holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique

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


@unique
class TokenKind(Enum):
    """Kinds of tokens; blanks and comments are none."""

    BLOB = "blob"
    STRING = "string"
    QUOTED = "quoted"
    NUMBER = "number"
    WORD = "word"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` without quotes."""

    kind: TokenKind
    text: str

    def says(self, word: str) -> bool:
        """Whether it is this keyword or sign."""
        return self.kind in (TokenKind.WORD, TokenKind.SIGN) and self.text.upper() == word

    def names(self, name: str) -> bool:
        """Whether it can be this identifier. SQLite takes a text for one where it finds no other sense."""
        return (
            self.kind in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING)
            and self.text.casefold() == name.casefold()
        )


def tokens(sql: str) -> tuple[Token, ...]:
    """The tokens of a statement."""
    return tuple(_tokens(sql))


def _tokens(sql: str) -> Iterator[Token]:
    for match in _TOKENS.finditer(sql):
        kind, text = str(match.lastgroup), match.group()
        if kind == "space":
            continue
        if kind in ("string", "quoted"):
            end = text[-1]
            text = text[1:-1].replace(end * 2, end)
        yield Token(TokenKind(kind), text)


def conflict_clauses(sql: str) -> tuple[str, ...]:
    """The words behind ON CONFLICT in a CREATE TABLE, upper case, in their order."""
    found = tokens(sql)
    return tuple(
        third.text.upper()
        for first, second, third in zip(found, found[1:], found[2:], strict=False)
        if first.says("ON") and second.says("CONFLICT")
    )


# What typeof() answers.
_TYPES = ("null", "integer", "real", "text", "blob")


@dataclass(frozen=True, slots=True)
class Check:
    """One CHECK of a CREATE TABLE. `name` is the constraint's, empty without one."""

    name: str
    body: tuple[Token, ...]

    def mentions(self, column: str) -> bool:
        """Whether the expression can speak of this column."""
        return any(token.names(column) for token in self.body)

    @property
    def literals(self) -> tuple[str | int | float, ...]:
        """Texts and numbers in it, in their order, each once; names of types where it asks for one are no texts."""
        found: dict[str | int | float, None] = {}
        asks_type = any(token.says("TYPEOF") for token in self.body)
        for token in self.body:
            if token.kind is TokenKind.STRING:
                if not (asks_type and token.text in _TYPES):
                    found[token.text] = None
            elif token.kind is TokenKind.NUMBER:
                found[int(token.text) if token.text.isdigit() else float(token.text)] = None
        return tuple(found)

    @property
    def conjuncts(self) -> tuple[tuple[Token, ...], ...]:
        """What must hold each by itself: the parts between ANDs, or the whole where an OR stands beside them."""
        return tuple(_conjuncts(self.body))

    def is_meant(self, message: str) -> bool:
        """Whether SQLite's message "CHECK constraint failed: X" speaks of this one."""
        said = message.removeprefix("CHECK constraint failed: ")
        # Of an expression that begins with a quoted name SQLite shows that name alone.
        return said in (self.name, self.body[0].text if self.body else "") or tokens(said) == self.body


def checks(sql: str) -> tuple[Check, ...]:
    """The CHECKs of a CREATE TABLE."""
    found = tokens(sql)
    return tuple(_checks(found))


def _checks(found: Sequence[Token]) -> Iterator[Check]:
    for place, token in enumerate(found):
        if not token.says("CHECK") or place + 1 >= len(found) or not found[place + 1].says("("):
            continue
        named = place >= 2 and found[place - 2].says("CONSTRAINT")
        yield Check(found[place - 1].text if named else "", _inside(found[place + 1 :]))


def _conjuncts(body: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in body:
        depth += token.says("(") - token.says(")")
        if depth == 0 and token.says("OR"):
            yield tuple(body)
            return
        if depth == 0 and token.says("AND"):
            parts.append([])
        else:
            parts[-1].append(token)
    for part in parts:
        inside = _inside(part) if part and part[0].says("(") else ()
        # Parentheses around a whole part may hold more parts.
        if inside and len(inside) == len(part) - 2:
            yield from _conjuncts(inside)
        else:
            yield tuple(part)


def values_of(conjunct: Sequence[Token], column: str) -> tuple[str, ...] | None:
    """The texts that a column may hold by this condition: `column = 'a'` or `column IN ('a', 'b')`; else None."""
    if len(conjunct) < 3 or not conjunct[0].names(column):
        return None
    if (len(conjunct) == 3 and conjunct[1].says("IS")) or [t.text for t in conjunct[1:-1]] in (["="], ["=", "="]):
        rest: Sequence[Token] = conjunct[-1:]
    elif conjunct[1].says("IN") and conjunct[2].says("(") and conjunct[-1].says(")"):
        rest = [token for token in conjunct[3:-1] if not token.says(",")]
    else:
        return None
    return tuple(token.text for token in rest) if all(token.kind is TokenKind.STRING for token in rest) else None


def generated(sql: str) -> dict[str, tuple[Token, ...]]:
    """The expressions of the generated columns of a CREATE TABLE, by the column's name in small letters."""
    found = tokens(sql)
    begin = next((place for place, token in enumerate(found) if token.says("(")), len(found))
    return dict(_generated(_inside(found[begin:])))


def _generated(body: Sequence[Token]) -> Iterator[tuple[str, tuple[Token, ...]]]:
    depth, column = 0, None
    for place, token in enumerate(body):
        if depth == 0 and (place == 0 or body[place - 1].says(",")):
            column = token.text.casefold()
        if depth == 0 and token.says("AS") and body[place + 1 : place + 2] and body[place + 1].says("("):
            yield str(column), _inside(body[place + 1 :])
        depth += token.says("(") - token.says(")")


def unique_constraints(sql: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The named UNIQUE and PRIMARY KEY constraints of a CREATE TABLE, with their columns. No pragma gives the names."""
    found = tokens(sql)
    return tuple(_unique_constraints(found))


def _unique_constraints(found: Sequence[Token]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for place, token in enumerate(found[:-3]):
        behind = place + (4 if found[place + 2].says("PRIMARY") else 3)
        if token.says("CONSTRAINT") and found[behind - 1].text.upper() in ("UNIQUE", "KEY") and found[behind].says("("):
            inside = _inside(found[behind:])
            yield found[place + 1].text, tuple(t.text for t in inside if t.kind in (TokenKind.WORD, TokenKind.QUOTED))


def _inside(found: Sequence[Token]) -> tuple[Token, ...]:
    """The part between the parenthesis that `found` begins with and the one that closes it."""
    depth = 0
    for place, token in enumerate(found):
        depth += token.says("(") - token.says(")")
        if depth == 0:
            return tuple(found[1:place])
    return tuple(found[1:])


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: `timing` BEFORE, AFTER or INSTEAD; `event` INSERT, UPDATE or DELETE; `only` for UPDATE OF."""

    name: str
    relation: str
    timing: str
    event: str
    only: bool
    conditional: bool
    body: tuple[Token, ...]

    @property
    def row(self) -> Mapping[str, str]:
        """What a judgement shows of it."""
        return {"relation": self.relation, "trigger": self.name, "timing": self.timing, "event": self.event}

    @property
    def unconditional(self) -> bool:
        """Whether it fires for every row and every change in it."""
        return not self.only and not self.conditional

    @property
    def only_raises(self) -> bool:
        """Whether it refuses every change: nothing but SELECT RAISE(ABORT, text), without a condition."""
        said = [token.text.upper() for token in self.body]
        raised = len(said) == 10 and said[:4] == ["BEGIN", "SELECT", "RAISE", "("] and said[5] == ","
        return raised and said[4] in ("ABORT", "FAIL", "ROLLBACK") and said[7:] == [")", ";", "END"]

    def takes_from(self, relation: str) -> bool:
        """Whether its body can delete or change rows of this relation."""
        return any(token.names(relation) and self._changes(self.body[:place]) for place, token in enumerate(self.body))

    def _changes(self, before: Sequence[Token]) -> bool:
        """Whether the words before a relation's name say that its rows go or change."""
        said = [token.text.upper() for token in before[-4:]]
        return (
            said[-2:] in (["DELETE", "FROM"], ["REPLACE", "INTO"])
            or said[-1:] == ["UPDATE"]
            or (said[-3:-1] == ["UPDATE", "OR"])
        )


def trigger(name: str, relation: str, sql: str) -> Trigger:
    """The description of a CREATE TRIGGER."""
    found = tokens(sql)
    event = next(place for place, token in enumerate(found) if _is_event(found, place, token))
    timing = next((w for w in ("BEFORE", "AFTER", "INSTEAD") if any(t.says(w) for t in found[:event])), "BEFORE")
    begin = next((place for place, token in enumerate(found) if place > event and token.says("BEGIN")), len(found))
    head = found[event:begin]
    return Trigger(
        name,
        relation,
        timing,
        head[0].text.upper(),
        only=len(head) > 1 and head[1].says("OF"),
        conditional=any(token.says("WHEN") for token in head),
        body=found[begin:],
    )


def _is_event(found: Sequence[Token], place: int, token: Token) -> bool:
    """A word for the event that no name can be taken for: behind it stands ON or OF."""
    if not any(token.says(word) for word in ("INSERT", "UPDATE", "DELETE")) or place + 1 >= len(found):
        return False
    return found[place + 1].says("ON") or found[place + 1].says("OF")
