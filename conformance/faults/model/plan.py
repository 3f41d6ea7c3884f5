"""The order in which the states of a recording are restarted: states that find the common bugs come first."""

from __future__ import annotations

import random
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from holdfast.conformance.faults.model.disk import Point, moments
from holdfast.conformance.faults.model.states import State, StateRule, states
from holdfast.conformance.faults.model.survey import Stage, Survey, surveyed
from holdfast.conformance.faults.recording import Recording

_KINDS: Mapping[Stage, Collection[StateRule]] = {
    Stage.ACKNOWLEDGED: (StateRule.MINIMUM,),
    Stage.REPLACED: (StateRule.ZEROS,),
    Stage.ORDERED: (StateRule.ALL, StateRule.MINIMUM),
    Stage.PARTED: (StateRule.ALL, StateRule.MINIMUM, StateRule.NAMES, StateRule.DATA, StateRule.ZEROS, StateRule.TORN),
    Stage.SINGLE: (StateRule.ALL_BUT_ONE, StateRule.ONLY_ONE, StateRule.PREFIX),
    Stage.RANDOM: (StateRule.RANDOM,),
}
# Stages that a budget may end in the middle of: their states come from the whole recording, for its end counts as much.
_OWED = (Stage.ACKNOWLEDGED, Stage.REPLACED)
_DRAWN = (Stage.PARTED, Stage.SINGLE, Stage.RANDOM)
# One state of each kind is chosen at this number of moments, which are drawn at random.
_SAMPLED = 24
# In the names of files that are made for each operation.
_NUMBER = re.compile(rb"[0-9a-fA-F]*[0-9][0-9a-fA-F]*")
# How many trees are remembered, at 200 bytes each.
_MOST_SEEN = 1 << 18


