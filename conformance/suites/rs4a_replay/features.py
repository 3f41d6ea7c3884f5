"""The situations that histories of a registrar are steered by.

A situation belongs to a key and a process: what became of the key, what this process has told of it, where the clock
is, and what was done with it last, here or elsewhere. Others belong to the registrar. All come from the model alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.conformance.suites.rs4a_replay.generate import WORKERS, Step
from holdfast.conformance.suites.rs4a_replay.model_state import Effect, ModelState
from holdfast.conformance.suites.rs4a_replay.rows import instant

FREE, REGISTERED, FAILED, COMPENSATED = "the key is free", "it is registered", "it failed", "it is compensated"
_STATES = {"COMMITTED": REGISTERED, "FAILED": FAILED, "COMPENSATED": COMPENSATED}
TAKEN = (REGISTERED, FAILED, COMPENSATED)
ALL = (FREE, *TAKEN)
# What the clock says of a key that was taken, where there is a horizon.
SINCE = ("under a tombstone", "past its horizon", "before its time")
# What a process knows of a key: it told nothing of it, its present state, or an earlier one; and of its status.
_ANOTHER_STATUS = "and this process told another state as its status"
KNOWN = (
    "which this process never told",
    "which this process told",
    "and this process told another state",
    _ANOTHER_STATUS,
)
# What was done with a key last, by the step that names it; with the states in which it can leave the key.
_BROKEN_OFF, _RIVALLED = "broken off", "met by a rival"
LAST = {
    "register": "register",
    "fail": "fail",
    "compensate": "compensate",
    "abort": _BROKEN_OFF,
    "lose": _BROKEN_OFF,
    "interrupt": _BROKEN_OFF,
    "overtake": _RIVALLED,
    "race": _RIVALLED,
}
LEFT = {"fail": TAKEN}
WHERE = ("here", "elsewhere")
# Features of the registrar.
_OVER, DUE, NOTHING_DUE = "a horizon is over", "a tombstone is due", "no tombstone is due"
_BACK, _FAR_BACK = "the clock went back", "a key lies ahead of the clock by more than its horizon"
_LONG_AGO, STARTED = "a nonce was issued a day ago", "this process was started again"
REGISTRAR = (_OVER, DUE, NOTHING_DUE, _BACK, _FAR_BACK, _LONG_AGO, STARTED)
MUTE = "the audit cannot be written"
MUTE_STARTED = "the audit cannot be written, and this process was started again"
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a step would meet: the keys that were named, by number, and the world. `alone` is the only worker then."""

    effects: Mapping[int, Effect | None]
    world: ModelState
    now: str
    nonces: Sequence[str]
    horizon_s: int | None
    alone: int | None


@dataclass(slots=True)
class TraceLog:
    """What the model does not say: which state of a key each worker told, and what was done with it last.

    `status` is what it told last of those that were asked for.
    """

    told: dict[tuple[int, int], str] = field(default_factory=dict)
    status: dict[tuple[int, int], str] = field(default_factory=dict)
    last: dict[int, tuple[str, int]] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    latest: datetime | None = None
    issued: datetime | None = None

    def note(self, step: Step, around: Snapshot) -> None:
        """A step was done."""
        now = instant(around.now)
        self.latest = max(self.latest or now, now)
        if self.issued is None and around.nonces:
            self.issued = now
        if step.what in ("restart", "kill", "interrupt") and around.alone is None:
            self.started.add(step.worker)
            self.told = {met: state for met, state in self.told.items() if met[0] != step.worker}
            self.status = {met: state for met, state in self.status.items() if met[0] != step.worker}
        if step.what == "resolve":
            self.status[step.worker, step.key] = became(around.effects.get(step.key))
        if step.what in LAST:
            self.last[step.key] = (LAST[step.what], step.worker)
        if step.what not in (*LAST, "retry", "resolve"):
            return
        workers = range(WORKERS) if step.rival is not None else (step.worker,)
        for worker in workers if step.what != "interrupt" else ():
            self.told[worker, step.key] = became(around.effects.get(step.key))


def became(effect: Effect | None) -> str:
    """What became of a key."""
    return FREE if effect is None else _STATES[effect.state]


def thing(key: int, worker: int) -> str:
    """The name of a key as one process meets it."""
    return f"{key}@{worker}"


def situations(around: Snapshot, traces: TraceLog) -> dict[str, frozenset[str]]:
    """The features of each key at each worker, and of the registrar by an empty name."""
    found = {"": frozenset(_registrar(around, traces))}
    for key in (*around.effects, new_key(around)):
        for worker in range(WORKERS) if around.alone is None else (around.alone,):
            found[thing(key, worker)] = frozenset(_key(around, traces, key, worker))
    return found


def new_key(around: Snapshot) -> int:
    """The number of a key that no step has named."""
    return max((*around.effects, 99)) + 1


def _registrar(around: Snapshot, traces: TraceLog) -> Iterator[str]:
    if around.world.mute:
        yield _mute(around, traces)
        return
    over = [_is_over(each, around) for each in around.world.effects.values()]
    if any(over):
        yield _OVER
    due = [_is_over(each, around) and not each.tombstoned_at for each in around.world.effects.values()]
    yield DUE if any(due) else NOTHING_DUE
    if traces.latest is not None and instant(around.now) < traces.latest:
        yield _BACK
    if any(_is_far_ahead(each, around) for each in around.world.effects.values()):
        yield _FAR_BACK
    if traces.issued is not None and instant(around.now) > traces.issued + _DAY:
        yield _LONG_AGO


def _mute(around: Snapshot, traces: TraceLog) -> str:
    return MUTE_STARTED if around.alone in traces.started else MUTE


def _is_over(effect: Effect, around: Snapshot) -> bool:
    if around.horizon_s is None:
        return False
    return instant(around.now) > instant(effect.row["committed_at"]) + timedelta(seconds=around.horizon_s)


def _is_far_ahead(effect: Effect, around: Snapshot) -> bool:
    if around.horizon_s is None or effect.tombstoned_at:
        return False
    return instant(around.now) < instant(effect.row["committed_at"]) - timedelta(seconds=around.horizon_s)


def _key(around: Snapshot, traces: TraceLog, key: int, worker: int) -> Iterator[str]:
    effect = around.effects.get(key)
    state = became(effect)
    yield state
    told = traces.told.get((worker, key))
    yield f"{state}, {KNOWN[0 if told is None else 1 if told == state else 2]}"
    if traces.status.get((worker, key), state) != state:
        yield f"{state}, {_ANOTHER_STATUS}"
    if effect is not None:
        if effect.tombstoned_at:
            yield f"{state}, {SINCE[0]}"
        elif _is_over(effect, around):
            yield f"{state}, {SINCE[1]}"
        if instant(around.now) < instant(effect.row["committed_at"]):
            yield f"{state}, {SINCE[2]}"
    last = traces.last.get(key)
    if last is not None:
        yield f"last: {last[0]} {WHERE[last[1] != worker]}"


def of_near(features: Collection[str]) -> frozenset[str]:
    """The features that count where something nearly was an operation: each state of a key, known elsewhere or not."""
    return frozenset(each for each in features if not each.endswith(KNOWN) and not each.startswith("last: "))
