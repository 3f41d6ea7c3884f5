"""How the adapter gets at this contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.mesh_delivery.fingerprint import fingerprints
from holdfast.reference_impl.mesh_delivery.negotiation import Negotiator
from holdfast.reference_impl.mesh_delivery.outbox import OUTBOX, Outbox, OutboxError
from holdfast.reference_impl.mesh_delivery.service import DeliveryFailpoints, Service
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, TEMPLATE, read_settings
from holdfast.reference_impl.postgres_names import session_database
from holdfast.reference_impl.session import Implementation, OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.specs import kept_terms

if TYPE_CHECKING:
    from holdfast.reference_impl.mesh_delivery.broker_opening import Opening
    from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService


@dataclass(frozen=True, slots=True)
class MeshDelivery(Implementation):
    """Implements `session.Implementation`."""

    openings: list[Opening] = field(default_factory=list)

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. Nothing but the broker needs workdir, clock and config."""
        settings = read_settings(request.config)

        def open_broker(now: datetime) -> BrokerService:
            if not self.openings:
                opening = import_module("holdfast.reference_impl.mesh_delivery.broker_opening")
                self.openings.append(opening.Opening())
            return self.openings[0].open(replace(request, now=now), settings)

        methods, negotiator = kept_terms(CONTRACT).methods, Negotiator()
        outbox, route = self._outbox(request), methods["accept"].route
        daemon = failpoints = None
        if outbox is not None and route is not None:
            daemon = Daemon(outbox, fingerprints(), route=route, settings=settings, log=negotiator.log, now=request.now)
            failpoints = DeliveryFailpoints(request.workdir)
            failpoints.watch(daemon)
        place = _place_of(request)
        session = Service(fingerprints(), negotiator, methods, daemon, failpoints, open_broker, request.now, place)
        if settings.listens:
            session.listen()
        if "cluster" in request.config and not settings.broker:
            # A session that has a broker to talk to is a daemon's. Any other one is, with files of its own, a broker's.
            session.open_broker()
        return session

    def _outbox(self, request: OpenRequest) -> Outbox | None:
        """The outbox of a session, made where that is fresh."""
        if request.surface is SurfaceWanted.ABSENT:
            return None
        outbox = Outbox(request.workdir / CONTRACT / OUTBOX)
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


def implementation(*, mutant: str | None = None) -> MeshDelivery:  # noqa: ARG001 - a patch is made at import
    """The implementation."""
    return MeshDelivery()
