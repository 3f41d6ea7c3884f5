"""The vocabulary of an implementation: its reasons are those of the contract, and a refusal has one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from holdfast.reference_impl.answers import Refused


class TermsError(Exception):
    """The contract and its package here have different names."""


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


def hold_to_contract(contract: str, reasons: type[Enum], declared: Iterable[str]) -> None:
    """Hold an enum of reasons to the contract's closed list. Raises TermsError."""
    ours, theirs = {reason.value for reason in reasons}, set(declared)
    if ours != theirs:
        raise TermsError(
            f"reasons of {contract} differ: only here {sorted(ours - theirs)}, only in the contract "
            f"{sorted(theirs - ours)}; bring terms.py in line with contract.yaml"
        )
