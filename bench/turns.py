"""What is measured side by side: the sides take turns in small batches, so that a busy machine slows all alike."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

# Seconds of each operation of one side, batch by batch.
Taken: TypeAlias = list[list[float]]


def in_turns(sides: Sequence[Callable[[int], object]], *, warm_up: int, batches: int, batch: int) -> list[Taken]:
    """What each side took. Operations have numbers; the first `warm_up` of them do not count.

    After each batch another side goes first.
    """
    taken: list[Taken] = [[] for _ in sides]
    turns = list(zip(sides, taken, strict=True))
    for action, _ in turns:
        seconds(action, 0, warm_up)
    for number in range(warm_up, warm_up + batches * batch, batch):
        for action, into in turns:
            into.append(seconds(action, number, batch))
        turns = [*turns[1:], turns[0]]
    return taken


def seconds(action: Callable[[int], object], first: int, count: int) -> list[float]:
    """How long each of `count` calls took."""
    taken = []
    for number in range(first, first + count):
        began = time.perf_counter()
        action(number)
        taken.append(time.perf_counter() - began)
    return taken


def median(batches: Taken) -> float:
    """The median of all batches together."""
    return statistics.median(itertools.chain.from_iterable(batches))


def tenths(ours: Taken, theirs: Taken) -> str:
    """The ratio of the medians, theirs to ours, in each tenth of the run: from the least to the greatest."""
    tenth = max(1, len(ours) // 10)
    parts = [slice(at, at + tenth) for at in range(0, len(ours), tenth)]
    return " ".join(f"{ratio:.2f}" for ratio in sorted(median(theirs[part]) / median(ours[part]) for part in parts))