@dataclass(frozen=True)
class Candidate:
    """One tree to restart on: `states` has it once for each point of the stage at which it is legal, in order.

    What is everything at one point may be the minimum at another; each state has the words for its own. `again` says
    that an earlier stage had the same tree, at other points: what the restart gave then is to be judged at these too.
    It is not counted twice. `due` counts the candidates, each of another kind, that are left from this one on; it is 0
    after them.
    """

    stage: Stage
    states: tuple[State, ...]
    again: bool
    due: int = 0

    @property
    def state(self) -> State:
        """Any of the states, to put into a folder."""
        return self.states[0]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The operations after which a crash may leave this tree, in order."""
        return tuple(sorted({number for state in self.states for number in state.point.numbers}))

    def at(self, number: int) -> State:
        """The state that describes a crash after this operation. Raises LookupError if none may leave the tree."""
        for state in reversed(self.states):
            if number in state.point.numbers:
                return state
        raise LookupError(f"expected one of operations {self.numbers}, got {number}")


class Plan:
    """All candidates of a recording, in order, made as far as they are asked for. The same seed gives the same order.

    `acknowledgements` are the numbers of the events that were acknowledgements; without it every event is one. `idle`
    are the numbers of operations before which nothing was under way, for as long as a client may wait. `alike`: of the
    acknowledgements at which the same files have unsynced bytes or names, the last one alone counts.
    `check` is called often while candidates are made, and may raise to end it.

    What it holds is bounded for any number of operations. Candidates are made for a window of moments at a time. Where
    the whole recording has room in one window, as small ones do, each tree of a stage comes once, with all its points.
    Otherwise the windows are chosen from all over the recording, which is gone through again for each of them.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        seed: int = 0,
        acknowledgements: Iterable[int] | None = None,
        idle: Iterable[int] = (),
        alike: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.seed = seed
        self._recording, self._check = recording, check
        self._idle, self._alike = frozenset(idle), alike
        self._named = None if acknowledgements is None else frozenset(acknowledgements)
        # For each finished stage, how many of its different trees no earlier stage has.
        self._exact: dict[Stage, int] = {}

    def __iter__(self) -> Iterator[Candidate]:
        """Candidates from the first on. Stop when the time is over."""
        return self.before(None)

    def before(self, last: Stage | None, *, kinds: int = 0) -> Iterator[Candidate]:
        """The candidates of all stages before this one.

        After those at the acknowledgements come up to `kinds` of the later stages, each of another kind.
        """
        seen = _Seen()
        early: Counter[Stage] = Counter()
        for stage in _before(last):
            count = early[stage]
            for window in self._windows(stage):
                for candidate in self._make(stage, window, seen):
                    count += not candidate.again
                    yield candidate
            self._exact[stage] = count
            if kinds and stage is Stage.REPLACED:
                for candidate in self._firsts(kinds, seen):
                    early[candidate.stage] += 1
                    yield candidate

    def _firsts(self, most: int, seen: _Seen) -> Sequence[Candidate]:
        """One new tree of each kind, then one more of each for the next operation of the workload, and so on."""
        places = range(self._survey.count)
        drawn = random.Random(f"{self.seed}:kinds")  # noqa: S311
        points = list(self._points(sorted(drawn.sample(places, min(_SAMPLED, len(places))))))
        drawn.shuffle(points)
        ends = sorted(self._named or ())
        found: dict[tuple[StateRule, int], tuple[Stage, State]] = {}
        trees: set[str] = set()
        for stage in _before(None)[2:]:
            for point in points:
                for state in states(point, seed=self.seed, kinds=_KINDS[stage]):
                    self._check()
                    kind = (state.kind, bisect_left(ends, point.numbers[0]))
                    if kind not in found and state.hash not in trees and state.hash not in seen:
                        found[kind] = (stage, state)
                        trees.add(state.hash)
        turns: Counter[StateRule] = Counter()
        order: list[tuple[int, tuple[Stage, State]]] = []
        for (rule, _), one in found.items():
            turns[rule] += 1
            order.append((turns[rule], one))
        chosen = [one for _, one in sorted(order, key=lambda each: each[0])[:most]]
        for _, state in chosen:
            list(seen.add(state.hash, [state]))
        return [
            Candidate(stage, (state,), again=False, due=len(chosen) - place)
            for place, (stage, state) in enumerate(chosen)
        ]

    def beginnings(self) -> Sequence[Candidate]:
        """States for the begin of a recovery, each once: in a long recording, a window of each of the two stages."""
        seen = _Seen()
        stages = (Stage.ACKNOWLEDGED, Stage.ORDERED)
        firsts = (self._make(stage, window, seen) for stage in stages for window in islice(self._windows(stage), 1))
        return [one for one in chain.from_iterable(firsts) if not one.again]

    def everything(self, event: int | None = None) -> Candidate:
        """The end of the recording, or this one of its `acknowledgements`, without any loss."""
        at = self._survey.last
        if event is not None:
            at = next(one for one in self._points(self._survey.moments_of(Stage.ACKNOWLEDGED)) if event in one.numbers)
        (state,) = states(at, kinds=[StateRule.ALL])
        return Candidate(Stage.ORDERED, (state,), again=True)

    def count(self, last: Stage | None = None) -> int:
        """The greatest number of different trees in all stages before this one.

        For a finished stage the number is exact; otherwise equal trees may be counted twice.
        """
        return sum(self._exact.get(stage, self._survey.most[stage]) for stage in _before(last))

    @property
    def is_estimated(self) -> bool:
        """Whether `count` is an upper bound: not all stages are finished."""
        return len(self._exact) < len(Stage)

    @cached_property
    def _survey(self) -> Survey:
        return surveyed(self._recording, self._named, self._check, self._idle)

    def _windows(self, stage: Stage) -> Iterator[Sequence[int]]:
        """Numbers of moments, in order in each window."""
        wanted = self._distinct(stage) if self._alike and stage in _OWED else self._survey.moments_of(stage)
        size = self._survey.window(stage)
        if size >= len(wanted):
            yield wanted
            return
        order = array("Q", wanted)
        if stage not in _OWED:
            # A time limit then cuts the work evenly over the whole recording.
            random.Random(f"{self.seed}:{stage.name}:points").shuffle(order)  # noqa: S311
        for begin in range(0, len(order), size):
            yield sorted(order[begin : begin + size])

    def _distinct(self, stage: Stage) -> Sequence[int]:
        """Of the acknowledgements at which the same files have something pending the last one."""
        wanted = self._survey.moments_of(stage) if stage is Stage.ACKNOWLEDGED else ()
        found: dict[frozenset[bytes], int] = {}
        for place, moment in zip(wanted, self._moments(wanted), strict=True):
            found[frozenset(_NUMBER.sub(b"#", path) for point in moment for path in _pending_at(point))] = place
        return sorted(found.values())

    def _points(self, wanted: Sequence[int]) -> Iterator[Point]:
        return chain.from_iterable(self._moments(wanted))

    def _moments(self, wanted: Sequence[int]) -> Iterator[Sequence[Point]]:
        if (held := self._survey.held) is not None:
            yield from (held[place] for place in wanted)
            return
        due = iter(wanted)
        place = next(due, None)
        for number, moment in enumerate(moments(self._recording, self._idle)):
            self._check()
            if number == place:
                yield moment
                place = next(due, None)
            if place is None:
                return

    def _make(self, stage: Stage, window: Sequence[int], seen: _Seen) -> Iterator[Candidate]:
        found: dict[str, list[State]] = {}
        for point in self._points(window):
            if stage is Stage.REPLACED and not point.takes_away:
                continue
            every = states(point, seed=self.seed, kinds=_KINDS[stage])
            # The first of them has no pending byte at all.
            for state in islice(every, 1) if stage is Stage.REPLACED else every:
                self._check()
                found.setdefault(state.hash, []).append(state)
        candidates = [
            Candidate(stage, tuple(legal), again) for tree, legal in found.items() for again in seen.add(tree, legal)
        ]
        if stage in _DRAWN:
            random.Random(f"{self.seed}:{stage.name}").shuffle(candidates)  # noqa: S311
        yield from candidates


class _Seen:
    """The trees that were made, each with the operations after which it was legal, as ranges that do not touch."""

    def __init__(self) -> None:
        self._ranges: dict[str, Sequence[range]] = {}

    def __contains__(self, tree: str) -> bool:
        return tree in self._ranges

    def add(self, tree: str, legal: Iterable[State]) -> Iterator[bool]:
        """Yields whether this tree was made before; yields nothing if all of its points are known as well."""
        known = self._ranges.get(tree, ())
        numbers = [state.point.numbers for state in legal]
        if all(any(one.start >= old.start and one.stop <= old.stop for old in known) for one in numbers):
            return
        if tree not in self._ranges and len(self._ranges) == _MOST_SEEN:
            # A tree that is forgotten may be tried twice.
            del self._ranges[next(iter(self._ranges))]
        self._ranges[tree] = _joined([*known, *numbers])
        yield bool(known)


def _pending_at(point: Point) -> Iterator[bytes]:
    """The paths that have bytes or changes of names pending."""
    yield from (point.paths.get(file, b"") for file, units in point.units.items() if units)
    yield from (change.path for move in point.moves for change in move.changes)


def _joined(ranges: Iterable[range]) -> Sequence[range]:
    joined: list[range] = []
    for one in sorted(ranges, key=lambda one: one.start):
        if joined and one.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, one.stop))
        else:
            joined.append(one)
    return joined


def _before(last: Stage | None) -> Sequence[Stage]:
    every = list(Stage)
    return every if last is None else every[: every.index(last)]
