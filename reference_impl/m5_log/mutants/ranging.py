"""Bugs that show at the ends of numbers, names and clocks alone."""

from __future__ import annotations

import json

from holdfast.reference_impl.m5_log.state import Snapshots, State
from holdfast.reference_impl.planting import part


class SortedByBytes(Snapshots):
    def json(self, state: State) -> str:
        return json.dumps(json.loads(super().json(state)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


BUGS = {
    "registers-sorted-by-bytes": part(snapshots=SortedByBytes),
}
