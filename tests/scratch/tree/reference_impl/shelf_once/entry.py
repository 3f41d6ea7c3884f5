"""How the adapter gets at this contract: opening sessions on a shelf in the workdir."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.reference_impl.shelf_once.factory import CONTRACT, REFERENCE, Factory

from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted
from holdfast.reference_impl.whole import Whole


@dataclass(frozen=True, slots=True)
class ShelfOnce(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        store = self.factory.store(request.workdir)
        if request.state is StateWanted.FRESH:
            store.make()
        return self.factory.service(store, self.factory.settings(request.config))


def implementation(*, mutant: str | None = None) -> ShelfOnce:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return ShelfOnce(planted(REFERENCE, mutant))
