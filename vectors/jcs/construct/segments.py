"""The kinds of lexemes that a block of rows draws from, and why a document is refused, and by which profiles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from holdfast.vectors.taxonomy import Profile


class Reason(StrEnum):
    """The reasons of contract `jcs` that a constructed document can have. A document has at most one."""

    INVALID_UTF8 = "INVALID_UTF8"
    BYTE_ORDER_MARK = "BYTE_ORDER_MARK"
    SYNTAX = "SYNTAX"
    DUPLICATE_NAME = "DUPLICATE_NAME"
    LONE_SURROGATE = "LONE_SURROGATE"
    NUMBER_OUT_OF_RANGE = "NUMBER_OUT_OF_RANGE"
    NONCHARACTER = "NONCHARACTER"
    NUMBER_TOO_PRECISE = "NUMBER_TOO_PRECISE"
    NUMBER_UNDERFLOW = "NUMBER_UNDERFLOW"
    UNSAFE_INTEGER = "UNSAFE_INTEGER"

    @property
    def code(self) -> int:
        """A number from 1 on; 0 stands for no reason."""
        return _CODES[self]

    @property
    def profiles(self) -> int:
        """The set of profiles that refuse for this reason, as the sum of `Profile.bit`."""
        return _PROFILES.get(self, _EVERY)


_CODES = {reason: code for code, reason in enumerate(Reason, 1)}
_EVERY = sum(profile.bit for profile in Profile)
_PROFILES = {
    Reason.NONCHARACTER: Profile.I_JSON_STRICT.bit,
    Reason.NUMBER_TOO_PRECISE: Profile.I_JSON_STRICT.bit,
    Reason.NUMBER_UNDERFLOW: Profile.I_JSON_STRICT.bit,
    Reason.UNSAFE_INTEGER: Profile.SAFE_INT.bit,
}
# By code: the set of profiles that refuse, and the text.
PROFILES_OF_CODE = (0, *(reason.profiles for reason in Reason))
TEXT_OF_CODE = (None, *(reason.value for reason in Reason))


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
