"""The parts that a store is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.reference_impl.m5_log.authority import Authorities, StoredAuthority
from holdfast.reference_impl.m5_log.checkpoints import Checkpoints
from holdfast.reference_impl.m5_log.command_line import CommandLine
from holdfast.reference_impl.m5_log.credentials import TrustFiles, Verifier
from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.failpoints import Failpoints
from holdfast.reference_impl.m5_log.location import Location
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.observing import Observing
from holdfast.reference_impl.m5_log.opening import Opening
from holdfast.reference_impl.m5_log.operations import OpCodec
from holdfast.reference_impl.m5_log.replay import Replay
from holdfast.reference_impl.m5_log.service import Parts, Service
from holdfast.reference_impl.m5_log.settings import Settings, load_settings
from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.reference_impl.m5_log.state import Fold, Snapshots
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import CONTRACT
from holdfast.reference_impl.m5_log.verify import Verify
from holdfast.reference_impl.m5_log.witness import Witness
from holdfast.specs import kept_terms


def _as_loaded(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded settings. The defaults are the reference."""

    signatures: type[Signatures] = Signatures
    codec: type[OpCodec] = OpCodec
    verifier: type[Verifier] = Verifier
    trust: type[TrustFiles] = TrustFiles
    authority: type[StoredAuthority] = StoredAuthority
    authorities: type[Authorities] = Authorities
    database: type[Database] = Database
    dag: type[Dag] = Dag
    fold: type[Fold] = Fold
    location: type[Location] = Location
    witness: type[Witness] = Witness
    opening: type[Opening] = Opening
    store: type[Store] = Store
    snapshots: type[Snapshots] = Snapshots
    checkpoints: type[Checkpoints] = Checkpoints
    replay: type[Replay] = Replay
    log: type[Log] = Log
    verify: type[Verify] = Verify
    observing: type[Observing] = Observing
    command_line: type[CommandLine] = CommandLine
    service: type[Service] = Service
    loaded: Callable[[Settings], Settings] = field(default=_as_loaded)

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings for a session's config. Raises OpenError."""
        return self.loaded(load_settings(config))

    def parts(
        self, root: Path, config: Mapping[str, str], *, mutant: str | None = None, configured: bool = True
    ) -> Parts:
        """All parts of one store. `configured` says whether there is one. Raises OpenError."""
        settings = self.settings(config)
        location, signatures = self.location(root, settings, configured=configured), self.signatures()
        codec, verifier = self.codec(settings, signatures), self.verifier(signatures)
        witness, trust = self.witness(location.witness), self.trust(location.trust, location.status)
        opening = self.opening(location, settings, witness, self.database, self.dag)
        store = self.store(location, opening, witness)
        snapshots = self.snapshots()
        checkpoints, authorities = self.checkpoints(snapshots), self.authorities(verifier, trust, self.authority)
        replay = self.replay(codec, checkpoints, authorities, self.fold)
        log = self.log(store, codec, verifier, trust, checkpoints, replay)
        verify = self.verify(settings, store, witness, codec, verifier, trust, checkpoints, snapshots, replay)
        return Parts(
            contract=kept_terms(CONTRACT),
            store=store,
            log=log,
            replay=replay,
            checkpoints=checkpoints,
            snapshots=snapshots,
            verify=verify,
            observing=self.observing(location, store, log, replay, checkpoints, snapshots, verify),
            failpoints=Failpoints(root),
            command_line=self.command_line(root, config, mutant),
        )


REFERENCE = Factory()
