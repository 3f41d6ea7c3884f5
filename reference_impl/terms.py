"""Reads the vocabulary and the values of an implementation from the contract."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from holdfast.reference_impl.session import OpenError
from holdfast.specs import Contract

_Value = TypeVar("_Value", int, str)
_CALLED = {int: "an integer", str: "text"}


class TermsError(Exception):
    """The contract and its package here have different names."""


def hold_to_contract(contract: str, reasons: type[Enum], declared: Iterable[str]) -> None:
    """Hold an enum of reasons to the contract's closed list. Raises TermsError."""
    ours, theirs = {reason.value for reason in reasons}, set(declared)
    if ours != theirs:
        raise TermsError(
            f"reasons of {contract} differ: only here {sorted(ours - theirs)}, only in the contract "
            f"{sorted(theirs - ours)}; bring terms.py in line with contract.yaml"
        )


def value_of(contract: Contract, name: str, kind: type[_Value]) -> _Value:
    """A parameter's value. Raises OpenError when it is of another kind."""
    value = contract.parameters[name].value
    if not isinstance(value, kind):
        raise OpenError(f"parameter {name}: expected {_CALLED[kind]} in contract.yaml, got {value!r}")
    return value
