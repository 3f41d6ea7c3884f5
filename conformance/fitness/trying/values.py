"""Values that a column may take: what its type, its checks and the contract's words suggest, the likeliest first."""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from holdfast.conformance.fitness.criteria.spelling import RANGE
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.trying.tables import Check, Column

# Values of a pattern that fixes the characters of each place: `^lrk:[0-9a-f]{64}$`, and nothing with alternatives
_PLAIN = r"[^\\^$.|?*+()\[\]{}]"
_ATOM = re.compile(
    rf"(?:\[(?P<set>[^\\^\[\]][^\\\[\]]*)\]|\\(?P<escaped>[^\w\s])|(?P<plain>{_PLAIN}))"
    r"(?:\{(?P<least>[0-9]{1,3})(?:(?P<comma>,)(?P<most>[0-9]{1,3})?)?\}|(?P<many>[+*?]))?"
)
# The number of places where a pattern leaves it open: enough to differ by, and not too long for a column.
_ENOUGH = 16
# A pattern with fewer values than this is a list of words rather than a form.
_ROOMY = 2**32


@dataclass(frozen=True, slots=True)
class Pattern:
    """For each place of a value, its possible characters in their order."""

    places: tuple[str, ...]

    @property
    def roomy(self) -> bool:
        """Whether values made of different numbers differ."""
        return math.prod(map(len, self.places)) >= _ROOMY

    def value(self, digits: Callable[[int], str]) -> str:
        """The value whose open places hold `digits`, as far as they can."""
        drawn = iter(digits(sum(len(place) > 1 for place in self.places)))
        return "".join(place if len(place) == 1 else _drawn(place, next(drawn)) for place in self.places)


def pattern_of(text: str) -> Pattern | None:
    """The open places of a pattern with both anchors; None for a pattern of another form."""
    if not (text.startswith("^") and text.endswith("$")):
        return None
    inside, place, found = text[1:-1], 0, []
    while place < len(inside):
        atom = _ATOM.match(inside, place)
        if atom is None:
            return None
        characters = RANGE.sub(_span, atom["set"]) if atom["set"] else atom["escaped"] or atom["plain"]
        if not characters:
            return None
        found += ["".join(dict.fromkeys(characters))] * _times(atom)
        place = atom.end()
    return Pattern(tuple(found)) if found else None


def _span(ends: re.Match[str]) -> str:
    return "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1)))


def _drawn(place: str, digit: str) -> str:
    """The digit itself where it may stand there, so that keys of several columns stay alike."""
    return digit if digit in place else place[ord(digit) % len(place)]


