"""Bugs of hx-sync that show among thousands of rows, or in one of many races."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.reference_impl.hx_sync.forgotten import Forgotten, Windows
from holdfast.reference_impl.hx_sync.nodes import Nodes
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.views import Views
from holdfast.reference_impl.planting import Change, part

_MOST = 2000


class FirstWindows(Windows):
    def applied(self, connection: sqlite3.Connection) -> Sequence[Window]:
        return super().applied(connection)[:_MOST]


class FirstForgotten(Forgotten):
    def remember(self, connection: sqlite3.Connection, keys: Sequence[Any]) -> None:
        super().remember(connection, keys[:_MOST])


class FirstArtifacts(Views):
    def artifacts(self, connection: sqlite3.Connection) -> Any:
        return super().artifacts(connection)[:_MOST]


class BothMakeIt(Nodes):
    def _made(self, folder: Path, node_id: str) -> bool:
        super()._made(folder, node_id)
        return True


BUGS: Mapping[str, Change] = {
    "windows-up-to-two-thousand": part(windows=FirstWindows),
    "forgotten-up-to-two-thousand": part(forgotten=FirstForgotten),
    "artifacts-up-to-two-thousand": part(views=FirstArtifacts),
    "enrolled-by-both": part(nodes=BothMakeIt),
}
