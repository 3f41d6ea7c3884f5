"""How the adapter gets at this contract: opening sessions on either store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import ClassVar

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.factory import REFERENCE, Factory
from holdfast.reference_impl.rs4a_replay.opening import Opened, Opening
from holdfast.reference_impl.rs4a_replay.service import Parts, Use
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, Settings, StoreKind
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenRequest, Session, SurfaceWanted
from holdfast.reference_impl.whole import Whole
from holdfast.specs import kept_terms

_LIVE = "live"
# See `registry.warm`.
LATER = tuple(f"holdfast.reference_impl.rs4a_replay.{kind}_opening" for kind in ("postgres", "sqlite"))


@dataclass(frozen=True, slots=True)
class Rs4aReplay(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE
    openings: dict[str, Opening] = field(default_factory=dict)

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        settings, patience = self.factory.settings(request.config), self.factory.patience()
        store = self._opening(_kind(request.config, settings)).open(request, settings, patience)
        if request.surface is SurfaceWanted.ABSENT:
            store = replace(store, ports=Ports(None, None))
        return self._service(request, settings, patience, store)

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        for opening in self.openings.values():
            opening.shut_down()

    def _opening(self, kind: str) -> Opening:
        """The opening of this kind. An adapter starts for every session, and one driver takes half of all imports."""
        if kind not in self.openings:
            module = import_module(f"holdfast.reference_impl.rs4a_replay.{kind}_opening")
            self.openings[kind] = module.Opening(self.factory)
        return self.openings[kind]

    def _service(self, request: OpenRequest, settings: Settings, patience: Patience, store: Opened) -> Session:
        ports = store.ports
        make, methods = self.factory, kept_terms(CONTRACT).methods
        keys, verifier = make.keys(settings.keys), make.verifier()
        reader = make.reader(methods["register"].args, keys)
        failpoints = store.failpoints(request.workdir, patience)
        if store.use is Use.LABORATORY:
            failpoints.watch(ports.store, verifier)
        parts = Parts(
            contract=kept_terms(CONTRACT),
            settings=settings,
            keys=keys,
            reader=reader,
            validator=make.validator(settings, reader, keys),
            registrar=make.registrar(settings, ports, verifier),
            authority=make.authority(settings, ports, keys, methods["issue_nonce"].args),
            custody=make.custody(settings, ports, methods["resolve_status"].args),
            ports=ports,
            operator=store.operator,
            failpoints=failpoints,
            patience=patience,
            server=store.server,
            use=store.use,
            place=store.place,
        )
        return make.service(parts, now=request.now)


def _kind(config: Mapping[str, str], settings: Settings) -> str:
    """The first word of the module that opens the store of this config."""
    postgres = settings.store is StoreKind.POSTGRES
    live = postgres and "cluster" not in config and config.get("laboratory") != LABORATORY
    return _LIVE if live else settings.store.value


def implementation(*, mutant: str | None = None) -> Rs4aReplay:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return Rs4aReplay(planted(REFERENCE, mutant))
