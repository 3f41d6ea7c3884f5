"""The size of a recording: its greatest number of states, and how many of its points fit into memory at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique

from holdfast.conformance.faults.model.contents import CHUNK
from holdfast.conformance.faults.model.disk import Point, moments
from holdfast.conformance.faults.model.states import MANY, RANDOM_STATES, TORN_FILES
from holdfast.conformance.faults.recording import Event, Mapped, Names, Operation, Recording, Sync, SyncAll, Write

# What the points of a window may take, in bytes; of a point what it takes beside its files, its states included, and
# for each file and each pending change of names.
_ROOM, _A_POINT, _A_FILE, _A_MOVE = 1 << 26, 20_000, 200, 8
# What the states of a window may take to make, in microseconds; of a state what it takes, and for each file and each
# pending operation.
_WORK, _A_STATE, _OF_FILE, _OF_PENDING = 2_000_000, 150, 1, 2
# A write is torn at this number of places at most.
_CUTS = 8
# The size of all files is asked for once in this number of points.
_SIZED_EVERY = 64


@unique
class Stage(StrEnum):
    """What is tried, from first to last."""

    ACKNOWLEDGED = "unsynced dropped at each acknowledgement"
    REPLACED = "sizes and names without bytes at each acknowledgement after which others are to be replaced"
    ORDERED = "everything and the minimum at each sync and change of names"
    PARTED = "torn, zero-filled, names and data apart"
    SINGLE = "one operation more or less, first names"
    RANDOM = "drawn"

    def is_from(self, stage: Stage) -> bool:
        """Whether it is this stage or a later one."""
        order = list(Stage)
        return order.index(self) >= order.index(stage)


@dataclass(frozen=True, slots=True)
class Survey:
    """`most` states are there for each stage, equal ones counted each time; `work` is what they take to make, in
    microseconds. There are `count` moments, of `points` together. `size` is the most that all files had in bytes,
    `touched` what was written, in whole chunks, `files` how many there were, `moves` how many changes of names were
    pending. `held` are all moments, where there is room for them, `last` how the disk stood at the end.
    """

    count: int
    places: Mapping[Stage, Sequence[int]]
    most: Mapping[Stage, int]
    work: Mapping[Stage, int]
    size: int
    touched: int
    files: int
    points: int
    moves: int
    held: Sequence[Sequence[Point]] | None
    last: Point

    def moments_of(self, stage: Stage) -> Sequence[int]:
        """The moments of a stage, by their places in the recording."""
        return self.places.get(stage, range(self.count))

    def window(self, stage: Stage) -> int:
        """How many moments of a stage are handled at once: one or more."""
        count = max(1, len(self.moments_of(stage)))
        by_work = _WORK * count // max(1, self.work[stage])
        if self.held is not None:
            return max(1, by_work)
        # Each moment may have all its files to itself, or else what was written since the one before.
        each = -(-self.points * _room_of_a_point(self.files, self.moves) // self.count)
        by_room = max(_ROOM // (each + self.size), (_ROOM - min(self.touched, _ROOM)) // each)
        return max(1, min(by_work, by_room))


def surveyed(
    recording: Recording,
    acknowledgements: Collection[int] | None,
    check: Callable[[], None],
    idle: Collection[int] = (),
) -> Survey:
    """Read a recording. Without `acknowledgements` every event is one. `check` may raise to end it."""
    most, work = dict.fromkeys(Stage, 0), dict.fromkeys(Stage, 0)
    places = {stage: array("Q") for stage in (Stage.ACKNOWLEDGED, Stage.REPLACED, Stage.ORDERED)}
    ordering = places[Stage.ORDERED]
    held: list[Sequence[Point]] | None = []
    events = recording.operations if acknowledgements is None else ()
    named = {one.number for one in events if isinstance(one.action, Event)} | {*(acknowledgements or ())}
    due = sorted(named, reverse=True)
    operations = iter(recording.operations)
    action: Operation | None = None
    size = touched = files = moves = count = place = ways_before = 0
    moment: Sequence[Point] = ()
    for place, moment in enumerate(moments(recording, idle)):
        check()
        # What several ways have in common.
        point, ways = moment[0], len(moment)
        while point.first and (action is None or action.number < point.first):
            action = next(operations)
        if action is not None and isinstance(action.action, Write | Mapped):
            touched += (len(action.action.data) // CHUNK + 2) * CHUNK
        files = max(files, len(point.live))
        moves = max(moves, *(len(one.moves) for one in moment), 0)
        if place % _SIZED_EVERY == 0:
            size = max(size, sum(one.size for one in point.live.values()))
        while due and due[-1] < point.first:
            due.pop()
        each = _A_STATE + _OF_FILE * len(point.live)
        if due and due[-1] <= point.last:
            for stage in (Stage.ACKNOWLEDGED, Stage.REPLACED):
                if stage is Stage.ACKNOWLEDGED or any(one.takes_away for one in moment):
                    places[stage].append(place)
                    most[stage] += ways
                    work[stage] += ways * each
        orders = not place
        if action is not None and point.first and _orders(action):
            # Just before a sync most operations are pending.
            orders = True
            if place and ordering[-1] != place - 1:
                ordering.append(place - 1)
                most[Stage.ORDERED] += 2 * ways_before
        if orders:
            ordering.append(place)
            most[Stage.ORDERED] += 2 * ways
        pending = sum(map(len, point.units.values()))
        for one in moment:
            for stage, states in _counts(one, pending).items():
                most[stage] += states
                work[stage] += states * (each + _OF_PENDING * pending)
        count, ways_before = count + ways, ways
        if held is not None:
            held.append(moment)
            if touched + count * _room_of_a_point(files, moves) > _ROOM:
                held = None
    if ordering[-1] != place:
        ordering.append(place)
        most[Stage.ORDERED] += 2 * ways_before
    last = moment[0]
    size = max(size, sum(one.size for one in last.live.values()))
    work[Stage.ORDERED] = most[Stage.ORDERED] * (_A_STATE + _OF_FILE * files)
    return Survey(place + 1, places, most, work, size, touched, files, count, moves, held, last)


def _room_of_a_point(files: int, moves: int) -> int:
    return _A_POINT + _A_FILE * files + _A_MOVE * moves


def _orders(operation: Operation) -> bool:
    action = operation.action
    return isinstance(action, Names | Sync | SyncAll) or (isinstance(action, Write) and action.durable)


def _counts(point: Point, pending: int) -> Mapping[Stage, int]:
    """The greatest number of states of the randomised stages."""
    moves, files = len(point.moves), min(len(point.units), TORN_FILES)
    if not (moves or pending):
        return {Stage.PARTED: 1}
    many = min(pending, MANY), min(moves, MANY)
    single = 2 * many[0] + 2 * many[1]
    return {Stage.PARTED: 5 + 4 * files + _CUTS, Stage.SINGLE: single, Stage.RANDOM: RANDOM_STATES}
