"""How the adapter gets at this contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from holdfast.reference_impl.mesh_delivery.claims import not_claimed
from holdfast.reference_impl.mesh_delivery.factory import REFERENCE, Factory
from holdfast.reference_impl.mesh_delivery.outbox import OUTBOX, Outbox, OutboxError
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, TEMPLATE
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.postgres_names import session_database
from holdfast.reference_impl.session import OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.reference_impl.whole import Whole

if TYPE_CHECKING:
    from holdfast.reference_impl.mesh_delivery.broker_opening import Opening
    from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService


@dataclass(frozen=True, slots=True)
class MeshDelivery(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE
    openings: list[Opening] = field(default_factory=list)

    @property
    def not_claimed(self) -> Mapping[str, str]:
        """See `session.Implementation`."""
        return not_claimed()

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. Nothing but the broker needs workdir, clock and config."""
        settings = self.factory.settings(request.config)

        def open_broker(now: datetime) -> BrokerService:
            if not self.openings:
                opening = import_module("holdfast.reference_impl.mesh_delivery.broker_opening")
                self.openings.append(opening.Opening(self.factory))
            return self.openings[0].open(replace(request, now=now), settings)

        outbox = self._outbox(request)
        session = self.factory.build(
            open_broker,
            request.now,
            outbox=outbox,
            settings=settings,
            workdir=request.workdir,
            place=_place_of(request),
        )
        if settings.listens:
            session.listen(self.factory)
        if "cluster" in request.config and not settings.broker:
            # A session that has a broker to talk to is a daemon's. Any other one is, with files of its own, a broker's.
            session.open_broker()
        return session

    def _outbox(self, request: OpenRequest) -> Outbox | None:
        """The outbox of a session, made where that is fresh."""
        if request.surface is SurfaceWanted.ABSENT:
            return None
        outbox = self.factory.outbox(request.workdir / CONTRACT / OUTBOX, self.factory.outbox_schema())
        try:
            if request.state is StateWanted.FRESH:
                outbox.make()
        except (OSError, OutboxError) as error:
            raise OpenError(f"the outbox in the workdir cannot be made: {error}") from error
        return outbox

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        for opening in self.openings:
            opening.shut_down()


def _place_of(request: OpenRequest) -> Mapping[str, str] | None:
    """Which database is that of a session, on the server that the launcher names."""
    template = request.config.get(TEMPLATE)
    return None if template is None else {"database": session_database(template, request.workdir)}


def implementation(*, mutant: str | None = None) -> MeshDelivery:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return MeshDelivery(planted(REFERENCE, mutant))
