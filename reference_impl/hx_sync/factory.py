"""The parts that a device is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.reference_impl.hx_sync.algorithms import Algorithms
from holdfast.reference_impl.hx_sync.blobs import BlobCache, BlobCodec
from holdfast.reference_impl.hx_sync.command_line import CommandLine
from holdfast.reference_impl.hx_sync.commands import Commands
from holdfast.reference_impl.hx_sync.disk import Disk
from holdfast.reference_impl.hx_sync.envelope import Envelope, Nonces
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.forgotten import Forgotten, Windows
from holdfast.reference_impl.hx_sync.header import Headers
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.keys import VaultKeys
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import Nodes
from holdfast.reference_impl.hx_sync.objects import Objects
from holdfast.reference_impl.hx_sync.provision import Provisioner
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Contents, Records
from holdfast.reference_impl.hx_sync.s3 import connected
from holdfast.reference_impl.hx_sync.schema import Schema
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.hx_sync.settings import Settings, load_settings
from holdfast.reference_impl.hx_sync.storage import Store
from holdfast.reference_impl.hx_sync.terms import CONTRACT
from holdfast.reference_impl.hx_sync.views import Views, Winner
from holdfast.reference_impl.patience import Patience
from holdfast.specs import kept_terms


def _as_loaded(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded settings. The defaults are the reference."""

    instants: type[Instants] = Instants
    layout: type[Layout] = Layout
    keys: type[VaultKeys] = VaultKeys
    algorithms: type[Algorithms] = Algorithms
    headers: type[Headers] = Headers
    nonces: type[Nonces] = Nonces
    envelope: type[Envelope] = Envelope
    contents: type[Contents] = Contents
    records: type[Records] = Records
    codec: type[BlobCodec] = BlobCodec
    cache: type[BlobCache] = BlobCache
    disk: type[Disk] = Disk
    folder: type[FolderStore] = FolderStore
    schema: type[Schema] = Schema
    index: type[Index] = Index
    nodes: type[Nodes] = Nodes
    objects: type[Objects] = Objects
    windows: type[Windows] = Windows
    forgotten: type[Forgotten] = Forgotten
    ledger: type[Ledger] = Ledger
    merging: type[Merging] = Merging
    importing: type[Importing] = Importing
    publishing: type[Publishing] = Publishing
    forgetting: type[Forgetting] = Forgetting
    winner: type[Winner] = Winner
    views: type[Views] = Views
    provisioner: type[Provisioner] = Provisioner
    command_line: type[CommandLine] = CommandLine
    commands: type[Commands] = Commands
    service: type[Service] = Service
    patience: type[Patience] = Patience
    loaded: Callable[[Settings], Settings] = field(default=_as_loaded)

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings for a session's config. Raises OpenError."""
        return self.loaded(load_settings(config))

    def store(self, where: str | Path, layout: Layout, settings: Settings) -> Store:
        """The store in a folder, or at `s3://BUCKET/PREFIX`. Raises ValueError."""
        if isinstance(where, str):
            return connected(where, layout, max_object_bytes=settings.max_object_bytes)
        return self.folder(where, layout, self.disk(), max_object_bytes=settings.max_object_bytes)

    def parts(
        self,
        root: Path,
        config: Mapping[str, str],
        *,
        where: str | Path | None = None,
        mutant: str | None = None,
    ) -> Parts:
        """Everything for the devices below `root`; the store lies there too unless `where` says otherwise.

        Raises OpenError, ValueError.
        """
        settings = self.settings(config)
        layout = self.layout(settings.store_folder, settings.vault_id)
        store = self.store(root if where is None else where, layout, settings)
        instants, codec, patience = self.instants(), self.codec(settings), self.patience()
        envelope = self.envelope(settings, self.algorithms(), self.headers(instants), self.nonces())
        records = self.records(instants, self.contents())
        objects = self.objects(settings, layout, store, envelope, records, codec)
        ledger = self.ledger(instants)
        merging = self.merging(self.windows(instants), self.forgotten(), ledger)
        importing = self.importing(layout, store, objects, merging, ledger, patience)
        publishing = self.publishing(settings, layout, store, envelope, objects, records, codec, instants)
        nodes = self.nodes(root, self.schema(), settings, patience, self.disk()).using(self.index, self.cache)
        return Parts(
            contract=kept_terms(CONTRACT),
            settings=settings,
            keys=self.keys(),
            layout=layout,
            store=store,
            nodes=nodes,
            objects=objects,
            publishing=publishing,
            forgetting=self.forgetting(layout, envelope, objects, publishing, importing, ledger, instants),
            importing=importing,
            ledger=ledger,
            views=self.views(instants, self.winner()),
            patience=patience,
            command_line=self.command_line(root, config, mutant),
            root=root,
        )


REFERENCE = Factory()
