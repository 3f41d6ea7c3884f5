"""Whether a default or a generated column gives a row an end, read from tokens: SQLite has no types of time.

As in PostgreSQL, known forms are listed, and the rest is inconclusive. SQLite has no infinity: a text for a year from
3000 on means that a row is kept for ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta

from holdfast.conformance.fitness.criteria.endings import (
    CLOSE,
    LITERAL,
    NOW,
    OPEN,
    Ending,
    Same,
    Sense,
    later,
    like_time,
    reduced,
)
from holdfast.conformance.fitness.sqlite.sqltext import Token, tokens

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
    (rf"\b(?:datetime|date|time|julianday|unixepoch) \( (?:{LITERAL}(?: , {LITERAL})* )?\)", _of_now),
    # Digits of the form itself would stand in what is written.
    (
        rf"\bstrftime \( {LITERAL} , {LITERAL}(?: , {LITERAL})* \)",
        lambda said: not re.search(r"\d", said[0]) and _of_now(said[1:]),
    ),
    (r"\bcurrent_(?:timestamp|date|time)\b(?! \()", None),
    (rf"(?<!\w )\( {NOW} \)", None),
    (rf"\bcast \( {NOW} as \w+ \)", None),
    (rf"\b(?:round|floor|trunc) \( {NOW}(?: , 0)? \)", None),
    # From days since noon of the Julian day 0 to seconds since 1970, and from those to milliseconds.
    (rf"{NOW} - 2440587\.5(?= \)| \*|\Z)", None),
    (rf"{NOW} \* (?:1000|86400|86400000)(?:\.0)?(?= \)| as |\Z)", None),
    (rf"{NOW} \| \| {LITERAL}", lambda said: said[0].upper() in ("Z", "+00:00", ".000Z")),
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
    return Ending(Sense.INSTANT if like_time(said) else Sense.NO_TIME)


def _other(masked: str, texts: list[str]) -> Ending:
    timed = NOW in masked or _TIME_WORDS.search(masked)
    if timed and (any(_MOVES.fullmatch(text.strip()) for text in texts) or "+" in masked):
        return _length(masked, texts)
    unread = [name for name in _CALL.findall(masked) if name not in _TIMELESS]
    if timed or unread:
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
