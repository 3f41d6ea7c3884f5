"""The order in which the points of a run are struck: points that probably show a failure come first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from holdfast.conformance.faults.recording import Action, Names, Recording, Sync, SyncAll, Unnamed, Write

# So many points at which a file is written under its own name come by turns with the first others, and of these so many
# behind the syncs that made most final: one of those and two of these are among what is tried in any case.
_IN_PLACE, _HEAVIEST = 2, 2


def spread(numbers: Sequence[int], seed: int) -> Sequence[int]:
    """All of them, in an order that covers the whole range early: wherever the time ends, it ended everywhere."""
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    return drawn.sample(numbers, len(numbers))


def in_place_first(recording: Recording, ordered: Sequence[int]) -> Sequence[int]:
    """Numbers in this order, but by turns with the first a few at which a file that was made in the run lacks its end.

    Of each file that keeps the name under which it was made that is the last write before its first sync. A writer that
    writes aside and renames has none; only a chance hit would show a writer that does not.
    """
    made: dict[int, bytes] = {}
    last: dict[int, int] = {}
    known = {entry.file for entry in recording.snapshot}
    synced: set[int] = set()
    for one in recording.operations:
        action = one.action
        if isinstance(action, Names):
            for change in action.changes:
                if isinstance(change, Unnamed):
                    if made.get(change.file) == change.path:
                        del made[change.file]
                elif change.file not in known:
                    known.add(change.file)
                    made[change.file] = change.path
        elif isinstance(action, Sync):
            synced.add(action.file)
        elif isinstance(action, SyncAll):
            synced |= known
        elif isinstance(action, Write) and action.file in made and action.file not in synced:
            last[action.file] = one.number
    halves = {last[file] for file in made if file in last}
    first = [number for number in ordered if number in halves][:_IN_PLACE]
    rest = [number for number in ordered if number not in first]
    return [number for pair in zip_longest(rest, first) for number in pair if number is not None]


def halves_first(
    recording: Recording, windows: Mapping[int, range], ordered: Sequence[int], seed: int
) -> Sequence[int]:
    """Numbers in this order, but those first that come right behind a sync or a change of names within an operation.

    `windows` are the numbers at which each operation of the workload was under way; empty if that is not known.
    There one of two transactions is final and the other is not. All such numbers of one operation come first, and of
    these those behind the syncs that made most final, for a commit is heavier than the head of a log; those of the
    others by turns with the rest, which has its own to show.
    """
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    # The first operation makes files that later ones find.
    chosen = drawn.choice([*windows][1:] or [*windows, 0])
    settled = {one.number + 1 for one in recording.operations if isinstance(one.action, Sync | SyncAll | Names)}
    within = {number for number in settled if any(number in window for window in windows.values())}
    first = [number for number in ordered if number in within and number in windows.get(chosen, ())]
    final = _made_final(recording)
    heavy = sorted(sorted(final.keys() & {*first}, key=lambda number: -final[number])[:_HEAVIEST])
    first = [*heavy, *(number for number in first if number not in heavy)]
    others = [number for number in ordered if number in within and number not in windows.get(chosen, ())]
    rest = [number for number in ordered if number not in within]
    turns = [number for pair in zip_longest(rest, others) for number in pair if number is not None]
    return [*first, *turns]


def _made_final(recording: Recording) -> Mapping[int, int]:
    """How many bytes each sync made final that had any, by the number of the operation behind it."""
    waiting: Counter[int] = Counter()
    final: dict[int, int] = {}
    for one in recording.operations:
        action = one.action
        if isinstance(action, Write):
            waiting[action.file] += len(action.data)
        elif isinstance(action, Sync) and (size := waiting.pop(action.file, 0)):
            final[one.number + 1] = size
        elif isinstance(action, SyncAll) and waiting:
            final[one.number + 1] = waiting.total()
            waiting.clear()
    return final


def each_kind_first(
    recording: Recording, windows: Mapping[int, range], ordered: Sequence[int], most: int
) -> tuple[Sequence[int], int]:
    """Numbers in this order, but first one of each kind, and how many of these there are: `most` at most.

    A kind is what a call does, together with the operation of the workload that was under way then. So each operation
    is struck at a write, at a sync and at each change of names, and not only where there are most calls.
    """
    kinds: dict[tuple[object, ...], int] = {}
    actions = {one.number: one.action for one in recording.operations}
    for number in ordered:
        under_way = tuple(op for op, window in windows.items() if number in window)
        kinds.setdefault((*_kind(actions[number]), *under_way), number)
    firsts = list(kinds.values())[:most]
    chosen = frozenset(firsts)
    return [*firsts, *(number for number in ordered if number not in chosen)], len(firsts)


def _kind(action: Action) -> tuple[str, ...]:
    if isinstance(action, Names):
        return tuple(type(change).__name__ for change in action.changes)
    return (type(action).__name__,)
