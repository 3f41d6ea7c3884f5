"""In which order the states of a recording are worth a restart: what finds the common bugs comes first."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import cached_property
from itertools import groupby

from conformance.faults.model.disk import Point, Profile, points
from conformance.faults.model.states import Kind, State, states
from conformance.faults.recording import Event, Names, Recording, Sync, SyncAll, Write


@unique
class Stage(StrEnum):
    """What is tried, from first to last."""

    ACKNOWLEDGED = "unsynced dropped at each acknowledgement"
    ORDERED = "everything and the minimum at each sync and change of names"
    PARTED = "torn, zero-filled, names and data apart"
    SINGLE = "one operation more or less, first names"
    RANDOM = "drawn"


_KINDS: Mapping[Stage, Collection[Kind]] = {
    Stage.ACKNOWLEDGED: (Kind.MINIMUM,),
    Stage.ORDERED: (Kind.ALL, Kind.MINIMUM),
    Stage.PARTED: (Kind.ALL, Kind.MINIMUM, Kind.NAMES, Kind.DATA, Kind.ZEROS, Kind.TORN),
    Stage.SINGLE: (Kind.ALL_BUT_ONE, Kind.ONLY_ONE, Kind.PREFIX),
    Stage.RANDOM: (Kind.RANDOM,),
}
# Stages that a budget may end in the middle of: drawn all over the recording, for its end is worth as much.
_DRAWN = (Stage.PARTED, Stage.SINGLE, Stage.RANDOM)


@dataclass(frozen=True)
class Candidate:
    """One tree to restart on: `states` has it once for each point of the stage at which it is legal, in order.

    What is everything at one point may be the minimum at another; each state has the words for its own. `again` says
    that an earlier stage had the same tree, at other points: what the restart gave then is to be judged at these too.
    It is not counted twice.
    """

    stage: Stage
    states: tuple[State, ...]
    again: bool

    @property
    def state(self) -> State:
        """Any of the states, to put into a folder."""
        return self.states[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The operations after which a crash may leave this tree, in order."""
        return tuple(sorted({number for state in self.states for number in state.point.numbers}))

    def at(self, number: int) -> State:
        """The state whose words tell of a crash after this operation. Raises LookupError if none may leave the tree."""
        for state in reversed(self.states):
            if number in state.point.numbers:
                return state
        raise LookupError(f"expected one of operations {self.numbers}, got {number}")


class Plan:
    """All candidates of a recording, in order, made as far as they are asked for. The same seed gives the same order.

    `acknowledgements` are the numbers of the events that were acknowledgements; without it every event is one. `idle`
    are those of operations before which nothing was under way, for as long as a client liked.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        profile: Profile = Profile.LINUX,
        seed: int = 0,
        acknowledgements: Iterable[int] | None = None,
        idle: Iterable[int] = (),
    ) -> None:
        self.seed = seed
        self._recording = recording
        self._profile = profile
        events = (one.number for one in recording.operations if isinstance(one.action, Event))
        self._acknowledged = frozenset(events if acknowledgements is None else acknowledgements)
        self._idle = frozenset(idle)
        self._stages: list[list[Candidate]] = []
        self._seen: dict[str, set[int]] = {}

    def __iter__(self) -> Iterator[Candidate]:
        """Candidates from the first on. Stop when the time is over."""
        for place, stage in enumerate(Stage):
            if place == len(self._stages):
                self._stages.append(self._make(stage))
            yield from self._stages[place]

    def everything(self) -> Candidate:
        """What the recording ends with, nothing of it lost."""
        (state,) = states(self.points[-1], kinds=[Kind.ALL])
        return Candidate(Stage.ORDERED, (state,), again=True)

    def count(self) -> int:
        """How many different trees there are in all. Makes what has not been asked for yet: 1,000 take up to 1 s."""
        return sum(not candidate.again for candidate in self)

    def tally(self, tried: int) -> str:
        """How much was done, in the words of the evidence."""
        return f"{tried} of {self.count()} states, seed {self.seed}"

    @cached_property
    def points(self) -> Sequence[Point]:
        """The points of the recording, in order."""
        return tuple(points(self._recording, self._profile, self._idle))

    def _make(self, stage: Stage) -> list[Candidate]:
        found: dict[str, list[State]] = {}
        for point in self._points_of(stage):
            for state in states(point, seed=self.seed, kinds=_KINDS[stage]):
                found.setdefault(state.hash, []).append(state)
        candidates = []
        for tree, legal in found.items():
            known = self._seen.setdefault(tree, set())
            again = bool(known)
            fresh = {number for state in legal for number in state.point.numbers} - known
            known |= fresh
            if fresh:
                candidates.append(Candidate(stage, tuple(legal), again))
        if stage in _DRAWN:
            random.Random(f"{self.seed}:{stage.name}").shuffle(candidates)  # noqa: S311
        return candidates

    def _points_of(self, stage: Stage) -> Iterable[Point]:
        if stage is Stage.ACKNOWLEDGED:
            return [point for point in self.points if not self._acknowledged.isdisjoint(point.numbers)]
        if stage is not Stage.ORDERED:
            return self.points
        # Where file systems differ, several points are of one operation.
        groups = [list(group) for _, group in groupby(self.points, key=lambda point: point.first)]
        wanted = {0, len(groups) - 1}
        for place, group in enumerate(groups):
            if group[0].first and self._orders(group[0].first):
                # Just before a sync most is pending.
                wanted |= {place - 1, place}
        return [point for place in sorted(wanted) for point in groups[place]]

    def _orders(self, number: int) -> bool:
        action = self._recording.operations[number - 1].action
        return isinstance(action, Names | Sync | SyncAll) or (isinstance(action, Write) and action.durable)
