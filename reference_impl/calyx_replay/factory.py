"""The parts that a mailbox is built from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.calyx_replay.codec import Codec
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.failpoints import Failpoints
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.service import Parts
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import CONTRACT
from holdfast.reference_impl.calyx_replay.timing import Window
from holdfast.reference_impl.patience import Patience
from holdfast.specs import kept_terms


def make_parts(root: Path, config: Mapping[str, str], *, mutant: str | None = None) -> Parts:
    """All parts of one mailbox. Raises OpenError."""
    contract, settings = kept_terms(CONTRACT), load_settings(config)
    codec, patience, window = Codec(settings), Patience(), Window(settings)
    store = Store(Location(root, settings), settings, patience)
    pruning = Pruning(settings, store, contract.methods["prune"].args)
    mailbox = Mailbox(codec, window, store, pruning, contract.methods["accept"].args)
    migration = Migration(settings, codec, mailbox, store)
    return Parts(
        contract=contract,
        settings=settings,
        codec=codec,
        store=store,
        pruning=pruning,
        mailbox=mailbox,
        migration=migration,
        failpoints=Failpoints(root, patience),
        patience=patience,
        command_line=CommandLine(root, config, mutant),
    )
