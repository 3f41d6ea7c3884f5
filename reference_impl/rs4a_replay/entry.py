"""How the adapter gets at this contract: opening sessions on either store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import ClassVar

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.opening import Opened, Opening
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Parts, Service, Use
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, Settings, StoreKind, load_settings
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.rs4a_replay.validator import Validator
from holdfast.reference_impl.rs4a_replay.verifier import Verifier
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
    openings: dict[str, Opening] = field(default_factory=dict)

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        settings, patience = load_settings(request.config), Patience()
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
            self.openings[kind] = module.Opening()
        return self.openings[kind]

    def _service(self, request: OpenRequest, settings: Settings, patience: Patience, store: Opened) -> Session:
        ports, methods = store.ports, kept_terms(CONTRACT).methods
        keys, verifier = Keys(settings.keys), Verifier()
        reader = Reader(methods["register"].args, keys)
        failpoints = store.failpoints(request.workdir, patience)
        if store.use is Use.LABORATORY:
            failpoints.watch(ports.store, verifier)
        parts = Parts(
            contract=kept_terms(CONTRACT),
            settings=settings,
            keys=keys,
            reader=reader,
            validator=Validator(settings, reader, keys),
            registrar=Registrar(settings, ports, verifier),
            authority=Authority(settings, ports, keys, methods["issue_nonce"].args),
            custody=Custody(settings, ports, methods["resolve_status"].args),
            ports=ports,
            operator=store.operator,
            failpoints=failpoints,
            patience=patience,
            server=store.server,
            use=store.use,
            place=store.place,
        )
        return Service(parts, now=request.now)


def _kind(config: Mapping[str, str], settings: Settings) -> str:
    """The first word of the module that opens the store of this config."""
    postgres = settings.store is StoreKind.POSTGRES
    live = postgres and "cluster" not in config and config.get("laboratory") != LABORATORY
    return _LIVE if live else settings.store.value


def implementation(*, mutant: str | None = None) -> Rs4aReplay:  # noqa: ARG001 - a patch is made at import
    """The implementation."""
    return Rs4aReplay()
