"""Bugs that show at the ends of numbers, names and clocks alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.m5_log.checkpoints import Checkpoint
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.observing import Observing
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.replay import Replay, Source
from holdfast.reference_impl.m5_log.state import Snapshots, State
from holdfast.reference_impl.planting import part

_WRAP = 1 << 32


class NoCarry(Observing):
    def scan(self, author: bytes, first: bytes, last: bytes) -> dict[str, Any]:
        number = int.from_bytes(last, "big")
        if number % _WRAP == _WRAP - 1:
            # Up to the counter behind the last one, which is 0 in the same millisecond.
            last = max(0, number - _WRAP).to_bytes(len(last), "big")
        return super().scan(author, first, last)


class NarrowCounters(Snapshots):
    def json(self, state: State) -> str:
        narrow = {key: (value + _WRAP // 2) % _WRAP - _WRAP // 2 for key, value in state.counters.items()}
        return super().json(replace(state, counters=narrow))


class SortedByBytes(Snapshots):
    def json(self, state: State) -> str:
        return json.dumps(json.loads(super().json(state)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class ZeroIsTheEnd(Log):
    def checkpoint_create(self, index: int | None = None) -> Checkpoint:
        return super().checkpoint_create(index or None)


class SliceKept(Replay):
    def taken(self, opened: Opened, first: int, last: int, source: Source) -> Iterable[Operation]:
        if source is Source.STORE:
            return super().taken(opened, first, last, source)
        kept: list[Operation] = self.__dict__.setdefault("_slice", [])
        if len(kept) < last:
            kept[:] = super().taken(opened, 1, last, source)
        return kept[first - 1 : last]


BUGS = {
    "scan-without-carry": part(observing=NoCarry),
    "counters-in-32-bits": part(snapshots=NarrowCounters),
    "registers-sorted-by-bytes": part(snapshots=SortedByBytes),
    "index-zero-is-the-end": part(log=ZeroIsTheEnd),
    "slice-in-memory-kept": part(replay=SliceKept),
}
