"""The parts that a device is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.reference_impl.hx_sync.algorithms import Algorithms
from holdfast.reference_impl.hx_sync.blobs import BlobCodec
from holdfast.reference_impl.hx_sync.command_line import CommandLine
from holdfast.reference_impl.hx_sync.disk import Disk
from holdfast.reference_impl.hx_sync.envelope import Envelope, Nonces
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.forgotten import Forgotten, Windows
from holdfast.reference_impl.hx_sync.header import Headers
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.keys import VaultKeys
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import Nodes
from holdfast.reference_impl.hx_sync.objects import Objects
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Contents, Records
from holdfast.reference_impl.hx_sync.s3 import connected
from holdfast.reference_impl.hx_sync.schema import Schema
from holdfast.reference_impl.hx_sync.service import Parts
from holdfast.reference_impl.hx_sync.settings import Settings, load_settings
from holdfast.reference_impl.hx_sync.storage import Store
from holdfast.reference_impl.hx_sync.terms import CONTRACT
from holdfast.reference_impl.hx_sync.views import Views
from holdfast.reference_impl.patience import Patience
from holdfast.specs import kept_terms


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes the parts of a device."""

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings for a session's config. Raises OpenError."""
        return load_settings(config)

    def store(self, where: str | Path, layout: Layout, settings: Settings) -> Store:
        """The store in a folder, or at `s3://BUCKET/PREFIX`. Raises ValueError."""
        if isinstance(where, str):
            return connected(where, layout, max_object_bytes=settings.max_object_bytes)
        return FolderStore(where, layout, Disk(), max_object_bytes=settings.max_object_bytes)

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
        layout = Layout(settings.store_folder, settings.vault_id)
        store = self.store(root if where is None else where, layout, settings)
        instants, codec, patience = Instants(), BlobCodec(settings), Patience()
        envelope = Envelope(settings, Algorithms(), Headers(instants), Nonces())
        records = Records(instants, Contents())
        objects = Objects(settings, layout, store, envelope, records, codec)
        ledger = Ledger(instants)
        merging = Merging(Windows(instants), Forgotten(), ledger)
        importing = Importing(layout, store, objects, merging, ledger, patience)
        publishing = Publishing(settings, layout, store, envelope, objects, records, codec, instants)
        nodes = Nodes(root, Schema(), settings, patience, Disk())
        return Parts(
            contract=kept_terms(CONTRACT),
            settings=settings,
            keys=VaultKeys(),
            layout=layout,
            store=store,
            nodes=nodes,
            objects=objects,
            publishing=publishing,
            forgetting=Forgetting(layout, envelope, objects, publishing, importing, ledger, instants),
            importing=importing,
            ledger=ledger,
            views=Views(instants),
            patience=patience,
            command_line=CommandLine(root, config, mutant),
            root=root,
        )


REFERENCE = Factory()
