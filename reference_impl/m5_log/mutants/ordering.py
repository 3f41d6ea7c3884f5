"""Bugs in the graph and its order, and in lists."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from holdfast.reference_impl.m5_log.dag import Dag, Place
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.observing import Observing
from holdfast.reference_impl.m5_log.opening import Opening
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.witness import Mark
from holdfast.reference_impl.planting import part

# Where a list, and a cascade, end unnoticed.
_MOST_ROWS, _MOST_LEVELS = 1000, 100


class DirectParentsOnly(Dag):
    def is_surfaced(self, op_id: bytes) -> bool:
        return op_id in self.parents


class ByClockAlone(Dag):
    def _sorted(self) -> Iterable[bytes]:
        return sorted((op_id for op_id in self.parents if op_id not in self._waits), key=self.place)


class ClockAsText(Dag):
    def place(self, op_id: bytes) -> Place:
        clock = self._clocks[op_id]
        return str(int.from_bytes(clock[:8], "big")).encode() + b"." + clock[8:], op_id


class ClockAsDouble(Dag):
    def place(self, op_id: bytes) -> Place:
        clock = self._clocks[op_id]
        return struct.pack(">d", float(int.from_bytes(clock[:8], "big"))) + clock[8:], op_id


class CounterIgnored(Dag):
    def place(self, op_id: bytes) -> Place:
        return self._clocks[op_id][:8], op_id


class OrderOfArrival(Dag):
    def _sorted(self) -> Iterable[bytes]:
        return list(self._surfaced_in_time())

    def _surfaced_in_time(self) -> Iterable[bytes]:
        placed: set[bytes] = set()
        left = [op_id for op_id in self.parents if op_id not in self._waits]
        while left:
            op_id = next(each for each in left if placed.issuperset(self.parents[each]))
            left.remove(op_id)
            placed.add(op_id)
            yield op_id


class MissingSorted(Dag):
    def missing(self, op_id: bytes) -> tuple[bytes, ...]:
        return tuple(sorted(super().missing(op_id)))


class EndsAtALevel(Dag):
    levels = _MOST_LEVELS

    def _surface(self, op_id: bytes) -> None:
        self._order = None
        ready = [(op_id, 0)]
        while ready:
            placed, level = ready.pop()
            del self._waits[placed]
            for child in self._children.get(placed, ()):
                self._waits[child] -= 1
                if self._waits[child] == 0 and level < self.levels:
                    ready.append((child, level + 1))


class EndsAtElevenBits(EndsAtALevel):
    levels = 2**11


class PagedByClock(Observing):
    """A scan reads pages of a thousand rows. The next page starts after the clock of the last row."""

    def scan(self, author: bytes, first: bytes, last: bytes) -> dict[str, Any]:
        found: list[str] = super().scan(author, first, last)["op_ids"]
        with self._store.reading() as opened:
            clocks = [opened.dag.place(bytes.fromhex(op_id))[0] for op_id in found]
        shown, at = [], 0
        while at < len(found):
            end = min(at + _MOST_ROWS, len(found))
            shown += found[at:end]
            at = next((later for later in range(end, len(found)) if clocks[later] > clocks[end - 1]), len(found))
        return {"op_ids": shown}


class ScanEnds(Observing):
    def scan(self, author: bytes, first: bytes, last: bytes) -> dict[str, Any]:
        return {"op_ids": super().scan(author, first, last)["op_ids"][:_MOST_ROWS]}


class MissingEnd(Observing):
    def pending(self) -> dict[str, Any]:
        shown = super().pending()
        return {**shown, "missing": shown["missing"][:_MOST_ROWS]}


class CheckpointsEnd(Observing):
    def checkpoints(self) -> dict[str, Any]:
        shown = super().checkpoints()
        return {**shown, "checkpoints": shown["checkpoints"][:_MOST_ROWS]}


class PendingForgotten(Opening):
    def dag(self, database: Database) -> Dag:
        whole, left = super().dag(database), self._dag()
        for op_id, parents in whole.parents.items():
            if whole.is_surfaced(op_id):
                left.add(op_id, parents, whole.place(op_id)[0])
        return left

    def check_contents(self, dag: Dag, mark: Mark) -> None:
        pass


class PendingOrdered(Observing):
    def topo_iter(self) -> dict[str, Any]:
        with self._store.reading() as opened:
            waiting = [op_id.hex() for op_id in opened.dag.pending()]
        return {"op_ids": [*super().topo_iter()["op_ids"], *waiting]}


class SurfacedOnly(Observing):
    def iter_ops(self) -> dict[str, Any]:
        with self._store.reading() as opened:
            return {"op_ids": sorted(op_id.hex() for op_id in opened.dag.order())}


class ByAuthorAsStored(Observing):
    def iter_ops(self) -> dict[str, Any]:
        with self._store.reading() as opened:
            return {"op_ids": [key[-32:].hex() for key, _ in opened.database.rows(Family.BY_AUTHOR)]}


BUGS = {
    "direct-parents-only": part(dag=DirectParentsOnly),
    "order-by-clock-alone": part(dag=ByClockAlone),
    "clock-compared-as-text": part(dag=ClockAsText),
    "clock-compared-as-double": part(dag=ClockAsDouble),
    "counter-of-clock-ignored": part(dag=CounterIgnored),
    "order-of-arrival": part(dag=OrderOfArrival),
    "missing-parents-sorted": part(dag=MissingSorted),
    "waiting-ends-at-a-level": part(dag=EndsAtALevel),
    "waiting-ends-at-eleven-bits": part(dag=EndsAtElevenBits),
    "scan-page-ends-within-a-clock": part(observing=PagedByClock),
    "scan-ends-at-a-thousand": part(observing=ScanEnds),
    "missing-parents-end-at-a-thousand": part(observing=MissingEnd),
    "checkpoints-end-at-a-thousand": part(observing=CheckpointsEnd),
    "pending-forgotten": part(opening=PendingForgotten),
    "pending-in-the-order": part(observing=PendingOrdered),
    "iteration-without-pending": part(observing=SurfacedOnly),
    "iteration-by-author": part(observing=ByAuthorAsStored),
}
