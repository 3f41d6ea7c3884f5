"""Conditions of a CHECK whose text shows that a key has one spelling only.

Probes try a few other spellings; that there is no further one only a text can show. What is not one of the forms
below may hold as well; that cannot be decided from here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

# What a reason suggests for another form.
WRITE_AS = "~ '^[0-9a-f]{64}$'"
# Characters that mean themselves in a pattern, and those that do between brackets.
_PLAIN = r"[A-Za-z0-9_:/@=-]"
_SET = r"\[([A-Za-z0-9_:/@=.+-]+)\]"
# Nothing is optional and nothing is repeated without a number, so that each place of a key has its characters.
_ATOM = re.compile(rf"(?:{_SET}|{_PLAIN})(?:\{{[1-9][0-9]*\}})?")
_ALPHABETS = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_UNKNOWN = "?"
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


def is_of_one_case(inside: str) -> bool:
    """Whether what stands between brackets names single characters and ranges, and no letter in both cases."""
    if re.fullmatch(_SET, f"[{inside}]") is None:
        return False
    named = "".join(_characters(inside))
    return _UNKNOWN not in named and not any(each.isalpha() and each.swapcase() in named for each in named)


def _characters(inside: str) -> Iterator[str]:
    """Every character that brackets name; unknown are those of a range that goes beyond one alphabet."""
    place = 0
    while place < len(inside):
        if inside[place + 1 : place + 2] != "-" or place + 2 >= len(inside):
            yield inside[place]
            place += 1
            continue
        first, last = inside[place], inside[place + 2]
        alphabet = next((each for each in _ALPHABETS if first in each and last in each), "")
        yield alphabet[alphabet.find(first) : alphabet.find(last) + 1] or _UNKNOWN
        place += 3


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
