"""Whether a default or a generated column gives a row an end, read from tokens: SQLite has no types of time.

As in PostgreSQL, known forms are listed, and the rest is inconclusive. SQLite has no infinity: a text for a year from
3000 on means that a row is kept for ever.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from datetime import timedelta

from holdfast.conformance.fitness.criteria.endings import Ending, Sense, like_time
from holdfast.conformance.fitness.sqlite.sqltext import Token, tokens

_NEVER = ("infinity", "never", "forever")
_FAR = re.compile(r"[3-9]\d{3}-\d\d-\d\d(?:[T ].*)?")
# The end of the year 9999 in seconds and milliseconds, and the largest integer.
_LARGEST = ("253402300799", "253402300800", "253402300799000", "253402300799999", "9223372036854775807")

# Texts stand as their number between marks, the moment of making as another mark.
_OPEN, _CLOSE, _NOW = "\x01", "\x02", "\x03"
_LITERAL = rf"{_OPEN}(?:\d+){_CLOSE}"
_FIRST = rf"(?P<first>{_LITERAL})(?P<more>(?: , {_LITERAL})*)"
_CALLS = (
    re.compile(rf"\b(?:datetime|date|time|julianday|unixepoch) \( (?:{_FIRST} )?\)"),
    re.compile(rf"\bstrftime \( (?P<form>{_LITERAL}) , {_FIRST} \)"),
)
_SAME = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bcurrent_(?:timestamp|date|time)\b(?! \()",
        rf"(?<!\w )\( {_NOW} \)",
        rf"\bcast \( {_NOW} as \w+ \)",
        rf"\b(?:round|floor|trunc) \( {_NOW}(?: , 0)? \)",
        # From days since noon of the Julian day 0 to seconds since 1970, and from those to milliseconds.
        rf"{_NOW} - 2440587\.5(?= \)| \*|\Z)",
        rf"{_NOW} \* (?:1000|86400|86400000)(?:\.0)?(?= \)| as |\Z)",
    )
)
# They move a moment by hours at most, or back.
_HARMLESS = re.compile(r"subsec(?:ond)?|utc|localtime|start of (?:day|month|year)")
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
    return _with_length(_said(tokens(text), moments), text)


def _said(body: tuple[Token, ...], moments: Collection[str] = ()) -> Ending:
    texts: list[str] = []
    masked = _reduced(" ".join(_masked(body, moments, texts)), texts)
    while (inner := re.fullmatch(r"\( ([^()]*) \)", masked)) is not None:
        masked = inner.group(1)
    if masked == _NOW:
        return Ending(Sense.MOMENT)
    return _constant(masked, texts) or _other(masked, texts)


def _masked(body: tuple[Token, ...], moments: Collection[str], texts: list[str]) -> Iterator[str]:
    for token in body:
        if token.kind == "string":
            texts.append(token.text)
            yield f"{_OPEN}{len(texts) - 1}{_CLOSE}"
        elif token.kind == "blob":
            yield "null"
        elif token.kind in ("word", "quoted") and any(token.names(name) for name in moments):
            yield _NOW
        elif token.kind == "quoted":
            # Where SQLite finds no column of that name it is a text.
            texts.append(token.text)
            yield f"{_OPEN}{len(texts) - 1}{_CLOSE}"
        else:
            yield token.text.casefold()


def _reduced(masked: str, texts: list[str]) -> str:
    def described(marks: str) -> list[str]:
        return [texts[int(number)] for number in re.findall(r"\d+", marks)]

    def call(found: re.Match[str]) -> str:
        groups = found.groupdict()
        first, more, form = (described(groups.get(name) or "") for name in ("first", "more", "form"))
        now = [each.casefold() for each in first] in ([], ["now"], ["subsec"], ["subsecond"])
        fine = now and all(_HARMLESS.fullmatch(each.casefold()) for each in more)
        # Digits of the form itself would stand in what is written.
        return _NOW if fine and not any(re.search(r"\d", each) for each in form) else found.group()

    before = ""
    while before != masked:
        before = masked
        for pattern in _CALLS:
            masked = pattern.sub(call, masked)
        for pattern in _SAME:
            masked = pattern.sub(_NOW, masked)
        zone = re.search(rf"{_NOW} \| \| {_OPEN}(\d+){_CLOSE}", masked)
        if zone is not None and texts[int(zone.group(1))].upper() in ("Z", "+00:00", ".000Z"):
            masked = masked.replace(zone.group(), _NOW)
    return masked


def _constant(masked: str, texts: list[str]) -> Ending | None:
    found = re.fullmatch(rf"{_OPEN}(\d+){_CLOSE}|(?:[+-] )?([\d.]+(?:e[+-]?\d+)?)|(null|true|false)|", masked)
    if found is None:
        return None
    said = found.group(2) if found.group(1) is None else texts[int(found.group(1))]
    if said is None:
        return Ending(Sense.NO_TIME)
    if said.strip().casefold() in _NEVER or said in _LARGEST or _FAR.fullmatch(said):
        return Ending(Sense.FOR_EVER)
    return Ending(Sense.INSTANT if like_time(said) else Sense.NO_TIME)


def _other(masked: str, texts: list[str]) -> Ending:
    timed = _NOW in masked or _TIME_WORDS.search(masked)
    if timed and (any(_MOVES.fullmatch(text.strip()) for text in texts) or "+" in masked):
        return Ending(Sense.LATER)
    unread = [name for name in _CALL.findall(masked) if name not in _TIMELESS]
    if timed or unread:
        why = f"it calls {', '.join(dict.fromkeys(unread))}" if unread else "what time that is is not read here"
        return Ending(Sense.UNCLEAR, why=why)
    return Ending(Sense.NO_TIME)


def _with_length(found: Ending, default: str) -> Ending:
    days = _days_ahead(default) if found.sense is Sense.LATER else None
    return found if days is None else Ending(found.sense, timedelta(days=days))


# Between these a number is a Julian day, seconds or milliseconds since 1970, for moments of this age.
_UNITS: Mapping[str, tuple[float, float]] = {
    "? - julianday('now')": (2.4e6, 2.6e6),
    "(? - strftime('%s', 'now')) / 86400.0": (1e9, 1e11),
    "(? / 1000.0 - strftime('%s', 'now')) / 86400.0": (1e12, 1e14),
}


# The last seconds of days on which a default lies nearest: of a month and a year, before the shortest month, and of
# each day of a week.
_MOMENTS = ("2026-01-31", "2026-12-31", *(f"2026-02-0{day}" for day in range(1, 8)))
# How a default names the moment in which a row is made; `{now}` stands for that in its place.
_NOWS = (
    (re.compile(r"'now'|\bcurrent_timestamp\b", re.IGNORECASE), "'{now}'"),
    (re.compile(r"\bcurrent_(date|time)\b", re.IGNORECASE), r"\1('{now}')"),
    (re.compile(r"\b(unixepoch|julianday|datetime|date|time)\s*\(\s*(?=\)|'subsec)", re.IGNORECASE), r"\1('{now}' "),
    (re.compile(r"'{now}' (?='subsec)"), "'{now}', "),
    (re.compile(r"\b(strftime\s*\(\s*'[^']*')\s*\)", re.IGNORECASE), r"\1, '{now}')"),
)


def _days_ahead(default: str) -> float | None:
    """How many days after now the value of a default lies at the least, as SQLite works it out; None if no instant."""
    for pattern, moment in _NOWS:
        default = pattern.sub(moment, default)
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            found = [_ahead(connection, default, f"{day} 23:59:59") for day in _MOMENTS]
        except (sqlite3.Error, OverflowError):
            return None
    known = [float(days) for days in found if days is not None]
    return min(known) if len(known) == len(found) else None


def _ahead(connection: sqlite3.Connection, default: str, now: str) -> float | None:
    value = connection.execute(f"SELECT ({default})".replace("{now}", now)).fetchone()[0]
    unit: str | None = "julianday(?) - julianday('now')"
    if isinstance(value, int | float):
        unit = next((each for each, (least, most) in _UNITS.items() if least <= value < most), None)
    if unit is None:
        return None
    days: float | None = connection.execute(
        f"SELECT round({unit}, 6)".replace("'now'", f"'{now}'"), (value,)
    ).fetchone()[0]
    return days
