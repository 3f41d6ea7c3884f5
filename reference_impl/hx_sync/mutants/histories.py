"""Bugs of hx-sync that only a history shows: they need what other steps have left."""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference_impl.answers import Answer, Effect
from holdfast.reference_impl.hx_sync.commands import Commands
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.index import NAME
from holdfast.reference_impl.hx_sync.nodes import Node, Nodes
from holdfast.reference_impl.hx_sync.records import Records, Window
from holdfast.reference_impl.hx_sync.storage import Put
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import BESIDE

_HEAD, _SECONDS = 64 << 10, 19


class HeadsCompared(FolderStore):
    def _compare(self, key: str, data: bytes) -> Put | None:
        found = super()._compare(key, data)
        if found is Put.OTHER and len(data) > _HEAD:
            lies = (self._root / key).read_bytes()
            return Put.SAME if (len(lies), lies[:_HEAD]) == (len(data), data[:_HEAD]) else found
        return found


class ScopedUnclamped(Forgetting):
    def clamped(self, window: Window, now: int) -> Window:
        return super().clamped(window, now) if window.node_id is None else window


class SinceInSeconds(Commands):
    def forget(self, options: argparse.Namespace) -> int:
        options.since = f"{options.since[:_SECONDS]}Z"
        return super().forget(options)


_BACKUP = "rebuild.backup"


class RebuildsBesideABackup(Importing):
    def rebuild(self, node: Node, master: bytes) -> Answer:
        node.index.purge()
        backup = node.index.folder / _BACKUP
        shutil.copy(node.index.database, backup)
        answer = super().rebuild(node, master)
        backup.unlink(missing_ok=True)
        return answer


class BackupPutBack(Nodes):
    """A process that starts takes a backup that lies there for what the index should be."""

    def names(self) -> Sequence[str]:
        if not self.__dict__.setdefault("_begun", False):
            self._begin()
        return super().names()

    def _begin(self) -> None:
        self.__dict__["_begun"] = True
        for backup in sorted(self._folder.glob(f"*/{_BACKUP}")):
            for ending in BESIDE:
                backup.with_name(f"{NAME}{ending}").unlink(missing_ok=True)
            backup.replace(backup.with_name(NAME))


class PriorNotApplied(Forgetting):
    """A tombstone that lies in the store already is taken for one that was applied here."""

    def publish(self, key: str, raw: bytes, master: bytes, asked: Window) -> Effect:
        self.__dict__["_done"] = super().publish(key, raw, master, asked)
        return self.__dict__["_done"]  # type: ignore[no-any-return]

    def apply(self, connection: sqlite3.Connection, node: Node, key: str, master: bytes) -> None:
        if self.__dict__["_done"] is not Effect.PRIOR:
            super().apply(connection, node, key, master)


class LastPinOfASegment(Records):
    def parse(self, payload: bytes) -> dict[str, Any]:
        written = super().parse(payload)
        if isinstance(written.get("pins"), list):
            written["pins"] = list({_of_event(pin): pin for pin in written["pins"]}.values())
        return written


def _of_event(pin: Any) -> str:
    return repr({name: pin[name] for name in sorted(pin) if name != "pinned"} if isinstance(pin, dict) else pin)


BUGS: Mapping[str, Change] = {
    "backup-of-a-killed-rebuild": part(importing=RebuildsBesideABackup, nodes=BackupPutBack),
    "last-pin-of-a-segment-wins": part(records=LastPinOfASegment),
    "prior-tombstone-not-applied": part(forgetting=PriorNotApplied),
    "put-compares-the-beginning": part(folder=HeadsCompared),
    "scoped-window-reaches-into-the-future": part(forgetting=ScopedUnclamped),
    "since-read-without-its-offset": part(commands=SinceInSeconds),
}
