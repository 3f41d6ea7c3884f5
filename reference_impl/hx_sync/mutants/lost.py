"""Bugs of hx-sync that show when an index or the store is gone, damaged or another."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from holdfast.reference_impl.hx_sync.commands import DONE, Commands
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.index import NAME
from holdfast.reference_impl.hx_sync.nodes import Node, Nodes
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import BESIDE, StoreError


class EnrolledOverDamage(Nodes):
    def _is_there(self, name: str, node_id: str) -> bool:
        try:
            return super()._is_there(name, node_id)
        except StoreError:
            for ending in ("", *BESIDE):
                (self._folder / name / f"{NAME}{ending}").unlink(missing_ok=True)
            self.make_index(self._folder / name, node_id)
            return True


class EmptyFileLeft(Nodes):
    def node(self, name: str) -> Node:
        node = super().node(name)
        node.index.database.touch()
        return node


class LostStoreIsEmpty(FolderStore):
    def check(self) -> None:
        pass


def failing_well(name: str) -> type[Commands]:
    """Commands of which one always exits with 0, also after a failure."""

    class FailingWell(Commands):
        def run(self, command: str, options: argparse.Namespace) -> int:
            status = super().run(command, options)
            return DONE if command == name else status

    return FailingWell


BUGS: Mapping[str, Change] = {
    "damaged-index-enrolled-anew": part(nodes=EnrolledOverDamage),
    "empty-file-left-for-a-lost-index": part(nodes=EmptyFileLeft),
    "lost-store-is-empty": part(folder=LostStoreIsEmpty),
    "failed-status-command-is-done": part(commands=failing_well("sync status")),
    "failed-import-command-is-done": part(commands=failing_well("import")),
    "failed-forget-command-is-done": part(commands=failing_well("forget")),
}
