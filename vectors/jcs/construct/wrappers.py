"""Wrappers around the innermost part of a document: an array or an object with one hole in it."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.marks import FORMS, Mark
from holdfast.vectors.jcs.construct.segments import Lexeme

# How many a block has. Opening and closing of a wrapper have the same spelling, so members may go from one to the
# other.
WRAPPERS = 128
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Hole:
    """Makes wrappers. Every wrapper adds one level."""

    def __init__(self, dice: Dice, marks: list[bytes], siblings: list[Lexeme]) -> None:
        self._dice = dice
        self._marks = marks
        self._siblings = siblings

    def wrappers(self) -> tuple[list[Lexeme], list[Lexeme]]:
        """The openings and the closings."""
        openings: list[Lexeme] = []
        closings: list[Lexeme] = []
        for _ in range(WRAPPERS):
            pairs = list(self._array() if self._dice.one_in(2) else self._object())
            for made, side in ((openings, 0), (closings, 1)):
                first, second, third, fourth = (pair[side] for pair in pairs)
                made.append(Lexeme((first, second, third, fourth)))
        return openings, closings

    def _mark(self, mark: Mark, spelling: int) -> bytes:
        # The first spelling is canonical, the second has no whitespace either.
        return self._marks[mark.fragment + (self._dice.below(FORMS) if spelling > 1 else 0)]

    def _array(self) -> Iterator[tuple[bytes, bytes]]:
        before = [self._dice.pick(self._siblings) for _ in range(self._dice.between(-2, 2))]
        after = [self._dice.pick(self._siblings) for _ in range(self._dice.between(-2, 2))]
        for spelling in range(4):
            opening, closing = self._mark(Mark.ARRAY, spelling), b""
            for sibling in before:
                opening += sibling.texts[spelling] + self._mark(Mark.COMMA, spelling)
            for sibling in after:
                closing += self._mark(Mark.COMMA, spelling) + sibling.texts[spelling]
            yield opening, closing + self._mark(Mark.ARRAY_END, spelling)

    def _object(self) -> Iterator[tuple[bytes, bytes]]:
        # A prefix sorts before the name, and what begins with the name after it (RFC 8785 section 3.2.3).
        name = "".join(self._dice.pick(_LETTERS) for _ in range(self._dice.between(5, 8)))
        low = (name[: self._dice.between(1, 3)], self._dice.pick(self._siblings), self._dice.one_in(3))
        high = (name + "-after", self._dice.pick(self._siblings), self._dice.one_in(3))
        for spelling in range(4):
            moved = spelling > 1 and self._dice.one_in(2)
            before = [each for each in (low,) if each[2]]
            after = [each for each in (high,) if each[2]]
            if moved:
                before, after = after, before
            opening, closing = self._mark(Mark.OBJECT, spelling), b""
            for text, sibling, _ in before:
                opening += self._member(text, spelling) + sibling.texts[spelling] + self._mark(Mark.COMMA, spelling)
            opening += self._member(name, spelling)
            for text, sibling, _ in after:
                closing += self._mark(Mark.COMMA, spelling) + self._member(text, spelling) + sibling.texts[spelling]
            yield opening, closing + self._mark(Mark.OBJECT_END, spelling)

    def _member(self, name: str, spelling: int) -> bytes:
        letters = (f"\\u{ord(each):04x}" if spelling > 1 and self._dice.one_in(6) else each for each in name)
        return f'"{"".join(letters)}"'.encode("ascii") + self._mark(Mark.COLON, spelling)
