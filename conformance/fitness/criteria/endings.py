"""Whether the text of a default gives a row an end. It reads what pg_get_expr writes with only pg_catalog in the path.

What is known is listed: constants that are no time, the moment of making, infinity, functions that read no clock.
Everything else that moves along with the clock, or is not read here, is said to be so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, unique
from types import MappingProxyType

from holdfast.conformance.fitness.criteria.spelling import without_parentheses


@unique
class Sense(Enum):
    """What a default says of time."""

    NO_TIME = "no time"
    MOMENT = "the moment in which the row is made"
    FOR_EVER = "for ever"
    LATER = "a while after the row is made"
    INSTANT = "a fixed time"
    UNCLEAR = "not read"


@dataclass(frozen=True, slots=True)
class Ending:
    """`least` and `most`: how long after, of what is LATER, where it is known; `why` of what is UNCLEAR."""

    sense: Sense
    least: timedelta | None = None
    most: timedelta | None = None
    why: str = ""

    def nearer(self, *cuts: timedelta | None) -> Ending:
        """The same end after what is cut off it, or off the moment before it. None: no limit of a cut is known."""
        if self.least is None or None in cuts:
            return replace(self, least=None)
        return replace(self, least=self.least - sum(filter(None, cuts), _NOTHING))


_NOTHING = timedelta()


def later(years: int, months: int, rest: timedelta) -> Ending:
    """So long after. Twelve months are a year; a single one has 28 to 31 days."""
    years, months = years + months // 12, months % 12
    least, most = (min(years * year + months * month, _LONGEST) for year, month in ((365, 28), (366, 31)))
    return Ending(Sense.LATER, timedelta(least) + rest, timedelta(most) + rest)


# In days; sums of it are still a timedelta.
_LONGEST = 400_000_000


# Texts in quotes are set aside and stand as their number between marks that no expression has.
OPEN, CLOSE, NOW = "\x01", "\x02", "\x03"
_TEXT = re.compile(r"""(?P<escaped>E)?'(?P<said>(?:[^']|'')*)'|(?P<name>"(?:[^"]|"")*")""")
_ODD_NAME = re.compile(r"[^\w$ \"-]")
LITERAL = rf"{OPEN}(\d+){CLOSE}"
_NAME = r'(?:"(?:[^"]|"")*"|(?!\d)[\w$]+)'
_WORDS_OF_TYPES = r"precision|varying|with time zone|without time zone|year|month|day|hour|minute|second|to"
_TYPE = rf"(?:{_NAME}\.)?{_NAME}(?:\(\d+(?:,\d+)?\))?(?: (?:{_WORDS_OF_TYPES})(?:\(\d+\))?)*(?:\[\])*"
_CAST = re.compile(rf"::({_TYPE})")
_TIMES = re.compile(r"(?:timestamp|timestamptz|date|time|timetz)\b|(?:ts|tstz|date)(?:multi)?range\b")
_CALL = re.compile(rf"(?<![\w$.\"])(?:(?P<schema>{_NAME})\.)?(?P<name>{_NAME})\(")

_PLAIN_TYPE = (
    r"(?:(?:timestamp|time)(?:\(\d\))? with(?:out)? time zone|date|text|character varying(?:\(\d+\))?|bigint|integer"
    r"|numeric(?:\(\d+,\d+\))?|double precision|real)"
)
_UNIT = r"\(?(?:1000|1000000)(?:\.0+)?\)?(?:::(?:numeric|double precision|bigint|integer))?"
# A zone by its digits may lie days away (POSIX); one by its name is one that people live in.
_ZONE = re.compile(r"[A-Za-z]+(?:[/_-][A-Za-z]+)*").fullmatch
_ALONE = r"(?<![\w$.\"])"
_END = r"(?![\w$.(\[])"
# From the last zone of the world to the first one. A day of a zone may be left out: Samoa had no 30 December 2011.
_ZONES, _SECOND, _DAY = timedelta(hours=26), timedelta(seconds=1), timedelta(days=1)
# How much date_trunc cuts off, at most.
_CUT = {
    "microseconds": _NOTHING,
    "milliseconds": timedelta(milliseconds=1),
    "second": _SECOND,
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "quarter": timedelta(days=92),
    "year": timedelta(days=366),
}


