"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, unique

from holdfast.reference_impl.terms import hold_to_contract
from holdfast.reference_impl.values import value_of
from holdfast.specs import kept_terms

CONTRACT = "jcs"


@unique
class Reason(Enum):
    """The closed list of refusal reasons."""

    REQUEST_MALFORMED = "REQUEST_MALFORMED"
    INVALID_UTF8 = "INVALID_UTF8"
    BYTE_ORDER_MARK = "BYTE_ORDER_MARK"
    SYNTAX = "SYNTAX"
    DUPLICATE_NAME = "DUPLICATE_NAME"
    LONE_SURROGATE = "LONE_SURROGATE"
    NUMBER_OUT_OF_RANGE = "NUMBER_OUT_OF_RANGE"
    DEPTH_EXCEEDED = "DEPTH_EXCEEDED"
    NONCHARACTER = "NONCHARACTER"
    NUMBER_TOO_PRECISE = "NUMBER_TOO_PRECISE"
    NUMBER_UNDERFLOW = "NUMBER_UNDERFLOW"
    UNSAFE_INTEGER = "UNSAFE_INTEGER"
    NOT_CANONICAL = "NOT_CANONICAL"


@unique
class Profile(Enum):
    """Decides the topics that RFC 8785 leaves open."""

    CORE = "core"
    I_JSON_STRICT = "i-json-strict"
    SAFE_INT = "safe-int"


def check_reasons(declared: Iterable[str]) -> None:
    """Hold the enum to the contract's closed list. Raises TermsError."""
    hold_to_contract(CONTRACT, Reason, declared)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a document is refused, and where in it: `offset` is in bytes from 0."""

    reason: Reason
    offset: int

    def __str__(self) -> str:
        return f"{self.reason.value} at byte {self.offset}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the contract. `max_depth` is in levels of arrays and objects, a scalar has none."""

    max_safe_integer: int
    max_significant_digits: int
    max_depth: int


def load_limits() -> Limits:
    """The limits as the contract has them. Raises OpenError when one is no number, TermsError for other reasons."""
    contract = kept_terms(CONTRACT)
    check_reasons(contract.reasons)

    def number(name: str) -> int:
        return value_of(contract, name, int)

    return Limits(number("max_safe_integer"), number("max_significant_digits"), number("max_depth"))
