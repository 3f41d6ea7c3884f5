"""Bugs of hx-sync that only a history shows: they need what other steps have left."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from holdfast.reference_impl.hx_sync.commands import Commands
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.storage import Put
from holdfast.reference_impl.planting import Change, part

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


BUGS: Mapping[str, Change] = {
    "put-compares-the-beginning": part(folder=HeadsCompared),
    "scoped-window-reaches-into-the-future": part(forgetting=ScopedUnclamped),
    "since-read-without-its-offset": part(commands=SinceInSeconds),
}