@dataclass(frozen=True, slots=True)
class Same:
    """A form of the moment of making; with texts in it, such as a zone or a field, only if they are `fine`.

    `cut`: how far that may lie before the moment, at most, or what says it of the texts. None: no limit is known, or
    what comes of it is no time.
    """

    form: str
    fine: Callable[[list[str]], object] = lambda _: True
    cut: timedelta | Callable[[list[str]], timedelta | None] | None = None


# Rewritten into `NOW` until nothing changes any more.
_SAME: tuple[Same, ...] = (
    Same(r"\b(?:now|(?:clock|statement|transaction)_timestamp)\(\)(?![\w$(])", cut=_NOTHING),
    Same(r"\b(?:CURRENT_TIMESTAMP|LOCALTIMESTAMP)(?:\(6\))?(?![\w$(])", cut=_NOTHING),
    Same(r"\b(?:CURRENT_TIMESTAMP|LOCALTIMESTAMP)\([0-5]\)(?![\w$(])", cut=_SECOND),
    Same(r"\bCURRENT_DATE(?![\w$(])", cut=_DAY),
    Same(r"\b(?:timeofday\(\)|(?:CURRENT_TIME|LOCALTIME)(?:\(\d\))?)(?![\w$(])"),
    Same(rf"{_ALONE}\({NOW}\)", cut=_NOTHING),
    Same(rf"{NOW}::timestamp(?:\(6\))? with(?:out)? time zone{_END}", cut=_NOTHING),
    Same(rf"{NOW}::timestamp\([0-5]\) with(?:out)? time zone{_END}", cut=_SECOND),
    Same(rf"{NOW}::date{_END}", cut=_DAY),
    Same(rf"{NOW}::{_PLAIN_TYPE}{_END}"),
    Same(rf"\bEXTRACT\(epoch FROM {NOW}\)"),
    Same(rf"{_ALONE}(?:floor|round|trunc|to_jsonb)\({NOW}\)"),
    # As milliseconds or microseconds.
    Same(rf"{NOW} \* {_UNIT}(?= *(?:\)|\Z))"),
    # What a zone cuts off says _by_zones.
    Same(rf"{_ALONE}timezone\({LITERAL}::text, {NOW}\)", lambda said: _ZONE(said[0]), _NOTHING),
    Same(rf"{NOW} AT TIME ZONE {LITERAL}::text", lambda said: _ZONE(said[0]), _NOTHING),
    Same(rf"{_ALONE}date_part\({LITERAL}::text, {NOW}\)", lambda said: said == ["epoch"]),
    Same(rf"{_ALONE}date_trunc\({LITERAL}::text, {NOW}\)", cut=lambda said: _CUT.get(said[0])),
    # Digits and letters of the form itself would stand in what is written.
    Same(rf"{_ALONE}to_char\({NOW}, {LITERAL}::text\)", lambda said: not re.search(r"\d", said[0])),
    Same(rf"\({LITERAL}::text\)(?=::{_PLAIN_TYPE}{_END})", lambda said: said[0].strip().lower() == "now", _NOTHING),
)

