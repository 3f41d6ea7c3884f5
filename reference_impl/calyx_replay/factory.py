"""The parts that a mailbox is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.reference_impl.calyx_replay.codec import Codec
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.delivery import Delivery
from holdfast.reference_impl.calyx_replay.failpoints import Failpoints
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.service import Parts, Service
from holdfast.reference_impl.calyx_replay.settings import Settings, load_settings
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import CONTRACT
from holdfast.reference_impl.calyx_replay.timing import SeenAt, Window
from holdfast.reference_impl.patience import Patience
from holdfast.specs import kept_terms


def _as_loaded(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded settings. The defaults are the reference."""

    codec: type[Codec] = Codec
    signatures: type[Signatures] = Signatures
    window: type[Window] = Window
    seen_at: type[SeenAt] = SeenAt
    location: type[Location] = Location
    schema: type[Schema] = Schema
    store: type[Store] = Store
    delivery: type[Delivery] = Delivery
    pruning: type[Pruning] = Pruning
    mailbox: type[Mailbox] = Mailbox
    migration: type[Migration] = Migration
    provisioner: type[Provisioner] = Provisioner
    command_line: type[CommandLine] = CommandLine
    service: type[Service] = Service
    patience: type[Patience] = Patience
    loaded: Callable[[Settings], Settings] = field(default=_as_loaded)

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings for a session's config. Raises OpenError."""
        return self.loaded(load_settings(config))

    def parts(self, root: Path, config: Mapping[str, str], *, mutant: str | None = None) -> Parts:
        """All parts of one mailbox. Raises OpenError."""
        contract, settings = kept_terms(CONTRACT), self.settings(config)
        codec, patience, window = self.codec(settings), self.patience(), self.window(settings)
        location, delivery = self.location(root, settings), self.delivery()
        store = self.store(location, self.schema(), settings, patience, seen_at=self.seen_at())
        pruning = self.pruning(settings, store, contract.methods["prune"].args)
        mailbox = self.mailbox(
            codec, self.signatures(), window, store, delivery, pruning, contract.methods["accept"].args
        )
        migration = self.migration(settings, codec, mailbox, store)
        return Parts(
            contract=contract,
            settings=settings,
            codec=codec,
            store=store,
            delivery=delivery,
            pruning=pruning,
            mailbox=mailbox,
            migration=migration,
            failpoints=Failpoints(root, patience),
            patience=patience,
            command_line=self.command_line(root, config, mutant),
        )


REFERENCE = Factory()
