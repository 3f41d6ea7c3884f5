"""How the adapter gets at this contract: opening sessions on a shelf in the workdir."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.reference_impl.session import Implementation, OpenRequest, Session, StateWanted
from shelf_once.reference.shelf import Service, Store


@dataclass(frozen=True, slots=True)
class ShelfOnce(Implementation):
    """Implements `session.Implementation`."""

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        store = Store(request.workdir)
        if request.state is StateWanted.FRESH:
            store.make()
        return Service(store)


def implementation(*, mutant: str | None = None) -> ShelfOnce:
    """The implementation."""
    return ShelfOnce()
