"""The parts that an implementation is built from. A mutant is a factory with one part changed.

None stands for the class of the reference where that is loaded with the broker: a session that asks for fingerprints
alone needs no database driver, and one driver takes half of all imports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.reference_impl.jcs.factory import REFERENCE as JCS
from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.mesh_delivery.delivery_failpoints import DeliveryFailpoints
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.negotiation import Negotiator
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxSchema
from holdfast.reference_impl.mesh_delivery.service import Service
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, Settings, Terms, read_settings, read_terms
from holdfast.specs import kept_terms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.reference_impl.mesh_delivery.broker import Broker
    from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
    from holdfast.reference_impl.mesh_delivery.broker_http import BrokerHttp
    from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
    from holdfast.reference_impl.mesh_delivery.broker_schema import BrokerSchema
    from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService
    from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore
    from holdfast.servers.postgres.confined import ConfinedServer


def _as_loaded(terms: Terms) -> Terms:
    return terms


def _as_set(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and functions that may change what was loaded. The defaults are the reference."""

    fingerprinter: type[Fingerprinter] = Fingerprinter
    negotiator: type[Negotiator] = Negotiator
    outbox: type[Outbox] = Outbox
    outbox_schema: type[OutboxSchema] = OutboxSchema
    daemon: type[Daemon] = Daemon
    service: type[Service] = Service
    broker: type[Broker] | None = None
    broker_store: type[BrokerStore] | None = None
    broker_schema: type[BrokerSchema] | None = None
    jobs: type[Jobs] | None = None
    administrator: type[Administrator] | None = None
    broker_service: type[BrokerService] | None = None
    broker_http: type[BrokerHttp] | None = None
    confined_server: type[ConfinedServer] | None = None
    loaded: Callable[[Terms], Terms] = field(default=_as_loaded)
    configured: Callable[[Settings], Settings] = field(default=_as_set)

    def fingerprints(self) -> Fingerprinter:
        """What computes fingerprints. Raises OpenError, TermsError."""
        terms = self.loaded(read_terms())
        return self.fingerprinter(terms, JCS.build(terms.meta_profile))

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings of a session. Raises OpenError."""
        return self.configured(read_settings(config))

    def build(
        self,
        open_broker: Callable[[datetime], BrokerService] | None = None,
        now: datetime | None = None,
        *,
        outbox: Outbox | None = None,
        settings: Settings | None = None,
        workdir: Path | None = None,
        place: Mapping[str, str] | None = None,
    ) -> Service:
        """A session, with a daemon if there is an outbox. Raises OpenError, TermsError."""
        methods, negotiator = kept_terms(CONTRACT).methods, self.negotiator()
        daemon = failpoints = None
        route = methods["accept"].route
        if outbox is not None and settings is not None and workdir is not None and route is not None:
            assert now is not None
            daemon = self.daemon(
                outbox, self.fingerprints(), route=route, settings=settings, log=negotiator.log, now=now
            )
            failpoints = DeliveryFailpoints(workdir)
            failpoints.watch(daemon)
        return self.service(self.fingerprints(), negotiator, methods, daemon, failpoints, open_broker, now, place)


REFERENCE = Factory()
