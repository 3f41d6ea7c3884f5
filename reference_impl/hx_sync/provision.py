"""Making what a session begins with: an empty store, and the devices a, b and c with empty indexes."""

from __future__ import annotations

import shutil
from pathlib import Path

from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.nodes import FOLDER, Nodes
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.storage import Store


class Provisioner:
    """Makes templates and copies them."""

    def __init__(self, settings: Settings, layout: Layout) -> None:
        self._settings = settings
        self._layout = layout

    def make(self, root: Path, store: Store, nodes: Nodes) -> None:
        """A store and its devices where there is nothing. Raises OSError, StoreError."""
        store.make()
        (root / FOLDER).mkdir(FOLDER_MODE)
        for name, node_id in self._settings.nodes.items():
            nodes.enroll(name, node_id)

    def clear(self, root: Path) -> None:
        """Remove what an earlier session left. Raises OSError."""
        for name in (self._layout.root, FOLDER):
            if (root / name).exists():
                shutil.rmtree(root / name)

    def copy(self, template: Path, root: Path) -> None:
        """A copy of a template. Raises OSError, shutil.Error."""
        for name in (self._layout.root, FOLDER):
            shutil.copytree(template / name, root / name, symlinks=True)
