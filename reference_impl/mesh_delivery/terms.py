"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, unique

from holdfast.reference_impl.jcs.terms import Profile
from holdfast.reference_impl.terms import hold_to_contract, value_of
from holdfast.specs import kept_terms

CONTRACT = "mesh-delivery"


@unique
class Reason(Enum):
    """The closed list of refusal reasons."""

    REQUEST_MALFORMED = "REQUEST_MALFORMED"
    UNKNOWN_VALUE = "UNKNOWN_VALUE"
    REFERENCE_INVALID = "REFERENCE_INVALID"
    NUL_IN_FIELD = "NUL_IN_FIELD"
    META_INVALID = "META_INVALID"


@unique
class Field(Enum):
    """The members of a request that a refusal names."""

    DESTINATION_KIND = "destination_kind"
    DESTINATION_REF = "destination_ref"
    REPLY_TO = "reply_to"
    PRIORITY = "priority"
    META = "meta"


class RefusedError(Exception):
    """The request has no fingerprint. `field` is the member that is wrong."""

    def __init__(self, reason: Reason, field: Field) -> None:
        super().__init__(f"{reason.value} in {field.value}")
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Terms:
    """The values of the contract."""

    field_order: tuple[str, ...]
    separator: bytes
    destination_kinds: tuple[str, ...]
    priorities: tuple[str, ...]
    default_priority: str
    meta_profile: Profile


def check_reasons(declared: Iterable[str]) -> None:
    """Hold the enum to the contract's closed list. Raises TermsError."""
    hold_to_contract(CONTRACT, Reason, declared)


def read_terms() -> Terms:
    """The values as the contract has them. Raises OpenError when one is no text, TermsError for other reasons."""
    contract = kept_terms(CONTRACT)
    check_reasons(contract.reasons)

    def text(name: str) -> str:
        return value_of(contract, name, str)

    return Terms(
        field_order=tuple(text("field_order").split()),
        separator=bytes.fromhex(text("separator")),
        destination_kinds=tuple(text("destination_kinds").split()),
        priorities=tuple(text("priorities").split()),
        default_priority=text("default_priority"),
        meta_profile=Profile(text("meta_profile")),
    )