def _times(atom: re.Match[str]) -> int:
    """How often: what may be left out is, so that another spelling with it can be tried; sets have room to differ."""
    least = {"?": 0, "*": 0, "+": 1, None: 1}[atom["many"]] if atom["least"] is None else int(atom["least"])
    if atom["set"] is None or not (atom["comma"] or atom["many"] in ("*", "+")):
        return least
    return max(least, min(int(atom["most"] or _ENOUGH), _ENOUGH))


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes of SQLite, by their hexadecimal digits."""

    hex: str

    @classmethod
    def of(cls, value: str | Blob) -> Blob:
        """The bytes of a text; of bytes these."""
        return value if isinstance(value, Blob) else cls(value.encode().hex())


# From a number to the text of a value.
Shape: TypeAlias = Callable[[int], str | Blob]

# By these a reader of a live table, or of a log, can distinguish these rows from others.
PREFIX = "holdfast-probe-"
_HASHES = (*KEYS, "deployed_artifact_hash")
# What is shorter than this cannot hold the prefix and be unique.
_ROOM = 32
# {hex:22} in a value of the policy: as many hexadecimal digits, 64 at most.
_SOME_DIGITS = re.compile(r"\{hex:([1-9]|[1-5][0-9]|6[0-4])\}")


def digest_of(number: int) -> str:
    """64 random lower-case hexadecimal digits; there are letters among them."""
    return hashlib.sha256(f"{PREFIX}{number}".encode()).hexdigest()


def sample_shape(value: Any) -> Callable[[int], str]:
    """A value of the policy: in a text, {hex}, {hex:N}, {uuid} and {number} stand for what differs between rows."""
    if not isinstance(value, str):
        return _always(json.dumps(value))

    def filled(number: int) -> str:
        digits, text = digest_of(number), value.replace("{number}", str(number))
        text = text.replace("{hex}", digits).replace("{uuid}", str(uuid.UUID(digits[:32])))
        return _SOME_DIGITS.sub(lambda mark: digits[: int(mark[1])], text)

    return filled


def _always(text: str) -> Callable[[int], str]:
    return lambda _number: text


def _long(number: int) -> str:
    return digest_of(number) + digest_of(-number)


# As samples of a policy, or as shapes.
_NAMED = f"{PREFIX}{{hex:24}}"
_TEXTS: tuple[str | Shape, ...] = (
    *("{hex}", "{uuid}", "sha256:{hex}", "{hex:32}", "{hex:40}", _long),
    *("v1:{hex}", "{instant}", "{day}", "{number}", "https://holdfast.invalid/{hex:24}"),
    *(lambda number: digest_of(number).upper(), "probe{number}", "{}"),
)
_TIMES = ("{now}", "9999-01-01", "infinity", "2000-01-01")
_BY_TYPE: Mapping[str, tuple[str | Shape, ...]] = {
    "uuid": ("{uuid}",),
    "bytea": ("\\x{hex}", "\\x{hex:32}", "\\x{hex:40}", "\\x{hex}{hex:32}", "\\x{hex}{hex}"),
    "bool": ("true", "false"),
    **dict.fromkeys(("json", "jsonb"), ('{"probe": {number}}', "{}", "[]", '"probe"')),
    "interval": ("1 day", "1000 years", "1 second"),
    # TEST-NET-1 of RFC 5737.
    **dict.fromkeys(("inet", "cidr"), (lambda number: f"192.0.2.{number % 256}",)),
    "xml": ("<probe/>",),
    # A column of SQLite for bytes; without a type it takes texts as well.
    "blob": (*_TEXTS, lambda number: Blob(digest_of(number))),
    **dict.fromkeys(("bit", "varbit"), ("1",)),
}


def shapes_of(word: str, column: Column, checks: tuple[Check, ...], operations: tuple[str, ...]) -> tuple[Shape, ...]:
    """Everything worth trying for a column, the likeliest first. `word` is the contract's for it, or its own name."""
    # Once for all shapes: a row must be the same whenever it is made.
    now = datetime.now(UTC)
    moments = {"{now}": now.isoformat(), "{instant}": f"{now:%Y-%m-%dT%H:%M:%SZ}", "{day}": f"{now:%Y-%m-%d}"}
    made: list[Shape] = [*map(_always, operations)] if word == "operation" else []
    shapes = _of_type(word, column, checks)
    made += [sample_shape(moments.get(each, each)) if isinstance(each, str) else each for each in shapes]
    return tuple(made) if column.length is None else tuple(_cut(shape, column.length) for shape in made)


def _of_type(word: str, column: Column, checks: tuple[Check, ...]) -> Iterable[str | Shape]:
    texts = [text for check in checks for text in check.literals if text]
    literals: list[str | Shape] = [*map(_always, texts)]
    if column.labels:
        return [*map(_always, column.labels)]
    if column.category == "S":
        patterns = [pattern for text in texts if (pattern := pattern_of(text)) is not None]
        roomy, few = ([_of_pattern(each) for each in patterns if each.roomy is wanted] for wanted in (True, False))
        place = 6 if word in _HASHES else 0
        return (*roomy, *_TEXTS[:place], _NAMED, *_TEXTS[place:], *literals, *few)
    if column.category == "N" or column.type == "affine":
        known = (number for check in checks for number in check.numbers)
        mentioned = (str(near) for number in known for near in (number, number + 1, number - 1))
        numbers: list[str | Shape] = ["{number}", *mentioned, "1", "0", "-1", "100"]
        numbers.append(lambda number: str(1024 * number))
        plain: tuple[str | Shape, ...] = (*_TEXTS, _NAMED, *literals) if column.type == "affine" else ()
        return (*plain, *numbers) if word in (*KEYS, NONCE, *BINDINGS) else (*numbers, *plain)
    if column.category == "A":
        return ("{}", "{1}", "{probe}")
    if column.category == "D":
        return (*_TIMES, *literals)
    if column.category == "R":
        return (lambda number: f"[{number},{number + 1})", "empty")
    return (*_BY_TYPE.get(column.type, ()), "probe", "1", "{}", "empty", "(0,0)", *literals)


def _of_pattern(pattern: Pattern) -> Shape:
    def digits(number: int, count: int) -> str:
        known = _long(number)
        return (known * (count // len(known) + 1))[:count]

    return lambda number: pattern.value(lambda count: digits(number, count))


def _cut(shape: Shape, length: int) -> Shape:
    """What does not fit is made of digits only, so that few of them still differ."""

    def fitting(number: int) -> str | Blob:
        text = shape(number)
        if isinstance(text, Blob) or len(text) <= length:
            return text
        return digest_of(number)[:length] if length < _ROOM else text[:length]

    return fitting
