"""The order in which several processes run the cases, so that all of them end at about the same time.

A fault takes as long as many scripts. The faults of one workload share one recording, and each process would have to
make its own. So the faults of a workload stay together, and each process begins with faults. Each gets its share of
what comes early in the list, which are the suite tests. Scripts come last: xdist's `worksteal` gives each process an
equal part of the list, and a process without work takes from the end of another part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def shared_out(items: Sequence[_Item], processes: int, *, workload: Callable[[_Item], Hashable | None]) -> list[_Item]:
    """The items in their new order. `workload` names the workload of a fault, and is None for every other item."""
    groups: dict[Hashable, list[_Item]] = {}
    others: list[_Item] = []
    for item in items:
        name = workload(item)
        (others if name is None else groups.setdefault(name, [])).append(item)
    parts: list[list[_Item]] = [[] for _ in range(processes)]
    for group in sorted(groups.values(), key=len, reverse=True):
        min(parts, key=len).extend(group)
    ordered: list[_Item] = []
    for number, part in enumerate(parts):
        # `worksteal` cuts the list in the same way.
        size = (len(items) - len(ordered)) // (processes - number)
        room = max(0, size - len(part))
        # Each part gets its share of what comes early in the list.
        every = processes - number
        taken = set(sorted(range(len(others)), key=lambda place: place % every > 0)[:room])
        ordered += [*part, *(item for place, item in enumerate(others) if place in taken)]
        others = [item for place, item in enumerate(others) if place not in taken]
    return [*ordered, *others]
