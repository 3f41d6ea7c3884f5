"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from holdfast.reference_impl.terms import reasons
from holdfast.reference_impl.values import values_of

CONTRACT = "jcs"
Reason = reasons(CONTRACT)


@unique
class Profile(Enum):
    """Decides the topics that RFC 8785 leaves open."""

    CORE = "core"
    I_JSON_STRICT = "i-json-strict"
    SAFE_INT = "safe-int"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a document is refused, and where in it: `offset` is in bytes from 0."""

    reason: Enum
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
    """The limits as the contract has them."""
    values = values_of(CONTRACT, {})
    return Limits(*(values[name] for name in ("max_safe_integer", "max_significant_digits", "max_depth")))
