"""Patterns of a CHECK, place by place: of PostgreSQL with both anchors, and of GLOB. What is not read is no pattern."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

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
