"""What implementations have in common that claim all of their contract, and where a planted bug enters them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from holdfast.reference_impl.mutants import find
from holdfast.specs import version_of

_Factory = TypeVar("_Factory")


class Whole:
    """Members of `session.Implementation`; its heirs open sessions and name their contract."""

    __slots__ = ()
    contract: ClassVar[str]

    @property
    def version(self) -> str:
        """See `session.Implementation`."""
        return version_of(self.contract)

    @property
    def not_claimed(self) -> Mapping[str, str]:
        """See `session.Implementation`. Everything is claimed."""
        return {}

    def shut_down(self) -> None:
        """See `session.Implementation`. Sessions leave nothing behind."""


def planted(reference: _Factory, mutant: str | None) -> _Factory:
    """The factory, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    if mutant is None:
        return reference
    changed: _Factory = find(mutant).apply(reference)
    return changed
