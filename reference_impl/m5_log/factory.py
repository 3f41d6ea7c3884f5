"""The parts that a store is built from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.m5_log.authority import Authorities
from holdfast.reference_impl.m5_log.checkpoints import Checkpoints
from holdfast.reference_impl.m5_log.command_line import CommandLine
from holdfast.reference_impl.m5_log.credentials import TrustFiles, Verifier
from holdfast.reference_impl.m5_log.failpoints import Failpoints
from holdfast.reference_impl.m5_log.location import Location
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.observing import Observing
from holdfast.reference_impl.m5_log.opening import Opening
from holdfast.reference_impl.m5_log.operations import OpCodec
from holdfast.reference_impl.m5_log.replay import Replay
from holdfast.reference_impl.m5_log.service import Parts
from holdfast.reference_impl.m5_log.settings import load_settings
from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.reference_impl.m5_log.state import Snapshots
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import CONTRACT
from holdfast.reference_impl.m5_log.verify import Verify
from holdfast.reference_impl.m5_log.witness import Witness
from holdfast.specs import kept_terms


def make_parts(root: Path, config: Mapping[str, str], *, mutant: str | None = None, configured: bool = True) -> Parts:
    """All parts of one store. `configured` says whether there is one. Raises OpenError."""
    settings = load_settings(config)
    location, signatures = Location(root, settings, configured=configured), Signatures()
    codec, verifier = OpCodec(settings, signatures), Verifier(signatures)
    witness, trust = Witness(location.witness), TrustFiles(location.trust, location.status)
    store = Store(location, Opening(location, settings, witness), witness)
    snapshots = Snapshots()
    checkpoints = Checkpoints(snapshots)
    replay = Replay(codec, checkpoints, Authorities(verifier, trust))
    log = Log(store, codec, verifier, trust, checkpoints, replay)
    verify = Verify(settings, store, witness, codec, verifier, trust, checkpoints, snapshots, replay)
    return Parts(
        contract=kept_terms(CONTRACT),
        store=store,
        log=log,
        replay=replay,
        checkpoints=checkpoints,
        snapshots=snapshots,
        verify=verify,
        observing=Observing(location, store, log, replay, checkpoints, snapshots, verify),
        failpoints=Failpoints(root),
        command_line=CommandLine(root, config, mutant),
    )
