"""The attacks that the happenings of a case's session amount to, each with the operation that was attacked. Pure.

retry        the same arguments as a call before, which was accepted or unanswered: in the same process, in another
             one, in one that was started since, and after the horizon
concurrent   under way at the same time, in two workers: the same operation, or a declared rival (`beside`)
kill         SIGKILL while it was under way, or as the first that came after its answer
store        called after the harness, or a provocation, took the store away, damaged or replaced it
volume       between two observations of which one shows `volume` rows, or after `volume` calls with an effect
clock        called at a time before, or after, that of an earlier call
inert        refused between two observations of the state, with nothing but refusals between them
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.conformance.matrix.walk import (
    ACCEPTED,
    REFUSED,
    Began,
    Called,
    Changed,
    Died,
    Happening,
    Observed,
    Provoked,
    Searched,
)
from holdfast.specs import Contract
from holdfast.specs.matrix import LATER, WHILE, Attack, Hook, Matrix, cell

# A race has at most as many calls.
_RECENT = 64
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


@dataclass(frozen=True, slots=True)
class _Before:
    """An earlier call with the same arguments, in one process: its time, its end, and the newest process then."""

    moment: datetime
    received: int
    newest: int


class Shown:
    """Counts attacks by row and cell."""

    def __init__(
        self, contract: Contract, matrix: Matrix, *, change_of: Callable[[Changed], Attack | None], tells: set[str]
    ) -> None:
        """`change_of` says what a change of a file does to the store, `tells` the notes of steps that judge `data`."""
        self.counts: Counter[tuple[str, str]] = Counter()
        self._matrix, self._change_of, self._tells = matrix, change_of, tells
        self._horizon = horizon_of(contract, matrix)
        self._reset(absent=False)

    def read(self, happenings: Iterable[Happening]) -> None:
        """Count what they show."""
        for each in happenings:
            if isinstance(each, Called):
                self._called(each)
            elif isinstance(each, Began):
                self._settle(large=False)
                self._reset(absent=each.absent)
            elif isinstance(each, Died):
                if each.row is not None:
                    self._count(each.row, LATER[Attack.KILL] if each.later else Attack.KILL)
            elif isinstance(each, Provoked):
                self._provoked(each)
            elif isinstance(each, Observed):
                self._observed(each)
            elif isinstance(each, Changed):
                self._changed(each)
            elif isinstance(each, Searched):
                for row in self._refused:
                    self._count(row, Attack.DISCLOSURE)
        self._settle(large=False)

    def _reset(self, *, absent: bool) -> None:
        self._past: dict[tuple[str, str], dict[tuple[int, int], _Before]] = {}
        self._recent: list[Called] = []
        self._moments: tuple[datetime, datetime] | None = None
        self._store: Attack | None = Attack.MISSING if absent else None
        self._changed_at, self._ran = 0, False
        self._lost: set[str] = set()
        self._armed: dict[int, Attack] = {}
        self._lasting: Attack | None = None
        self._segment: list[Called] = []
        # How many calls had an effect in this session.
        self._made = 0
        self._large = self._bracketed = self._dirty = False
        # Whether it was dirty before the harness changed the store. That holds again once the store is back.
        self._was_dirty = False
        self._refused: set[str] = set()

    def _count(self, row: str, attack: Attack, subject: str = "") -> None:
        self.counts[row, cell(attack, subject)] += 1

    # Calls

    def _called(self, call: Called) -> None:
        self._retry(call)
        self._concurrent(call)
        self._deprived(call)
        self._clock(call)
        self._segment.append(call)
        self._made += call.is_new
        if call.outcome != REFUSED:
            self._dirty = self._was_dirty = True
            return
        self._refused.add(call.row)
        if call.note in self._tells:
            self._count(call.row, Attack.DISCLOSURE)

    def _retry(self, call: Called) -> None:
        if call.outcome not in (ACCEPTED, REFUSED, None):
            return
        key = call.row, json.dumps(call.args, sort_keys=True)
        past = self._past.setdefault(key, {})
        # A rival in a race is no retry.
        before = {where: each for where, each in past.items() if each.received <= call.sent}
        place = call.worker, call.process
        if place in before:
            self._count(call.row, Attack.RETRY_HERE)
        if any(worker != call.worker for worker, _ in before):
            self._count(call.row, Attack.RETRY_ELSEWHERE)
        if any(call.process > each.newest for each in before.values()):
            self._count(call.row, Attack.RETRY_RESTARTED)
        if self._horizon is not None and any(call.now - each.moment > self._horizon for each in before.values()):
            self._count(call.row, Attack.RETRY_LATER)
        if call.outcome != REFUSED:
            past.setdefault(place, _Before(call.now, call.received, call.newest))

    def _concurrent(self, call: Called) -> None:
        for other in self._recent:
            if other.worker != call.worker and other.received > call.sent and call.received > other.sent:
                if other.row == call.row:
                    self._count(call.row, Attack.CONCURRENT)
                else:
                    self._count(call.row, Attack.BESIDE, other.row)
                    self._count(other.row, Attack.BESIDE, call.row)
        self._recent = [*self._recent[-_RECENT:], call]

    def _deprived(self, call: Called) -> None:
        armed = self._armed.pop(call.worker, None)
        for attack in (armed, self._lasting):
            if attack is not None:
                self._count(call.row, attack)
        if self._store is not None:
            # It ran when the store was changed, or was started on what was left. To a command, which is a process of
            # its own, the mailbox is what runs.
            runs = self._ran if " " in call.row else 0 < call.process <= self._changed_at
            self._count(call.row, WHILE[self._store] if runs else self._store)

    def _clock(self, call: Called) -> None:
        if self._moments is None:
            self._moments = call.now, call.now
            return
        first, last = self._moments
        if call.now < last:
            self._count(call.row, Attack.CLOCK_BACK)
        if call.now > first:
            self._count(call.row, Attack.CLOCK_FORWARD)
        self._moments = min(first, call.now), max(last, call.now)

    # What is done around them

    def _provoked(self, each: Provoked) -> None:
        self._dirty = self._was_dirty = True
        hook = self._matrix.hooks.get(each.name)
        attack = None if hook is None else _attack(hook, each.args)
        if attack is not None and each.later:
            attack = LATER.get(attack, attack)
        if hook is not None and hook.once:
            if attack is not None:
                self._armed[each.worker] = attack
        elif hook is not None:
            self._lasting = attack

    def _changed(self, each: Changed) -> None:
        before, self._dirty = self._dirty, True
        attack = self._change_of(each)
        if attack is None:
            return
        if self._store is None:
            self._was_dirty = before
        # What was put aside comes back, or what was gone.
        is_back = attack is Attack.REPLACED and self._store is not None
        is_back = is_back and (each.verb == "copy" or each.path in self._lost)
        if attack is Attack.MISSING:
            self._lost.add(each.path)
        elif is_back:
            self._lost.clear()
            # What was done to the store is undone.
            self._dirty = self._was_dirty
        self._store = None if is_back else attack
        self._changed_at, self._ran = each.newest, bool(each.running)

    def _observed(self, each: Observed) -> None:
        large = each.rows >= self._matrix.volume
        # One of something else, and of less, says nothing of how much there is.
        if each.is_state or large:
            self._settle(large=large, state=each.is_state)

    def _settle(self, *, large: bool, state: bool = False) -> None:
        """End the calls between two observations."""
        if large or self._large or self._made >= self._matrix.volume:
            for call in self._segment:
                self._count(call.row, Attack.VOLUME)
        if state and self._bracketed and not self._dirty:
            for call in self._segment:
                self._count(call.row, Attack.INERT, call.reason)
        if state:
            self._bracketed, self._dirty = True, False
        elif self._segment:
            self._bracketed = False
        self._large, self._segment = large, []


def horizon_of(contract: Contract, matrix: Matrix) -> timedelta | None:
    """The time after which a retry is late."""
    parameter = None if matrix.horizon is None else contract.parameters.get(matrix.horizon)
    if parameter is None or not isinstance(parameter.value, int):
        return None
    return timedelta(seconds=parameter.value * _SECONDS[str(parameter.unit)])


def _attack(hook: Hook, args: Mapping[str, Any]) -> Attack | None:
    value = args.get(hook.argument)
    return hook.does.get(str(value).lower() if isinstance(value, bool) else str(value))
