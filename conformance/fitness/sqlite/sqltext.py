"""The parts that SQLite keeps as text only: conflict clauses, CHECK constraints and heads of triggers, read as tokens.

The text says what to try and what to show; only a trial shows that a constraint holds. And whether a default or a
generated column gives a row an end: SQLite has no types of time. As in PostgreSQL, known forms are listed, and the rest
is inconclusive. It has no infinity: a text for a year from 3000 on means that a row is kept for ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from holdfast.conformance.fitness.criteria.endings import (
    CLOSE,
    DAY_IN_DIGITS,
    LITERAL,
    NOW,
    OPEN,
    Ending,
    Same,
    Sense,
    later,
    like_time,
    makes_time,
    reduced,
)

_TOKENS = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<blob>[xX]'(?:[0-9a-fA-F]{2})*')
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
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
    return any(token.names(relation) and _takes(said, place) for place, token in enumerate(body))


def _takes(said: Sequence[str], place: int) -> bool:
    """Whether a statement deletes or changes rows of what it names in this place, as INSERT with DO UPDATE does."""
    before = said[max(place - 3, 0) : place]
    if before[-1:] == ["INTO"]:
        end = said.index(";", place) if ";" in said[place:] else len(said)
        return before[-2:] == ["REPLACE", "INTO"] or ("DO", "UPDATE") in pairwise(said[place:end])
    return before[-2:] == ["DELETE", "FROM"] or before[-1:] == ["UPDATE"] or before[:2] == ["UPDATE", "OR"]


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


_NEVER = ("infinity", "never", "forever")
_FAR = re.compile(r"[3-9]\d{3}-\d\d-\d\d(?:[T ].*)?")
# The end of the year 9999 in seconds and milliseconds, and the largest integer.
_LARGEST = ("253402300799", "253402300800", "253402300799000", "253402300799999", "9223372036854775807")

# They move a moment by hours at most, or back.
_HARMLESS = re.compile(r"subsec(?:ond)?|utc|localtime|start of (?:day|month|year)")


def _of_now(said: list[str]) -> bool:
    """Whether these arguments of a function of time are the moment of making."""
    now = [each.casefold() for each in said[:1]] in ([], ["now"], ["subsec"], ["subsecond"])
    return now and all(_HARMLESS.fullmatch(each.casefold()) for each in said[1:])


_SAME: tuple[Same, ...] = (
    Same(rf"\b(?:datetime|date|time|julianday|unixepoch) \( (?:{LITERAL}(?: , {LITERAL})* )?\)", _of_now),
    # Digits of the form itself would stand in what is written.
    Same(
        rf"\bstrftime \( {LITERAL} , {LITERAL}(?: , {LITERAL})* \)",
        lambda said: not re.search(r"\d", said[0]) and _of_now(said[1:]),
    ),
    Same(r"\bcurrent_(?:timestamp|date|time)\b(?! \()"),
    Same(rf"(?<!\w )\( {NOW} \)"),
    Same(rf"\bcast \( {NOW} as \w+ \)"),
    Same(rf"\b(?:round|floor|trunc) \( {NOW}(?: , 0)? \)"),
    # From days since noon of the Julian day 0 to seconds since 1970, and from those to milliseconds.
    Same(rf"{NOW} - 2440587\.5(?= \)| \*|\Z)"),
    Same(rf"{NOW} \* (?:1000|86400|86400000)(?:\.0)?(?= \)| as |\Z)"),
    Same(rf"{NOW} \| \| {LITERAL}", lambda said: said[0].upper() in ("Z", "+00:00", ".000Z")),
)
_MOVES = re.compile(r"[+-]?\d+(?:\.\d+)? *(?:second|minute|hour|day|month|year)s?|[+-]\d\d", re.IGNORECASE)
_TIME_WORDS = re.compile(r"\b(?:current_\w+|datetime|date|time|julianday|unixepoch|strftime|timediff)\b")
_CALL = re.compile(r"\b([^\W\d]\w*) \(")
_TIMELESS = frozenset(
    """
    random randomblob zeroblob hex unhex lower upper abs length octet_length printf format substr substring replace trim
    ltrim rtrim coalesce ifnull nullif typeof quote char unicode round floor ceil trunc mod instr iif min max concat
    concat_ws cast json json_object json_array sqlite_version last_insert_rowid changes total_changes
    and or not case when then else in
    """.split()
)


def ending_in_files(text: str, moments: Collection[str] = ()) -> Ending:
    """What a default says, or the expression of a generated column; `moments` are columns that hold a moment."""
    if not text:
        return Ending(Sense.NO_TIME)
    return _said(tokens(text), moments)


def _said(body: tuple[Token, ...], moments: Collection[str] = ()) -> Ending:
    texts: list[str] = []
    masked = reduced(" ".join(_masked(body, moments, texts)), texts, _SAME)
    while (inner := re.fullmatch(r"\( ([^()]*) \)", masked)) is not None:
        masked = inner.group(1)
    if masked == NOW:
        return Ending(Sense.MOMENT)
    return _constant(masked, texts) or _other(masked, texts)


def _masked(body: tuple[Token, ...], moments: Collection[str], texts: list[str]) -> Iterator[str]:
    for token in body:
        if token.kind == "string":
            texts.append(token.text)
            yield f"{OPEN}{len(texts) - 1}{CLOSE}"
        elif token.kind == "blob":
            yield "null"
        elif token.kind in ("word", "quoted") and any(token.names(name) for name in moments):
            yield NOW
        elif token.kind == "quoted":
            # Where SQLite finds no column of that name it is a text.
            texts.append(token.text)
            yield f"{OPEN}{len(texts) - 1}{CLOSE}"
        elif token.kind == "number" and token.text[:2].casefold() == "0x":
            yield str(int(token.text, 16))
        else:
            yield token.text.casefold()


def _constant(masked: str, texts: list[str]) -> Ending | None:
    found = re.fullmatch(rf"{OPEN}(\d+){CLOSE}|(?:[+-] )?([\d.]+(?:e[+-]?\d+)?)|(null|true|false)|", masked)
    if found is None:
        return None
    said = found.group(2) if found.group(1) is None else texts[int(found.group(1))]
    if said is None:
        return Ending(Sense.NO_TIME)
    if said.strip().casefold() in _NEVER or said in _LARGEST or _FAR.fullmatch(said):
        return Ending(Sense.FOR_EVER)
    day = found.group(1) is not None and DAY_IN_DIGITS.fullmatch(said)
    return Ending(Sense.INSTANT if day or like_time(said) else Sense.NO_TIME)


def _other(masked: str, texts: list[str]) -> Ending:
    timed = NOW in masked or _TIME_WORDS.search(masked)
    if timed and (any(_MOVES.fullmatch(text.strip()) for text in texts) or "+" in masked):
        return _length(masked, texts)
    unread = [name for name in _CALL.findall(masked) if name not in _TIMELESS]
    if timed or unread or makes_time(masked, texts):
        why = f"it calls {', '.join(dict.fromkeys(unread))}" if unread else "what time that is is not read here"
        return Ending(Sense.UNCLEAR, why=why)
    return Ending(Sense.NO_TIME)


_AHEAD = re.compile(r"\+?(\d{1,6}) *(second|minute|hour|day|month|year)s?", re.IGNORECASE)
# Round it nothing but parentheses.
_AFTER = re.compile(rf"(?:\( )*(datetime|date|julianday|unixepoch) \( {LITERAL} , {LITERAL} \)(?: \))*")


def _length(masked: str, texts: list[str]) -> Ending:
    """A while after now. How long is known only of one modifier of now, and only if nothing else is said."""
    whole = _AFTER.fullmatch(masked)
    move = _AHEAD.fullmatch(texts[1].strip()) if whole is not None else None
    if whole is None or move is None or texts[0].casefold() != "now":
        return Ending(Sense.LATER)
    count, unit = int(move[1]), move[2].lower()
    plain = timedelta() if unit in ("month", "year") else timedelta(**{f"{unit}s": count})
    found = later(count * (unit == "year"), count * (unit == "month"), plain)
    # A date leaves out the hours.
    return replace(found, least=(found.least or plain) - timedelta(days=1)) if whole[1] == "date" else found
