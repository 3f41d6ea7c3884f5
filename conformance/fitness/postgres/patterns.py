"""Values of a pattern that fixes the characters of each place: `^lrk:[0-9a-f]{64}$`, and nothing with alternatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
        room = 1
        for place in self.places:
            room *= len(place)
        return room >= _ROOMY

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
        characters = "".join(_characters(atom["set"])) if atom["set"] else atom["escaped"] or atom["plain"]
        if not characters:
            return None
        found += ["".join(dict.fromkeys(characters))] * _times(atom)
        place = atom.end()
    return Pattern(tuple(found)) if found else None


def _drawn(place: str, digit: str) -> str:
    """The digit itself where it may stand there, so that keys of several columns stay alike."""
    return digit if digit in place else place[ord(digit) % len(place)]


def _times(atom: re.Match[str]) -> int:
    """How often: what may be left out is, so that another spelling with it can be tried; sets have room to differ."""
    least = {"?": 0, "*": 0, "+": 1, None: 1}[atom["many"]] if atom["least"] is None else int(atom["least"])
    if atom["set"] is None or not (atom["comma"] or atom["many"] in ("*", "+")):
        return least
    return max(least, min(int(atom["most"] or _ENOUGH), _ENOUGH))


def _characters(inside: str) -> Iterator[str]:
    """Every character that brackets name; a hyphen at an end is one."""
    place = 0
    while place < len(inside):
        if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside):
            yield from map(chr, range(ord(inside[place]), ord(inside[place + 2]) + 1))
            place += 3
        else:
            yield inside[place]
            place += 1
