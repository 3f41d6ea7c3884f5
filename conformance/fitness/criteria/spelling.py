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

_PLACE = re.compile(
    r"(?:\[(?P<set>\^?[^\^\\\[\]][^\\\[\]]*)\]|\\(?P<escaped>[^\w\s])|(?P<any>\.)|(?P<plain>[^\\^$.|?*+()\[\]{}]))"
    r"(?:\{(?P<least>[0-9]{1,3})(?:(?P<comma>,)(?P<most>[0-9]{1,3})?)?\}|(?P<many>[+*?]))?|(?P<left_out>\([^()]*\)[?*])"
)
_MANY: dict[str | None, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None), None: (1, 1)}
# Characters that mean themselves in every pattern, and those that do between brackets.
_PLAIN = re.compile(r"[A-Za-z0-9_:/@=-]")
_SET = re.compile(r"[A-Za-z0-9_:/@=.+-]+")
_ALPHABETS = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Between brackets; a hyphen at an end is one.
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
# The bits of a character that may be any.
ANY_BITS = math.log2(0x110000 - 0x800)


@dataclass(frozen=True, slots=True)
class Place:
    """`inside` stands between brackets, `said` means itself, without both it is any; `most` is None without an end."""

    inside: str = ""
    said: str = ""
    least: int = 0
    most: int | None = None

    @property
    def characters(self) -> str:
        """Those that may stand there; empty for any."""
        return expanded(self.inside) if self.inside else self.said[-1:]

    @property
    def fixed(self) -> bool:
        """Whether it is there a fixed number of times, in one case."""
        known = is_of_one_case(self.inside) if self.inside else _PLAIN.fullmatch(self.said)
        return bool(known) and self.least == self.most and self.least > 0

    @property
    def bits(self) -> float:
        """How many it has at the most."""
        if self.most is None:
            return math.inf
        return self.most * bits_of(self.characters) + math.log2(max(self.most - self.least, 0) + 1)


def places(text: str) -> tuple[Place, ...]:
    """The places of a pattern; none for one of another form. What may be left out whole is a place of no length."""
    found, at, end = list[Place](), 1, len(text) - 1
    if not (text.startswith("^") and text.endswith("$")):
        return ()
    while at < end:
        if (each := _PLACE.match(text, at, end)) is None:
            return ()
        said = f"\\{each['escaped']}" if each["escaped"] else each["plain"] or ""
        least, most = _MANY[each["many"]]
        if each["least"]:
            least = int(each["least"])
            most = int(each["most"]) if each["most"] else None if each["comma"] else least
        found.append(Place() if each["left_out"] else Place(each["set"] or "", said, least, most))
        at = each.end()
    return tuple(found)


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
    subject, bare = _subject(column), re.escape(column)
    wide = [bits_of(expanded(inside)) for inside in _sets(conditions, column) if not re.search(r"[\\\[]", inside)]
    of_bytes = of_bytes or bool(_found(rf"typeof \( {bare} \) (?:= |is |= ANY \(ARRAY\[)('blob')(?:\]\))?", conditions))
    lengths = [(longest, "<=", ANY_BITS)] if longest is not None else []
    lengths += [
        (most, how, _BYTE_BITS if in_bytes or of_bytes else ANY_BITS)
        for most, how, in_bytes in _lengths(conditions, column)
    ]
    patterns = _found(rf"{subject} ~ '([^']*)'::text", conditions)
    patterns += map(of_glob, _found(rf"{bare} glob '([^']*)'", conditions))
    rooms = [sum(each.bits for each in found) for text in patterns if (found := places(text))]
    rooms += [
        length * each + (0.0 if how == "=" else math.log2(length + 1))
        for length, how, widest in lengths
        for each in (widest, *wide)
    ]
    return min(rooms, default=math.inf)


def _lengths(conditions: Sequence[str], column: str) -> Iterator[tuple[int, str, bool]]:
    """Each upper bound of a length, how it is said, and whether it is one of bytes."""
    subject, bare = _subject(column), re.escape(column)
    of_bytes = rf"octet_length\({subject}\)|octet_length \( {bare} \)|length \( cast \( {bare} as blob \) \)"
    of_text = rf"(?:length|char_length|character_length)\({subject}\)|length \( {bare} \)"
    form = re.compile(rf"(?:(?P<bytes>{of_bytes})|{of_text}) (=|<=|<|BETWEEN \d+ AND) (\d+)")
    for found in filter(None, map(form.fullmatch, conditions)):
        yield int(found[3]) - (found[2] == "<"), found[2], found["bytes"] is not None


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
    return [] if inside is None else _conjuncts(inside[1])


def conditions_of(checks: Iterable[Row]) -> list[str]:
    """The conditions of several checks."""
    return [condition for check in checks for condition in conditions(str(check["definition"]))]


def lists_of(checks: Iterable[Row], column: str) -> list[set[str]]:
    """The values that checks admit, of each that lists them."""
    found = (admitted(str(check["definition"]), column) for check in checks)
    return [words for words in found if words is not None]


def _conjuncts(text: str) -> list[str]:
    """The conditions that must all hold. A part that is not plainly joined by AND is one condition."""
    text = without_parentheses(text)
    parts, depth, start, between = list[str](), 0, 0, 0
    for sign in _SIGNS.finditer(text):
        depth += (sign[0] in "([") - (sign[0] in ")]")
        if depth == 0 and sign[0] == " OR ":
            return [text]
        between += depth == 0 and sign[0] == " BETWEEN "
        if depth == 0 and sign[0] == " AND " and between:
            between -= 1
        elif depth == 0 and sign[0] == " AND ":
            parts.append(text[start : sign.start()])
            start = sign.end()
    return [each for part in (*parts, text[start:]) for each in _conjuncts(part)] if parts else [text]


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
    subject = _loosely(column)
    for condition in conditions(definition):
        # A number is that of the column itself, and not of what a cast makes of it.
        if re.search(r"::\w+\)* (?:=|is) \(?(?:-?\d|true|false)", condition):
            continue
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
