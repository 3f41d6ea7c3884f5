"""The vocabulary of an implementation: its reasons are those of the contract, and a refusal has one of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from holdfast.reference_impl.answers import Refused
from holdfast.specs import kept_terms


class Reasons(Protocol):
    """An enum of the refusal reasons of a contract."""

    def __getattr__(self, name: str) -> Enum:
        """The reason of this name. Raises AttributeError."""

    def __call__(self, value: str) -> Enum:
        """The same. Raises ValueError."""


def reasons(contract: str) -> Reasons:
    """The closed list of contract.yaml."""
    make: Any = Enum
    made: Reasons = make("Reason", {name: name for name in kept_terms(contract).reasons})
    return made


class RefusedError(Exception):
    """An operation is refused. `data` is what the contract lets the reason carry; the text is for humans."""

    def __init__(self, reason: Enum, detail: str = "", data: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
        self.data = data

    def answer(self) -> Refused:
        """The refusal as the adapter answers it."""
        return Refused(self.reason.value, self.data, self.detail)
