"""The parts that a mailbox is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Factory:
    """The classes of the parts that tests replace by those of a mailbox of another style."""

    store: type[Store] = Store
    pruning: type[Pruning] = Pruning
    mailbox: type[Mailbox] = Mailbox
    migration: type[Migration] = Migration
    command_line: type[CommandLine] = CommandLine

    def parts(self, root: Path, config: Mapping[str, str], *, mutant: str | None = None) -> Parts:
        """All parts of one mailbox. Raises OpenError."""
        contract, settings = kept_terms(CONTRACT), load_settings(config)
        codec, patience, window = Codec(settings), Patience(), Window(settings)
        store = self.store(Location(root, settings), settings, patience)
        pruning = self.pruning(settings, store, contract.methods["prune"].args)
        mailbox = self.mailbox(codec, window, store, pruning, contract.methods["accept"].args)
        migration = self.migration(settings, codec, mailbox, store)
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
            command_line=self.command_line(root, config, mutant),
        )


REFERENCE = Factory()
