"""The marks between values: punctuation with whitespace around it. The same fragments in every block."""

from __future__ import annotations

from enum import IntEnum

from holdfast.vectors.jcs.construct.dice import Dice

# How many forms each mark has; the first is the canonical one, without whitespace.
FORMS = 64
_WHITESPACE = (" ", "\t", "\n", "\r")
_SEED = 8785


class Mark(IntEnum):
    """A mark; form f of it is fragment `mark.fragment + f`."""

    NOTHING = 0
    SPACE = 1  # whitespace alone; only the first form is empty
    COMMA = 2
    COLON = 3
    ARRAY = 4
    ARRAY_END = 5
    OBJECT = 6
    OBJECT_END = 7
    QUOTE = 8  # never with whitespace: it is the end of a string that is put together from pieces

    @property
    def fragment(self) -> int:
        """The number of its first form."""
        return self.value * FORMS


def marks() -> list[bytes]:
    """All forms of all marks, mark after mark."""
    dice = Dice(_SEED)
    made = []
    for mark, text in zip(Mark, ("", "", ",", ":", "[", "]", "{", "}", '"'), strict=True):
        for form in range(FORMS):
            before = behind = ""
            if mark is Mark.SPACE and form:
                before = _space(dice, 1)
            elif form and mark not in (Mark.NOTHING, Mark.SPACE, Mark.QUOTE):
                before, behind = _space(dice, 0), _space(dice, 0)
            made.append((before + text + behind).encode("ascii"))
    return made


def _space(dice: Dice, least: int) -> str:
    # Mostly short, sometimes an indented line.
    if dice.one_in(6):
        return dice.pick(("\n", "\r\n")) + " " * dice.between(0, 8)
    return "".join(dice.pick(_WHITESPACE) for _ in range(max(least, dice.between(-1, 2))))
