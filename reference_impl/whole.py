"""The common part of implementations that claim all of their contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from holdfast.specs import version_of


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
