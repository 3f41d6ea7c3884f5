"""What the text of a CHECK shows, as PostgreSQL writes it: which values it admits, that a key has one spelling only.

Patterns are read place by place: those of PostgreSQL with both anchors, and those of GLOB. Probes try a few values;
that there is no further one only a text can show. What is not one of the forms below may hold
as well; that cannot be decided from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.conformance.fitness.model import Row

_ITEM = re.compile(
    r"\[(?P<set>\^?[^\^\\\[\]](?:\[:\w+:\]|\\.|[^\\\[\]])*|(?:\[:\w+:\]|\\.)(?:\[:\w+:\]|\\.|[^\\\[\]])*)\]"
    r"|(?P<single>\\.|[^*+?{}\[\]()|\\^$])|\((?:\?:|(?!\?))",
    re.DOTALL,
)
_TIMES = re.compile(r"(?:(?P<many>[+*?])|\{(?P<least>[0-9]{1,3})(?:(?P<comma>,)(?P<most>[0-9]{1,3})?)?\})?")
_MANY: dict[str | None, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None), None: (1, 1)}
# Characters that mean themselves in every pattern, and those that do between brackets.
_PLAIN = re.compile(r"[A-Za-z0-9_:/@=-]")
_SET = re.compile(r"[A-Za-z0-9_:/@=.+-]+")
_ALPHABETS = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Between brackets; a hyphen at an end is one.
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
# The bits of a character that may be any; how many are in the classes that are small, by their name or by a letter.
ANY_BITS = math.log2(0x110000 - 0x800)
_CLASSES = {"[:digit:]": 1024, "\\d": 1024, "[:xdigit:]": 22}
_CLASS = re.compile(r"\[:\w+:\]|\\\w")


@dataclass(frozen=True, slots=True)
class Place:
    """`inside` stands between brackets, `said` means itself, `ways` are those of a group, without all it is any.

    `most` is None without an end.
    """

    inside: str = ""
    said: str = ""
    ways: tuple[tuple[Place, ...], ...] = ()
    least: int = 0
    most: int | None = None

    @property
    def characters(self) -> str:
        """Those that may stand there; empty for any."""
        return expanded(self.inside) if self.inside else self.said[-1:]

    @property
    def drawable(self) -> bool:
        """Whether values can be made of it: by characters that are named, or without it."""
        return not (self.inside.startswith("^") or _CLASS.search(self.inside + self.said) or (self.ways and self.least))

    @property
    def fixed(self) -> bool:
        """Whether it is there a fixed number of times, in one case."""
        known = is_of_one_case(self.inside) if self.inside else _PLAIN.fullmatch(self.said)
        return bool(known) and self.least == self.most and self.least > 0

    @property
    def bits(self) -> float:
        """How many it has at the most."""
        if self.most in (None, 0):
            return 0.0 if self.most == 0 else math.inf
        classes = _CLASS.findall(text := self.inside or self.said)
        few = len(expanded(re.sub(r"\\(.)", r"\1", _CLASS.sub("", text)))) + sum(
            _CLASSES.get(each, 0) for each in classes
        )
        one = room_of_ways(self.ways) if self.ways else ANY_BITS
        if few and not text.startswith("^") and _CLASSES.keys() >= set(classes):
            one = math.log2(few)
        return self.most * one + math.log2(max(self.most - self.least, 0) + 1)


def ways_of(pattern: str) -> tuple[tuple[Place, ...], ...]:
    """The ways that | parts, each between both anchors, as places; none for a pattern of another form."""
    try:
        found, at = _ways(pattern, 0, whole=True)
    except (ValueError, RecursionError):
        return ()
    return found if at == len(pattern) else ()


def places(pattern: str) -> tuple[Place, ...]:
    """The places of a pattern of one way; none for another form."""
    ways = ways_of(pattern)
    return ways[0] if len(ways) == 1 else ()


def room_of_ways(ways: Sequence[Sequence[Place]]) -> float:
    """The bits of what is one of these; none is anything."""
    return _either([sum(each.bits for each in way) for way in ways]) if ways else math.inf


def _ways(pattern: str, at: int, *, whole: bool) -> tuple[tuple[tuple[Place, ...], ...], int]:
    """The ways that stand from `at` on with | between them, and where they end; `whole`: with anchors."""
    ways = list[tuple[Place, ...]]()
    while True:
        way = list[Place]()
        at = _behind("^", pattern, at) if whole else at
        while at < len(pattern) and pattern[at] not in "|)$":
            each, at = _place(pattern, at)
            way.append(each)
        ways.append(tuple(way))
        at = _behind("$", pattern, at) if whole else at
        if pattern[at : at + 1] != "|":
            return tuple(ways), at
        at += 1


def _behind(sign: str, pattern: str, at: int) -> int:
    if pattern[at : at + 1] != sign:
        raise ValueError(pattern)
    return at + 1


def _place(pattern: str, at: int) -> tuple[Place, int]:
    """A character, a set or a group, as often as it may be there, and where it ends."""
    if (found := _ITEM.match(pattern, at)) is None:
        raise ValueError(pattern)
    at, ways = found.end(), tuple[tuple[Place, ...], ...]()
    if found[0].startswith("("):
        ways, at = _ways(pattern, at, whole=False)
        at = _behind(")", pattern, at)
    times = _TIMES.match(pattern, at)
    assert times is not None
    least, most = _MANY[times["many"]]
    if times["least"]:
        least = int(times["least"])
        most = int(times["most"]) if times["most"] else None if times["comma"] else least
    said = found["single"] or ""
    return Place(found["set"] or "", "" if said == "." else said, ways, least, most), times.end()


def of_like(text: str) -> str:
    """A pattern of LIKE as one of PostgreSQL. SQLite takes each letter in both cases."""
    words = {"%": ".*", "_": ".", "^": r"\^", "\\": r"\\"}
    return f"^{''.join(words.get(each) or f'[{each.lower()}{each.upper()}]' for each in text)}$"


def of_similar(text: str) -> str:
    """A pattern of SIMILAR TO as one of PostgreSQL."""
    return f"^(?:{text.replace('%', '.*').replace('_', '.')})$"


def of_any_case(text: str) -> str:
    """A pattern that does not look at case, as one that names both cases."""

    def both(found: re.Match[str]) -> str:
        return f"[{found[1]}{found[1].swapcase()}]" if found[1] else f"[{found[0]}{found[0].swapcase()}]"

    return re.sub(r"\[([^\\\[\]]+)\]|(?<!\\)[A-Za-z]", both, text)


def of_glob(text: str) -> str:
    """A pattern of GLOB as one of PostgreSQL."""
    words = {"*": ".*", "?": ".", "[": "[", **{each: f"\\{each}" for each in "\\^$.|+()]{}"}}
    each = re.findall(r"\[[^\]]*\]|.", text, re.DOTALL)
    return f"^{''.join(words.get(word, word) for word in each)}$"


def expanded(inside: str) -> str:
    """The characters between brackets, each once; empty for any, as all but some are."""
    if inside.startswith("^"):
        return ""
    spans = _RANGE.sub(lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), inside)
    return "".join(dict.fromkeys(spans))


def bits_of(characters: str) -> float:
    """The bits of one of these characters; none is any."""
    return math.log2(len(characters)) if characters else ANY_BITS


def is_of_one_case(inside: str) -> bool:
    """Whether what stands between brackets names single characters and ranges, and no letter in both cases."""
    within = all(any(first in each and last in each for each in _ALPHABETS) for first, last in _RANGE.findall(inside))
    if not within or _SET.fullmatch(inside) is None:
        return False
    named = expanded(inside)
    return not any(each.isalpha() and each.swapcase() in named for each in named)


# What a reason suggests for another form.
WRITE_AS = "~ '^[0-9a-f]{64}$'"


def one_spelling(conditions: Sequence[str], column: str, *, trusted: Collection[str] = ()) -> bool:
    """Whether conditions that all hold, as PostgreSQL writes them, leave each key one spelling.

    `trusted` are functions (schema.name) that a policy vouches for; one that is asked about the column alone will do.
    """
    subject = _subject(column)
    if any(map(_is_fixed, _found(rf"{subject} ~ '([^']*)'::text", conditions))):
        return True
    if any(name in trusted for name in _found(rf"([\w$]+\.[\w$]+)\({subject}\)", conditions)):
        return True
    long = any(how == "=" and most for most, how, _ in _lengths(conditions, column))
    return long and any(map(is_of_one_case, _sets(conditions, column)))


# SQLite has two traps more: without STRICT or typeof() the bytes of a text are another value that every other condition
# takes for the text, and length() and GLOB end at a NUL, so that anything may stand behind it. {0} is the column.
WRITE_AS_IN_FILES = (
    "typeof({0}) = 'text' AND length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
)


def one_spelling_in_files(conditions: Sequence[str], column: str, *, typed: bool) -> bool:
    """The same for what SQLite says, word for word; `typed`: nothing but texts goes into the column anyhow."""
    subject = re.escape(column)

    def found(form: str) -> list[str]:
        return _found(form.replace("{c}", subject), conditions)

    if not (typed or found(r"typeof \( {c} \) = ('text')")):
        return False
    said = {(in_bytes, most) for most, how, in_bytes in _lengths(conditions, column) if how == "=" and most}
    whole = bool(found(r"instr \( {c} , (?:char \( 0 \)|x'00') \) = (0)"))
    for text in map(of_glob, found(r"{c} glob '([^']*)'")):
        if _is_fixed(text) and (whole or (True, sum(each.least for each in places(text))) in said):
            return True
    both = any((not in_bytes, most) in said for in_bytes, most in said)
    return any(map(is_of_one_case, _sets(conditions, column))) and bool(both or (whole and said))


def _is_fixed(text: str) -> bool:
    """Whether a pattern has both anchors, and between them only characters and sets, each a fixed number of times."""
    found = places(text)
    return bool(found) and all(each.fixed for each in found)


def _sets(conditions: Sequence[str], column: str) -> list[str]:
    """What stands between the brackets of a condition that admits nothing but these characters, however many."""
    subject, bare = _subject(column), re.escape(column)
    return [
        *_found(rf"{subject} !~ '\[\^([^']*)\]'::text", conditions),
        *_found(rf"{subject} ~ '\^\[([^']*)\][+*]\$'::text", conditions),
        *_found(rf"{bare} not glob '\*\[\^([^\]]+)\]\*'", conditions),
    ]


_BYTE_BITS = 8.0


def capacity(conditions: Sequence[str], column: str, *, of_bytes: bool = False, longest: int | None = None) -> float:
    """How many bits these conditions leave a column at the most; infinite where none of them says.

    `of_bytes`: its length is one of bytes, as it is of what must be a blob. `longest`: as many characters as its type
    takes.
    """
    said = [_disjuncts(text) for each in conditions for text in _straight(each)]
    plain = [parts[0] for parts in said if len(parts) == 1]
    rooms = [_room(plain, column, of_bytes=of_bytes, longest=longest)]
    for parts in said:
        if len(parts) > 1:
            ways = ([*plain, *_conjuncts(part)] for part in parts)
            rooms.append(_either([capacity(way, column, of_bytes=of_bytes, longest=longest) for way in ways]))
    return min(rooms)


def _room(conditions: Sequence[str], column: str, *, of_bytes: bool, longest: int | None) -> float:
    """The same of conditions none of which says OR."""
    subject, bare = _subject(column), re.escape(column)
    wide = [bits_of(expanded(inside)) for inside in _sets(conditions, column) if not re.search(r"[\\\[]", inside)]
    of_bytes = of_bytes or bool(_found(rf"typeof \( {bare} \) (?:= |is |= ANY \(ARRAY\[)('blob')(?:\]\))?", conditions))
    lengths = [(longest, "<=", ANY_BITS)] if longest is not None else []
    lengths += [
        (most, how, _BYTE_BITS if in_bytes or of_bytes else ANY_BITS)
        for most, how, in_bytes in _lengths(conditions, column)
    ]
    patterns = _found(rf"{subject} ~ '([^']*)'::text", conditions)
    patterns += map(of_any_case, _found(rf"{subject} ~\* '([^']*)'::text", conditions))
    patterns += map(of_similar, _found(rf"{subject} ~ similar_to_escape\('([^']*)'::text\)", conditions))
    patterns += map(of_glob, _found(rf"{bare} glob '([^']*)'", conditions))
    patterns += map(of_like, _found(rf"{subject} (?:~~|like) '([^']*)'(?:::text)?", conditions))
    rooms = [room_of_ways(ways_of(text)) for text in patterns]
    rooms += [math.log2(len(words)) for each in conditions if (words := _listed(each, column))]
    rooms += [
        length * each + (0.0 if how == "=" else math.log2(length + 1))
        for length, how, widest in lengths
        for each in (widest, *wide)
    ]
    return min(rooms, default=math.inf)


def _either(rooms: Sequence[float]) -> float:
    """The bits of what is one of these."""
    return max(rooms) + math.log2(len(rooms))


_COMPARED = re.compile(r"([^<>=~!]+?) (<=|>=|<>|<|>|=|!~|~|not glob|glob) ([^<>=~!].*)", re.DOTALL)
_OTHERWISE = {"<=": ">", "<": ">=", "=": "<>", "~": "!~", "glob": "not glob"}
_OTHERWISE |= {other: how for how, other in _OTHERWISE.items()}


def _straight(condition: str) -> list[str]:
    """A condition without NOT before it and IS TRUE behind it."""
    condition = re.sub(r"\ACOALESCE\((.+), false\)\Z", r"\1", condition, flags=re.DOTALL)
    condition = without_parentheses(re.sub(r" IS (?:TRUE|NOT FALSE)\Z", "", condition, flags=re.IGNORECASE))
    denied = re.fullmatch(r"not (.+)", condition, re.DOTALL | re.IGNORECASE)
    said = without_parentheses(denied[1]) if denied else condition
    if denied and len(parts := _disjuncts(said)) > 1:
        return [each for part in parts for each in _straight(f"NOT ({part})")]
    found = _COMPARED.fullmatch(said) if len(_conjuncts(said)) == 1 else None
    return [_turned(f"{found[1]} {_OTHERWISE[found[2]]} {found[3]}" if denied and found else condition)]


def _lengths(conditions: Sequence[str], column: str) -> Iterator[tuple[int, str, bool]]:
    """Each upper bound of a length, how it is said, and whether it is one of bytes."""
    subject, bare = _subject(column), re.escape(column)
    of_bytes = rf"octet_length\({subject}\)|octet_length \( {bare} \)|length \( cast \( {bare} as blob \) \)"
    of_text = rf"(?:length|char_length|character_length)\({subject}\)|length \( {bare} \)"
    long = rf"\(?(?:(?P<bytes>{of_bytes}|(?P<bits>bit_length)\({subject}\))|{of_text})\)?(?:::\w+)?"
    one = re.compile(rf"{long} (?P<how>=|is|<=|<|BETWEEN \d+ AND) \(?'?(?P<most>\d+)'?\)?(?:::\w+)?")
    listed = re.compile(rf"{long} (?P<how>=) ANY \(\(*(?:ARRAY\[|'\{{)(?P<most>[\d, ]+)(?:\]|\}}'::\w+\[\])\)")
    # The column is as long as what begins it.
    begins = rf'"?(?:left|substr(?:ing)?|SUBSTRING)"? ?\( ?(?:{subject}|{bare})(?: FROM 1 FOR|(?: ?, 1)? ?,) (\d+) ?\)'
    for condition in conditions:
        if found := re.fullmatch(rf"{begins} = {subject}|{subject} = {begins}", condition):
            yield int(found[1] or found[2]), "<=", False
        if found := one.fullmatch(condition) or listed.fullmatch(condition):
            most = max(map(int, found["most"].split(",")))
            how = "<=" if found.re is listed else "=" if found["how"] == "is" else found["how"]
            yield (most - (how == "<")) // (8 if found["bits"] else 1), how, found["bytes"] is not None


def bound(conditions: Sequence[str], column: str) -> int | None:
    """The length that conditions leave a column at the most; None if they say nothing of it."""
    return min((most for most, _, _ in _lengths(conditions, column)), default=None)


_NUMBER = r"\(*'?(-? ?\d+)'?(?:\)|::[\w ]+)*"


def limits(conditions: Sequence[str], column: str) -> tuple[int | None, int | None]:
    """The least and the largest whole number that comparisons leave a column; None where none says."""
    form = re.compile(rf"{_loosely(column)} (?:(?P<sign>[<>]=?) {_NUMBER}|BETWEEN {_NUMBER} AND {_NUMBER})")
    low, high = list[int](), list[int]()
    for found in filter(None, map(form.fullmatch, conditions)):
        numbers = [int(each.replace(" ", "")) for each in found.groups()[1:] if each is not None]
        if found["sign"] in (None, ">", ">="):
            low.append(numbers[0] + (found["sign"] == ">"))
        if found["sign"] in (None, "<", "<="):
            high.append(numbers[-1] - (found["sign"] == "<"))
    return max(low, default=None), min(high, default=None)


def _subject(column: str) -> str:
    """The column as PostgreSQL writes it; a check of a domain calls it VALUE."""
    doubled = column.replace('"', '""')
    name = rf'(?:{re.escape(column)}|"{re.escape(doubled)}"|VALUE)'
    return rf'(?:{name}|\({name}\)::text|\({name} COLLATE "C"\))'


def _found(form: str, conditions: Sequence[str]) -> list[str]:
    """What stands in the group of a form, for each condition that is of it and nothing else."""
    return [match.group(1) for condition in conditions if (match := re.fullmatch(form, condition)) is not None]


# Whether it was validated and is enforced stands in the row; NO INHERIT matters to children only, which refute (a).
_CHECK = re.compile(r"CHECK \((.*)\)(?: NO INHERIT)?(?: NOT VALID)?(?: NOT ENFORCED)?", re.DOTALL)
# What PostgreSQL writes for `c = 'x'` and `c IN ('x', 'y')`, for text, varchar and enums.
_QUOTED = r"'(?:[^']|'')*'"
_LITERAL = rf"\(?({_QUOTED}|-?\d+|true|false)\)?(?:::[\w\". ]+(?:\(\d+\))?)?"
_PARENTHESES = re.compile(r"'(?:[^']|'')*(?:'|\Z)|[()]")
_SIGNS = re.compile(r"'(?:[^']|'')*(?:'|\Z)|[(\[]|[)\]]| AND | OR | BETWEEN ")


def conditions(definition: str) -> list[str]:
    """The conditions of a check that must all hold."""
    inside = _CHECK.fullmatch(definition)
    return [] if inside is None else [_turned(each) for each in _conjuncts(inside[1])]


_CONSTANT_FIRST = re.compile(rf"(-?\d+|{_QUOTED}(?:::[\w\". ]+)?) (<=|>=|<>|<|>|=) ([^<>=~!']+)")
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


def _turned(condition: str) -> str:
    """A comparison with its constant behind."""
    found = _CONSTANT_FIRST.fullmatch(condition)
    return condition if found is None else f"{found[3]} {_TURNED.get(found[2], found[2])} {found[1]}"


def conditions_of(checks: Iterable[Row]) -> list[str]:
    """The conditions of several checks."""
    return [condition for check in checks for condition in conditions(str(check["definition"]))]


def lists_of(checks: Iterable[Row], column: str) -> list[set[str]]:
    """The values that checks admit, of each that lists them."""
    found = (admitted(str(check["definition"]), column) for check in checks)
    return [words for words in found if words is not None]


def _disjuncts(text: str) -> list[str]:
    """The conditions of which one must hold."""
    return _parts(without_parentheses(text), " OR ")


def _conjuncts(text: str) -> list[str]:
    """The conditions that must all hold. A part that is not plainly joined by AND is one condition."""
    text = without_parentheses(text)
    parts = _parts(text, " AND ") if len(_disjuncts(text)) == 1 else [text]
    return [each for part in parts for each in _conjuncts(part)] if len(parts) > 1 else parts


def _parts(text: str, word: str) -> list[str]:
    """What a word joins outside of parentheses; the AND of a BETWEEN joins nothing."""
    parts, depth, start, between = list[str](), 0, 0, 0
    for sign in _SIGNS.finditer(text):
        depth += (sign[0] in "([") - (sign[0] in ")]")
        if depth:
            continue
        between += sign[0] == " BETWEEN "
        if sign[0] == " AND " and between:
            between -= 1
        elif sign[0] == word:
            parts.append(text[start : sign.start()])
            start = sign.end()
    return [*parts, text[start:]]


def without_parentheses(text: str) -> str:
    """Without those around the whole."""
    while text.startswith("("):
        depth = 0
        for sign in _PARENTHESES.finditer(text):
            depth += (sign[0] == "(") - (sign[0] == ")")
            if depth == 0:
                break
        if depth or sign.end() != len(text):
            break
        text = text[1:-1].strip()
    return text


def admitted(definition: str, column: str) -> set[str] | None:
    """The values that a check admits, if it lists them; conditions beside the list only narrow them."""
    return next((words for each in conditions(definition) if (words := _listed(each, column)) is not None), None)


def _listed(condition: str, column: str) -> set[str] | None:
    subject = _loosely(column)
    # A number is that of the column itself, and not of what a cast makes of it.
    if re.search(r"::\w+\)* (?:=|is) \(?(?:-?\d|true|false)", condition):
        return None
    if single := re.fullmatch(rf"{subject} (?:=|is) {_LITERAL}", condition):
        return {_unquoted(single[1])}
    several = re.fullmatch(rf"{subject} = ANY \(+ARRAY\[(.*?)\]\)*(?:::[\w\". ]+\[\])?\)*", condition, re.DOTALL)
    if several is not None and re.fullmatch(rf"{_LITERAL}(?:, {_LITERAL})*", several[1]):
        return {_unquoted(word) for word in re.findall(_LITERAL, several[1])}
    return None


def never_empty(definition: str, column: str) -> bool:
    """Whether a check says in plain words that a column is not empty text."""
    if (words := admitted(definition, column)) is not None:
        return "" not in words
    subject = _loosely(column)
    form = rf"{subject} <> ''(?:::[\w\". ]+)?|NOT \({subject} = ''(?:::[\w\". ]+)?\)"
    return any(re.fullmatch(form, condition) for condition in conditions(definition))


def _loosely(column: str) -> str:
    """The column, under any cast; a check of a domain calls it VALUE."""
    return rf"\(*(?:{re.escape(column)}|\"{re.escape(column)}\"|VALUE)\)*(?:::[\w\". ]+?)?\)*"


def mentions(condition: str, column: str) -> bool:
    """Whether a condition can speak of a column."""
    quoted = f'"{column.replace(chr(34), chr(34) * 2)}"'
    bare = re.sub(_QUOTED, "''", condition)
    return quoted in bare or has_word(bare, column)


def has_word(text: str, name: str, flags: int = 0) -> bool:
    """Whether a name stands in a text as a word of its own."""
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text, flags) is not None


def _unquoted(literal: str) -> str:
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def literals(definition: str) -> set[str]:
    """Every word in quotes, but for the empty one."""
    return {_unquoted(word) for word in re.findall(_QUOTED, definition)} - {""}


# From a consumed key to the neighbour, and a text that describes the neighbour.
Neighbour: TypeAlias = tuple[Callable[[str], str], str]
# By the end of the name of its probe, in the order in which they are tried.
NEIGHBOURS: Mapping[str, Neighbour] = {
    "upper": (str.upper, "in upper case"),
    "space": (lambda key: f"{key} ", "with a space at its end"),
    "leading-space": (lambda key: f" {key}", "with a space before it"),
    "newline": (lambda key: f"{key}\n", "with a line feed at its end"),
    "tab": (lambda key: f"{key}\t", "with a tab at its end"),
    "sha256": (lambda key: f"sha256:{key}", "with sha256: before it"),
    "version": (lambda key: f"v1:{key}", "with v1: before it"),
    "0x": (lambda key: f"0x{key}", "with 0x before it"),
    "zero": (lambda key: f"0{key}", "with a zero before it"),
    "doubled": (lambda key: f"{key}{key}", "twice in a row"),
}
# SQLite only, because no text of PostgreSQL holds a NUL: length() and GLOB stop at the first one.
NUL_NEIGHBOURS: Mapping[str, Neighbour] = {
    "nul": (lambda key: f"{key}\0", "with a NUL at its end"),
    "nul-tail": (lambda key: f"{key}\0x", "with a NUL and more at its end"),
}
