"""Why a document is refused, and by which profiles."""

from __future__ import annotations

from enum import StrEnum

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
