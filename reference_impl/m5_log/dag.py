"""The graph of the operations: which wait for parents, and the one topological order of the rest."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from holdfast.reference_impl.m5_log.terms import Hlc, Key

# What decides between operations whose parents are all placed: hlc, then op_id, both as bytes.
Place: TypeAlias = tuple[bytes, bytes]


class Dag:
    """Operations by id with their parents and clocks, in memory. It is built anew at every start, from the edges."""

    def __init__(self) -> None:
        self.parents: dict[bytes, tuple[bytes, ...]] = {}
        self._clocks: dict[bytes, bytes] = {}
        # Children by parent, whether that is stored or not.
        self._children: dict[bytes, list[bytes]] = {}
        # How many of its parents are not surfaced yet; of those that wait only.
        self._waits: dict[bytes, int] = {}
        self._order: tuple[bytes, ...] | None = ()

    def __contains__(self, op_id: Key) -> bool:
        return op_id in self.parents

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def surfaced(self) -> int:
        """How many operations do not wait."""
        return len(self.parents) - len(self._waits)

    def add(self, op_id: Key, parents: Sequence[bytes], hlc: Hlc) -> None:
        """Take in one operation that is not there yet, and surface what waited for it alone."""
        self.parents[op_id] = tuple(parents)
        self._clocks[op_id] = hlc
        for parent in parents:
            self._children.setdefault(parent, []).append(op_id)
        # It waits while this is counted: an edge that leads back to itself never ends.
        self._waits[op_id] = len(parents)
        self._waits[op_id] = sum(not self.is_surfaced(parent) for parent in parents)
        if self._waits[op_id] == 0:
            self._surface(op_id)

    def is_surfaced(self, op_id: Key) -> bool:
        """Whether the operation is stored, and so are all its ancestors."""
        return op_id in self.parents and op_id not in self._waits

    def _surface(self, op_id: Key) -> None:
        self._order = None
        ready = [op_id]
        while ready:
            placed = ready.pop()
            del self._waits[placed]
            for child in self._children.get(placed, ()):
                self._waits[child] -= 1
                if self._waits[child] == 0:
                    ready.append(child)

    def missing(self, op_id: Key) -> tuple[bytes, ...]:
        """The parents of an operation that are not stored, in its order."""
        return tuple(parent for parent in self.parents[op_id] if parent not in self.parents)

    def pending(self) -> Sequence[bytes]:
        """The operations that wait, in the order of their bytes."""
        return sorted(self._waits)

    def awaited(self) -> Mapping[bytes, Sequence[bytes]]:
        """The parents that are not stored, each with its children; both in the order of their bytes."""
        return {
            parent: sorted(self._children[parent]) for parent in sorted(self._children) if parent not in self.parents
        }

    def order(self) -> tuple[bytes, ...]:
        """The surfaced operations, parents first; of those that may come next, the least place does."""
        if self._order is None:
            self._order = tuple(self._sorted())
        return self._order

    def _sorted(self) -> Iterable[bytes]:
        left = {op_id: len(parents) for op_id, parents in self.parents.items() if op_id not in self._waits}
        ready = [self.place(op_id) for op_id, count in left.items() if count == 0]
        heapq.heapify(ready)
        while ready:
            _, op_id = heapq.heappop(ready)
            yield op_id
            for child in self._children.get(op_id, ()):
                if child in left:
                    left[child] -= 1
                    if left[child] == 0:
                        heapq.heappush(ready, self.place(child))

    def place(self, op_id: Key) -> Place:
        """What an operation is compared by."""
        return self._clocks[op_id], op_id
