"""Bugs in the graph and its order, and in lists."""

from __future__ import annotations

from typing import Any

from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.reference_impl.m5_log.observing import Observing
from holdfast.reference_impl.planting import part

# Where a list, and a cascade, end unnoticed.
_MOST_ROWS, _MOST_LEVELS = 1000, 100


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


BUGS = {
    "waiting-ends-at-a-level": part(dag=EndsAtALevel),
    "scan-page-ends-within-a-clock": part(observing=PagedByClock),
}
