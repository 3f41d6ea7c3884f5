"""How the adapter gets at this contract: opening sessions on a shelf in the workdir."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.reference_impl.shelf_once.shelf import CONTRACT, Service, Store

from holdfast.reference_impl.session import OpenRequest, Session, StateWanted
from holdfast.reference_impl.whole import Whole


@dataclass(frozen=True, slots=True)
class ShelfOnce(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        store = Store(request.workdir)
        if request.state is StateWanted.FRESH:
            store.make()
        return Service(store)


def implementation(*, mutant: str | None = None) -> ShelfOnce:
    """The implementation."""
    return ShelfOnce()
