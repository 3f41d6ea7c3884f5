"""The kinds of lexemes that a block of rows draws from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from holdfast.vectors.jcs.construct.reasons import Reason


class Segment(IntEnum):
    """A pool of lexemes of one kind. Every profile accepts them all, but for the last four."""

    THRESHOLD = 0
    SHORTEST = 1
    STRATA = 2
    TIES = 3
    SPELLED = 4
    INTEGERS = 5
    HUMAN = 6
    TEXT = 7
    ESCAPED = 8
    RAW = 9
    UNNORMALISED = 10
    BODY = 11
    LITERALS = 12
    ASCII = 13
    SMALL = 14
    LARGE = 15
    UNSAFE = 16
    PRECISE = 17
    UNDERFLOW = 18
    NONCHARACTER = 19


# The reason for which a strict profile refuses an accepted lexeme of these segments.
CONTESTED = {
    Segment.UNSAFE: Reason.UNSAFE_INTEGER,
    Segment.PRECISE: Reason.NUMBER_TOO_PRECISE,
    Segment.UNDERFLOW: Reason.NUMBER_UNDERFLOW,
    Segment.NONCHARACTER: Reason.NONCHARACTER,
}


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One value in four spellings: the canonical one first. `reasons` has a `Reason.code` or 0 for each of them."""

    texts: tuple[bytes, ...]
    reasons: tuple[int, ...] = (0, 0, 0, 0)