_EVER = "infinity"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    r"\s*[+-]?\d{4,}-?\d\d-?\d\d(?:[T ].*)?|.*\d{4}-\d\d-\d\d.*|\d{4}[./]\d\d?[./]\d\d?(?: .*)?"
    r"|\d\d?([./-])\d\d?\1\d{4}(?: .*)?"
    rf"|\d\d?\.?[ -]{_MONTH}[ -]\d{{4}}(?: .*)?|{_MONTH} (?:\d\d?,? )?\d{{4}}(?: .*)?",
    re.DOTALL | re.IGNORECASE,
)
_DURATION = re.compile(
    r"\s*(?:[-+]?\d+(?:\.\d+)?\s*(?:[smhdwy]|ms|secs?|mins?|(?:microsecond|millisecond|second|minute|hour|day|week|mon"
    r"|month|year|decade|century)s?)\s*)+|P(?=\d|T\d)[\dYMWDTHS.]+|\d+:\d\d(?::\d\d(?:\.\d+)?)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
# Signs of a calculation with nothing but numbers.
_CALCULATED = re.compile(r"[-+*/% ().]*")
# A day in the digits of a text alone.
DAY_IN_DIGITS = re.compile(r"(?:19|2\d)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_NUMERIC = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
# The largest numbers of a column are said for "never"; from here on others may be seconds since 1970.
_LARGEST = ("9223372036854775807",)
_EPOCH_FLOOR = 1_000_000_000
_CONSTANT = re.compile(rf"(?:{LITERAL}|(?P<word>true|false|NULL)|(?P<number>-?\d+(?:\.\d+)?))")
_INTERVAL = rf"{LITERAL}::(interval(?: [a-z ]+)?(?:\(\d\))?)"
_AFTER = re.compile(rf"{NOW} \+ {_INTERVAL}|{_INTERVAL} \+ {NOW}")
_LENGTH = re.compile(_INTERVAL)
_RANGE = re.compile(rf"(?:tstzrange|tsrange|daterange)\({NOW}, (?P<end>[^,]+)(?:, {LITERAL}::text)?\)")
_MOVES = re.compile(r"\+|\binterval\b|\bmake_interval\(|\bdate_add\(|_pl_")
_SPEAKS = re.compile(
    r"\b(?:age|date_|isfinite|justify_|make_(?:date|time|interval)|to_timestamp|to_date|timezone|(?:ts|tstz|date)range"
    r"|pg_postmaster_start_time|pg_conf_load_time|pg_xact_commit_timestamp|EXTRACT)"
)
# pg_catalog's functions, and words before a parenthesis, that do not give the time.
_TIMELESS = frozenset(
    """
    nextval currval gen_random_uuid uuidv4 uuidv7 random random_normal md5 sha224 sha256 sha384 sha512 encode decode
    convert_to convert_from lower upper initcap length char_length octet_length bit_length concat concat_ws substr
    substring left right lpad rpad replace translate reverse btrim ltrim rtrim chr ascii to_hex abs mod floor ceil round
    trunc current_database current_schema current_setting inet_client_addr inet_client_port inet_server_addr
    inet_server_port pg_backend_pid txid_current pg_current_xact_id version jsonb_build_object json_build_object
    jsonb_build_array json_build_array to_json to_jsonb format split_part regexp_replace strpos overlay quote_literal
    quote_ident hashtext hashtextextended starts_with
    SUBSTRING TRIM POSITION OVERLAY COALESCE NULLIF GREATEST LEAST ROW AND OR NOT CASE WHEN THEN ELSE IN ANY ALL
    """.split()
)


def ending(
    text: str,
    *,
    kind: str = "",
    modifier: int = -1,
    moments: Mapping[str, Ending] = MappingProxyType({}),
    reviewed: Collection[str] = (),
) -> Ending:
    """What a default says. `kind` and `modifier`: the type of the column without its domains. `moments`: columns that
    hold a time, which the expression of a generated column may name, and what is said of theirs. `reviewed`: functions
    that a person has reviewed, by schema and name.
    """
    if not text:
        return Ending(Sense.NO_TIME)
    names = [found["name"] for found in _TEXT.finditer(text) if found["name"]]
    if re.search(r"[\x00-\x08]", text) or any(map(_ODD_NAME.search, names)):
        return Ending(Sense.UNCLEAR, why="a name in it has signs that are not read here")
    said, cuts = list[str](), [_by_zones(text, kind), _by_type(kind, modifier)]
    named = [each for name, each in moments.items() if _named(name).search(text)]
    masked = without_parentheses(reduced(_masked(text, moments, said), said, _SAME, cuts))
    if masked == NOW:
        found = Ending(Sense.MOMENT, _NOTHING, _NOTHING)
    else:
        found = (
            _constant(masked, said, timed=is_timed(kind))
            or _lasting(masked, said)
            or _other(masked, said, timed=is_timed(kind), reviewed=frozenset(reviewed))
        )
    if any(each.most != _NOTHING for each in named):
        found = replace(found, most=None)
    return found.nearer(*cuts, *(None if each.least is None else max(-each.least, _NOTHING) for each in named))


def is_timed(kind: str) -> bool:
    """Whether a type holds a time, or an array of them."""
    return re.fullmatch(rf"pg_catalog\._?(?:interval|{_TIMES.pattern})", kind) is not None


def given(kind: str, modifier: int) -> Ending:
    """What a column of a type of time holds where no default says it: the writer gives the moment."""
    return Ending(Sense.MOMENT, _NOTHING, _NOTHING).nearer(_by_type(kind, modifier))


def _by_type(kind: str, modifier: int) -> timedelta | None:
    """What the type of a column cuts off. No default shows this cast."""
    name = kind.removeprefix("pg_catalog.")
    if name in ("", "text", "varchar", "tstzrange", "tsrange", "daterange"):
        return _NOTHING
    if name in ("timestamptz", "timestamp"):
        return _NOTHING if modifier in (-1, 6) else _SECOND
    if name == "interval" and modifier == -1:
        return _NOTHING
    return _DAY if name == "date" else None


_ZONED = re.compile(r"\b(?:timezone\(|AT TIME ZONE )('(?:Etc/)?(?:UTC|GMT)'::text)?", re.IGNORECASE)
_IN_ZONES = re.compile(r"pg_catalog\.(?:timestamptz|tstzrange)")


def _by_zones(text: str, kind: str) -> timedelta:
    """How much nearer zones may bring an end.

    A moment in a zone is one without a zone, which the zone of the session may put elsewhere. Only in UTC, and as long
    as no zone is added, it stays what it is. A day of an interval is one of the session's zone.
    """
    zones = _ZONED.findall(text)
    if not zones:
        return _DAY if re.search(r"'[^':]*\d (?:year|mon|day)s?\b[^']*'::interval", text) else _NOTHING
    if all(zones) and _IN_ZONES.fullmatch(kind) is None and "with time zone" not in text:
        return _NOTHING
    return len(zones) * _ZONES


def _named(column: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w$.\"]){re.escape(column)}(?![\w$.(\"])")


def _masked(text: str, moments: Collection[str], said: list[str]) -> str:
    def aside(found: re.Match[str]) -> str:
        if found["name"]:
            return found["name"]
        # The value of a text with escapes is not worked out.
        said.append("\\" if found["escaped"] else found["said"].replace("''", "'"))
        return f"{OPEN}{len(said) - 1}{CLOSE}"

    masked = _TEXT.sub(aside, text).replace("pg_catalog.", "")
    for name in moments:
        masked = _named(name).sub(NOW, masked)
    return masked


def reduced(masked: str, said: list[str], same: Iterable[Same], cuts: list[timedelta | None] | None = None) -> str:
    """With one mark for all that is the moment of making, until nothing changes any more; `cuts` takes what is cut."""
    before = ""
    while before != masked:
        before = masked
        for each in same:

            def put(found: re.Match[str], each: Same = each) -> str:
                texts = [said[int(number)] for number in re.findall(LITERAL, found[0])]
                if not each.fine(texts):
                    return found[0]
                if cuts is not None:
                    cuts.append(each.cut(texts) if callable(each.cut) else each.cut)
                return NOW

            masked = re.sub(each.form, put, masked)
    return masked


def _constant(masked: str, said: list[str], *, timed: bool) -> Ending | None:
    types = _CAST.findall(masked)
    found = _CONSTANT.fullmatch(without_parentheses(_CAST.sub("", masked).replace(" ", "")) if types else masked)
    if found is None or any("." in each for each in types):
        return None
    if found["word"] is not None:
        return Ending(Sense.NO_TIME)
    described = found["number"] or said[int(found[1])]
    if described.strip().lower() == _EVER or described in _LARGEST:
        return Ending(Sense.FOR_EVER)
    if intervals := {each for each in types if each.startswith("interval")}:
        return _length(described, intervals)
    if timed or any(_TIMES.match(each) for each in types) or like_time(described):
        return Ending(Sense.INSTANT)
    text = found["number"] is None and not any(each.startswith(_NUMERIC) for each in types)
    return Ending(Sense.INSTANT if text and DAY_IN_DIGITS.fullmatch(described) else Sense.NO_TIME)


def like_time(described: str) -> bool:
    """Whether a text or number may be read as a fixed time or a span: a date, a duration, seconds since 1970."""
    if _NUMBER.fullmatch(described):
        return abs(float(described)) >= _EPOCH_FLOOR
    return bool(_DATE.fullmatch(described) or _DURATION.fullmatch(described))


def makes_time(masked: str, said: list[str]) -> bool:
    """Whether an expression without a clock may come to a fixed time: by a text in it, by texts joined, by numbers."""
    if any(map(like_time, ("".join(said), *said))):
        return True
    text = re.sub(LITERAL, lambda found: said[int(found[1])], masked)
    numbers = [abs(float(each)) for each in _NUMBER.findall(text)]
    if _CALCULATED.fullmatch(_NUMBER.sub("", text)) is None:
        return False
    return (math.prod(max(each, 1.0) for each in numbers) if "*" in text else sum(numbers)) >= _EPOCH_FLOOR


def _lasting(masked: str, said: list[str]) -> Ending | None:
    """Every moment that lies a while after now, and ranges from now on."""
    if found := _AFTER.fullmatch(masked):
        return _length(said[int(found[1] or found[3])], {found[2] or found[4]})
    if found := _RANGE.fullmatch(masked):
        end = without_parentheses(found["end"])
        if re.fullmatch(rf"NULL::{_PLAIN_TYPE}", end):
            return Ending(Sense.FOR_EVER)
        inner = _constant(end, said, timed=True) or _lasting(end, said)
        return inner or Ending(Sense.LATER)
    if _LENGTH.search(masked) or (NOW in masked and _MOVES.search(masked)) or "make_interval(" in masked:
        return Ending(Sense.LATER)
    return None


_PLAIN_LENGTH = re.compile(r"(?:(\d+) years? ?)?(?:(\d+) mons? ?)?(?:(\d+) days? ?)?(?:(\d+):(\d\d):(\d\d))?")


def _length(described: str, types: Collection[str]) -> Ending:
    """An interval after now; how long it is, is known if it is said in plain words, and no type leaves out fields."""
    if described.strip().lower() == _EVER:
        return Ending(Sense.FOR_EVER)
    words = _PLAIN_LENGTH.fullmatch(described.strip())
    if words is None or not described.strip() or set(types) != {"interval"}:
        return Ending(Sense.LATER)
    years, months, days, hours, minutes, seconds = (int(word or 0) for word in words.groups())
    rest = timedelta(days=min(days, _LONGEST), hours=hours, minutes=minutes, seconds=seconds)
    return later(years, months, rest)


def _other(masked: str, said: list[str], *, timed: bool, reviewed: frozenset[str]) -> Ending:
    """Neither constant nor moment: fine if nothing in it reads the clock, or a person has reviewed what does."""
    types = _CAST.findall(masked)
    without_casts = _CAST.sub("", masked)
    calls = list(_calls(without_casts, types))
    foreign = [call for call in calls if "." in call or call.startswith("OPERATOR")]
    unread = [call for call in calls if call not in reviewed and (call in foreign or call not in _TIMELESS)]
    if unread:
        return Ending(Sense.UNCLEAR, why=f"it calls {', '.join(dict.fromkeys(unread))}, which was not reviewed")
    if foreign:
        return Ending(Sense.NO_TIME)
    named = timed or NOW in masked or _SPEAKS.search(without_casts) or any(_TIMES.match(each) for each in types)
    if named or makes_time(without_casts, said):
        return Ending(Sense.UNCLEAR, why="what time that is is not read here")
    return Ending(Sense.NO_TIME)


def _calls(without_casts: str, types: list[str]) -> Iterator[str]:
    for found in _CALL.finditer(without_casts):
        name = found["name"].strip('"')
        yield name if found["schema"] is None else f"{found['schema'].strip(chr(34))}.{name}"
    # A cast to a type that is not PostgreSQL's own may run a function of its owner.
    yield from (each for each in types if "." in each)
