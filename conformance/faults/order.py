"""The order in which the points of a run are struck: points that probably show a failure come first."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import zip_longest

from holdfast.conformance.faults.recording import (
    Action,
    Event,
    Named,
    Names,
    Recording,
    Sync,
    SyncAll,
    Truncate,
    Unnamed,
    Write,
)

# The points tried first take turns: up to `_IN_PLACE` at which a file is written under its own name, and others, of
# which up to `_HEAVIEST` lie after the syncs that made most final. One of those and two of these are always tried.
_IN_PLACE, _HEAVIEST = 2, 2
# How many of the first syncs of an operation are each taken for the end of a transaction.
_FIRST = 4
# Fewer writes over bytes of one file have no middle.
_SEVERAL = 3


def spread(numbers: Sequence[int], seed: int) -> Sequence[int]:
    """All of them, in an order that covers the whole range early: wherever the time ends, it ended everywhere."""
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    return drawn.sample(numbers, len(numbers))


# From a number to the one that a layer strikes in its place, because it leaves the same there; None without one.
Struck = Callable[[int], int | None]


def struck_at(struck: Struck, ordered: Iterable[int]) -> list[int]:
    """Each number that is struck, once, in the order in which they come first."""
    return list(dict.fromkeys(number for number in map(struck, ordered) if number is not None))


def killed_before(recording: Recording) -> Struck:
    """A sync changes nothing that a kill leaves: after it the state is as before it."""
    changing = [0, *(one.number for one in recording.operations if not isinstance(one.action, Sync | SyncAll))]
    return lambda number: changing[bisect_left(changing, number) - 1] + 1


def within_a_write(recording: Recording) -> Struck:
    """Only a write of two bytes or more has a half."""
    writes = frozenset(_writes(recording))
    return lambda number: number if number in writes else None


def write_from(recording: Recording) -> Struck:
    """The first write of two bytes or more at a number or after it is the one that does half."""
    return _next_of(_writes(recording))


def failing_from(recording: Recording) -> Struck:
    """What leaves for the outside does not fail: the first other call at a number or after it is the one that does."""
    return _next_of([one.number for one in recording.operations if not isinstance(one.action, Event)])


def _next_of(calls: Sequence[int]) -> Struck:
    return lambda number: next(iter(calls[bisect_left(calls, number) :]), None)


def _writes(recording: Recording) -> list[int]:
    return [one.number for one in recording.operations if isinstance(one.action, Write) and len(one.action.data) > 1]


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
    """Numbers in this order, but those first that come right after a sync or a change of names within an operation.

    `windows` are the numbers at which each operation of the workload was under way; empty if that is not known.
    There one of two transactions is final and the other is not. Of each operation those after the syncs that made most
    final come first, for a commit is heavier than the head of a log. Then come all such numbers of one operation, and
    those of the others by turns with the rest, which has its own to show.
    """
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    # The first operation makes files that later ones find.
    chosen = drawn.choice([*windows][1:] or [*windows, 0])
    settled = {one.number + 1 for one in recording.operations if isinstance(one.action, Sync | SyncAll | Names)}
    within = {number for number in settled if any(number in window for window in windows.values())}
    heavy = heaviest(recording, windows)
    weighty = [
        number
        for op in sorted(windows, key=lambda op: op != chosen)
        for number in sorted(heavy)
        if number in windows[op]
    ]
    left = [number for number in ordered if number not in heavy]
    first = [number for number in left if number in within and number in windows.get(chosen, ())]
    others = [number for number in left if number in within and number not in windows.get(chosen, ())]
    rest = [number for number in left if number not in within]
    turns = [number for pair in zip_longest(rest, others) for number in pair if number is not None]
    return [*weighty, *first, *turns]


def heaviest(recording: Recording, windows: Mapping[int, range]) -> frozenset[int]:
    """Of each operation the numbers right after the syncs that made most final."""
    final = _made_final(recording)
    return frozenset(
        number
        for window in windows.values()
        for number in sorted(final.keys() & {*window}, key=lambda number: (-final[number], number))[:_HEAVIEST]
    )


def parted(recording: Recording, windows: Mapping[int, range]) -> list[int]:
    """Of each operation the numbers right after the first syncs that made anything final, and the one that made most.

    What is done in two transactions is half done after the first of them, however small that is. In front of it there
    may be the head of a log. And the number after the first name that it made: what it does beside that is left with
    the mark, the journal or the copy that says so. And the middle of what it overwrites in a file: a journal, and a
    store that is half new.
    """
    final = _made_final(recording)
    named = [
        one.number + 1
        for one in recording.operations
        if isinstance(one.action, Names) and any(isinstance(change, Named) for change in one.action.changes)
    ]
    chosen: list[int] = []
    for window in windows.values():
        found = sorted(final.keys() & {*window})
        chosen += [*found[:_FIRST], *([max(found, key=lambda one: final[one])] if found else [])]
        chosen += [number for number in named if number in window][:1]
        chosen += [each[len(each) // 2] for each in (_overwriting(recording, window),) if len(each) >= _SEVERAL]
    return chosen


def _overwriting(recording: Recording, window: range) -> Sequence[int]:
    """The numbers of the writes of an operation over bytes of one file, up to a sync; those of which there are most."""
    sizes = {entry.file: len(entry.data) for entry in recording.snapshot}
    found: dict[tuple[int, int], list[int]] = {}
    syncs = 0
    for one in recording.operations:
        action = one.action
        syncs += isinstance(action, Sync | SyncAll)
        if isinstance(action, Truncate):
            sizes[action.file] = action.size
        elif isinstance(action, Write):
            if one.number in window and action.offset < sizes.get(action.file, 0):
                found.setdefault((action.file, syncs), []).append(one.number)
            sizes[action.file] = max(sizes.get(action.file, 0), action.offset + len(action.data))
    return max(found.values(), key=len, default=())


def _made_final(recording: Recording) -> Mapping[int, int]:
    """How many bytes each sync made final that had any, by the number of the operation after it."""
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
    recording: Recording,
    windows: Mapping[int, range],
    ordered: Sequence[int],
    most: int,
    marked: Set[int] = frozenset(),
) -> tuple[Sequence[int], int]:
    """Numbers in this order, but first one of each kind, and how many of these there are: `most` at most.

    A kind is what a call does, together with the operation of the workload that was under way then. So each operation
    is struck at a write, at a sync and at each change of names, and not only where there are most calls. Operations
    take turns. Each number of `marked` is a kind of its own.
    """
    kinds: dict[tuple[object, ...], int] = {}
    actions = {one.number: one.action for one in recording.operations}
    found: Counter[tuple[int, ...]] = Counter()
    turns: list[tuple[int, int]] = []
    for number in ordered:
        under_way = tuple(op for op, window in windows.items() if number in window)
        kind = (number,) if number in marked else (*_kind(actions[number]), *under_way)
        if kinds.setdefault(kind, number) == number:
            found[under_way] += 1
            turns.append((found[under_way], number))
    firsts = [number for _, number in sorted(turns, key=lambda one: one[0])][:most]
    chosen = frozenset(firsts)
    return [*firsts, *(number for number in ordered if number not in chosen)], len(firsts)


def _kind(action: Action) -> tuple[str, ...]:
    if isinstance(action, Names):
        return tuple(type(change).__name__ for change in action.changes)
    return (type(action).__name__,)
