"""What is measured side by side: the sides take turns in small batches, so that a busy machine slows all alike."""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

# Seconds of each operation of one side, batch by batch.
Taken: TypeAlias = list[list[float]]


def in_turns(
    sides: Sequence[Callable[[int], object]],
    *,
    warm_up: int,
    batches: int,
    batch: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Taken]:
    """What each side took by a clock. Operations have numbers; the first `warm_up` of them do not count.

    After each batch another side goes first.
    """
    taken: list[Taken] = [[] for _ in sides]
    turns = list(zip(sides, taken, strict=True))
    for action, _ in turns:
        seconds(action, 0, warm_up)
    for number in range(warm_up, warm_up + batches * batch, batch):
        for action, into in turns:
            into.append(seconds(action, number, batch, clock))
        turns = [*turns[1:], turns[0]]
    return taken


def seconds(
    action: Callable[[int], object], first: int, count: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """How long each of `count` calls took."""
    taken = []
    for number in range(first, first + count):
        began = clock()
        action(number)
        taken.append(clock() - began)
    return taken


def median(batches: Taken) -> float:
    """The median of all batches together."""
    return statistics.median(itertools.chain.from_iterable(batches))


def tenths(ours: Taken, theirs: Taken) -> str:
    """The ratio of the medians, theirs to ours, in each tenth of the run: from the least to the greatest."""
    tenth = max(1, len(ours) // 10)
    parts = [slice(at, at + tenth) for at in range(0, len(ours), tenth)]
    return " ".join(f"{ratio:.2f}" for ratio in sorted(median(theirs[part]) / median(ours[part]) for part in parts))


def show(sides: Mapping[str, Taken], note: str = "", *, each: int = 1) -> None:
    """Print the rate of each side, of which an operation counts as `each`, and the ratio of its median to the first's.

    Then how the ratio of the second to the first spreads over tenths of the run.
    """
    ours, theirs = [*sides.values()][:2]
    for name, side in sides.items():
        typical, ratio = median(side), median(side) / median(ours)
        print(f"{name:<18} {each / typical:9,.0f} a second   median {typical * 1e6:8.1f} us   ratio {ratio:.2f}")
    print(f"in tenths          {tenths(ours, theirs)}   load {os.getloadavg()[0]:.1f}   {note}", flush=True)


def grown(what: str, sizes: str, cost: Callable[[int], float]) -> None:
    """Print what something costs among each of these sizes, and the ratio to the first."""
    found: dict[int, float] = {}
    for size in map(int, sizes.split(",")):
        found[size] = cost(size)
        ratio = found[size] / next(iter(found.values()))
        print(f"{what} among {size:>10,}: {found[size] * 1e6:6.1f} us   ratio {ratio:.2f}", flush=True)


def arguments(text: str | None, **defaults: int | str) -> argparse.Namespace:
    """The options of a command line, with what they are without it."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()
