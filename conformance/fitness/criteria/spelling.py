"""What the text of a CHECK shows, as PostgreSQL writes it: which values it admits, that a key has one spelling only.

Probes try a few values; that there is no further one only a text can show. What is not one of the forms below may hold
as well; that cannot be decided from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

# What a reason suggests for another form.
WRITE_AS = "~ '^[0-9a-f]{64}$'"
# Characters that mean themselves in a pattern, and those that do between brackets.
_PLAIN = r"[A-Za-z0-9_:/@=-]"
_SET = r"\[([A-Za-z0-9_:/@=.+-]+)\]"
# Nothing is optional and nothing is repeated without a number, so that each place of a key has its characters.
_ATOM = re.compile(rf"(?:{_SET}|{_PLAIN})(?:\{{[1-9][0-9]*\}})?")
_ALPHABETS = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_UNKNOWN = "?"
# Between brackets; a hyphen at an end is one.
RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_LENGTH = "(?:length|char_length|character_length|octet_length)"


def one_spelling(conditions: Sequence[str], column: str, *, trusted: Collection[str] = ()) -> bool:
    """Whether conditions that all hold, as PostgreSQL writes them, leave each key one spelling.

    `trusted` are functions (schema.name) that a policy vouches for; one that is asked about the column alone will do.
    """
    subject = _subject(column)
    if any(_is_fixed(pattern) for pattern in _found(rf"{subject} ~ '([^']*)'::text", conditions)):
        return True
    if any(name in trusted for name in _found(rf"([\w$]+\.[\w$]+)\({subject}\)", conditions)):
        return True
    long = bool(_found(rf"{_LENGTH}\({subject}\) = ([1-9][0-9]*)", conditions))
    without = _found(rf"{subject} !~ '\[\^([^']*)\]'::text", conditions)
    only = _found(rf"{subject} ~ '\^\[([^']*)\][+*]\$'::text", conditions)
    return long and any(is_of_one_case(inside) for inside in (*without, *only))


# SQLite has two traps more: without STRICT or typeof() the bytes of a text are another value that every other condition
# takes for the text, and length() and GLOB end at a NUL, so that anything may stand behind it. {0} is the column.
WRITE_AS_IN_FILES = (
    "typeof({0}) = 'text' AND length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
)
_PLACE = re.compile(r"\[([^\]^][^\]]*)\]|(.)", re.DOTALL)


def one_spelling_in_files(conditions: Sequence[str], column: str, *, typed: bool) -> bool:
    """The same for what SQLite says, word for word; `typed`: nothing but texts goes into the column anyhow."""
    subject = re.escape(column)

    def found(form: str) -> list[str]:
        return _found(form.replace("{c}", subject), conditions)

    if not (typed or found(r"typeof \( {c} \) = ('text')")):
        return False
    long = set(found(r"length \( {c} \) = ([1-9]\d*)"))
    octets = set(found(r"(?:length \( cast \( {c} as blob \) \)|octet_length \( {c} \)) = ([1-9]\d*)"))
    whole = bool(found(r"instr \( {c} , (?:char \( 0 \)|x'00') \) = (0)"))
    places = filter(None, map(_places, found(r"{c} glob '([^']*)'")))
    if any(whole or str(each) in octets for each in places):
        return True
    only = any(map(is_of_one_case, found(r"{c} not glob '\*\[\^([^\]]+)\]\*'")))
    return only and bool(long & octets or (whole and long | octets))


def _places(text: str) -> int:
    """How many places a pattern of GLOB has that names the characters of each; 0 for any other pattern."""
    found = _PLACE.findall(text)
    fine = (is_of_one_case(inside) if inside else re.fullmatch(_PLAIN, plain) for inside, plain in found)
    return len(found) if all(fine) else 0


# The bits of a character that may be any, and of a byte.
_CHARACTER, _BYTE = math.log2(0x110000 - 0x800), 8.0
_CLASS = r"\[(?P<set>\^?[^\\\[\]^][^\\\[\]]*)\]"
_PLACE_OF_PATTERN = re.compile(rf"(?:{_CLASS}|{_PLAIN})(?:\{{(?P<least>\d+)(?:,(?P<most>\d+))?\}})?")
_PLACE_OF_GLOB = re.compile(rf"{_CLASS}|(?P<any>\?)|[^\[*?]", re.DOTALL)


def capacity(conditions: Sequence[str], column: str, *, of_bytes: bool = False, longest: int | None = None) -> float:
    """How many bits these conditions leave a column at the most; infinite where none of them says.

    `of_bytes`: its length is one of bytes. `longest`: so many characters go into its type.
    """
    subject, bare = _subject(column), re.escape(column)
    bound = r" (=|<=|<|BETWEEN \d+ AND) (\d+)"
    bytes_ = [f"octet_length\\({subject}\\)", rf"octet_length \( {bare} \)", rf"length \( cast \( {bare} as blob \) \)"]
    texts = [rf"(?:length|char_length|character_length)\({subject}\)", rf"length \( {bare} \)"]
    sets = [
        *_found(rf"{subject} !~ '\[\^([^']*)\]'::text", conditions),
        *_found(rf"{subject} ~ '\^\[([^']*)\][+*]\$'::text", conditions),
        *_found(rf"{bare} not glob '\*\[\^([^\]]+)\]\*'", conditions),
    ]
    wide = [_size(inside) for inside in sets if "\\" not in inside and "[" not in inside]
    lengths = [(longest, "<=", _CHARACTER)] if longest is not None else []
    for forms, each in ((bytes_, _BYTE), (texts, _BYTE if of_bytes else _CHARACTER)):
        said = (re.fullmatch(f"(?:{'|'.join(forms)}){bound}", condition) for condition in conditions)
        lengths += [(int(found[2]) - (found[1] == "<"), found[1], each) for found in said if found is not None]
    return min(
        (
            *(_room(_PLACE_OF_PATTERN, text[1:-1]) for text in _found(rf"{subject} ~ '(\^[^']*\$)'::text", conditions)),
            *(_room(_PLACE_OF_GLOB, text) for text in _found(rf"{bare} glob '([^']*)'", conditions)),
            *(
                length * each + (0.0 if how == "=" else math.log2(length + 1))
                for length, how, widest in lengths
                for each in (widest, *wide)
            ),
        ),
        default=math.inf,
    )


def _room(places: re.Pattern[str], text: str) -> float:
    """The bits of a pattern; a character that means itself has none. Infinite where it is not read to its end."""
    place, bits = 0, 0.0
    while place < len(text):
        if (found := places.match(text, place)) is None:
            return math.inf
        named = found.groupdict()
        least, most = int(named.get("least") or 1), int(named.get("most") or named.get("least") or 1)
        each = _CHARACTER if named.get("any") else _size(named["set"] or "x")
        bits += most * each + math.log2(max(most - least, 0) + 1)
        place = found.end()
    return bits


def _size(inside: str) -> float:
    """The bits of one of the characters between brackets."""
    if inside.startswith("^"):
        return _CHARACTER
    ranges = [range(ord(first), ord(last) + 1) for first, last in RANGE.findall(inside)]
    return math.log2(len({*map(ord, RANGE.sub("", inside)), *(each for span in ranges for each in span)}) or 1)


def is_of_one_case(inside: str) -> bool:
    """Whether what stands between brackets names single characters and ranges, and no letter in both cases."""
    if re.fullmatch(_SET, f"[{inside}]") is None:
        return False
    named = RANGE.sub(_span, inside)
    return _UNKNOWN not in named and not any(each.isalpha() and each.swapcase() in named for each in named)


def _span(ends: re.Match[str]) -> str:
    """Every character of a range; unknown are those of one that goes beyond one alphabet."""
    alphabet = next((each for each in _ALPHABETS if ends[1] in each and ends[2] in each), "")
    return alphabet[alphabet.find(ends[1]) : alphabet.find(ends[2]) + 1] or _UNKNOWN


def _is_fixed(pattern: str) -> bool:
    """Whether a pattern has both anchors, and between them only characters and sets, each a fixed number of times."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return False
    inside, place = pattern[1:-1], 0
    while place < len(inside):
        atom = _ATOM.match(inside, place)
        if atom is None or (atom.group(1) is not None and not is_of_one_case(atom.group(1))):
            return False
        place = atom.end()
    return place > 0


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
_LITERAL = rf"\(?({_QUOTED}|-?\d+)\)?(?:::[\w\". ]+(?:\(\d+\))?)?"
_PARENTHESES = re.compile(r"'(?:[^']|'')*(?:'|\Z)|[()]")
_SIGNS = re.compile(r"'(?:[^']|'')*(?:'|\Z)|[(\[]|[)\]]| AND | OR | BETWEEN ")


def conditions(definition: str) -> list[str]:
    """The conditions of a check that must all hold."""
    inside = _CHECK.fullmatch(definition)
    return [] if inside is None else _conjuncts(inside[1])


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
