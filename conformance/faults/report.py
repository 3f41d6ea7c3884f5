"""The result of a layer, and its counts while it runs.

Only `SweepReport.clean` is a pass. A layer that could not observe all, tried less than its floor in its time, or tried
nothing, is not clean.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from pathlib import Path
from typing import TypeAlias

from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.recording import Event, Recording

# The deadline of a whole command: after it every wait ends, and unfinished work does not count


class OutOfTimeError(Exception):
    """The time has ended. It says nothing of unfinished work: a trial that was cut off does not count."""


class Deadline:
    """A deadline on the monotonic clock; without seconds there is none."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds` from now on."""
        self.at = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, or 0."""
        return max(0.0, self.at - time.monotonic())

    def check(self) -> None:
        """Raises OutOfTimeError if the deadline is over."""
        if time.monotonic() >= self.at:
            raise OutOfTimeError("the time is over")


@unique
class Layer(StrEnum):
    """What is done to an implementation: in words, for `holdfast crash`, and in the faults of a contract.

    Those that are `recorded` are judged from recordings, or the tracer itself strikes in them: trials of a `Sweep`. The
    others need only starts and answers: trials of `Dependencies`.
    """

    def __new__(cls, words: str, option: str = "", contract: str = "", recorded: str = "") -> Layer:
        layer = str.__new__(cls, words)
        layer._value_, layer.option, layer.contract, layer.is_recorded = words, option, contract, bool(recorded)
        return layer

    option: str
    contract: str
    is_recorded: bool

    POWER = "power loss", "power", "power-loss", "recorded"
    KILL = "kill", "kill", "kill", "recorded"
    # In the middle of writes, spread over all of the run.
    TORN_KILL = "kill within a write", "torn", "kill-within-a-write", "recorded"
    # Power losses while it recovers from a power loss.
    RECOVERY = "crash in recovery", "recovery", "crash-in-recovery", "recorded"
    ERRORS = "errors of calls", "errors", "full-calls", "recorded"
    # Writes that do half of what they were asked, as on a disk that is about to be full.
    SHORT = "short writes", "short", "short-writes", "recorded"
    # What a failed sync had to save is not saved by another.
    SYNC_ERRORS = "error of a sync, then power loss", "sync", "failed-sync", "recorded"
    MISSING = "store missing", "missing", "store-missing"
    TRUNCATED = "store truncated", "truncated", "store-truncated"
    CORRUPT = "store corrupt", "corrupt", "store-corrupt"
    FOREIGN = "store of a foreign format", "foreign", "store-foreign"
    LOST_RUNNING = "store lost while it runs", "lost", "store-lost-running"
    # By another process, all the time or between two transactions of the run.
    LOCKED = "store locked", "locked", "store-locked"
    READ_ONLY = "store read-only", "readonly", "store-read-only"
    # The disk is too small for the work, and later large enough.
    FULL = "disk full", "full", "disk-full"
    DAMAGE = "damaged bytes", "damage", "damaged-bytes"
    # The processes that it started are killed, or stopped, while it works. Do not apply to one that starts none.
    DOWN = "dependency killed", "down", "dependency-killed"
    SLOW = "dependency stopped", "slow", "dependency-stopped"
    SIGNALS = "kill by signals"
    CLOCK_BACK = "clock stepped back", "", "clock-back"
    CLOCK_FORWARD = "clock stepped forward", "", "clock-forward"


# Layers with many restarts for each try: they strike in the first session alone.
IN_ONE = frozenset({Layer.RECOVERY, Layer.SYNC_ERRORS})


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of a run besides its recording; numbers are those of recorded operations.

    `acknowledged`: by the number of the workload's operation, the event that acknowledged it. `crash`: after which
    operation it crashed. `lost`: of the operations that were not durable then, those whose effect is gone, or a part;
    and of the syncs that failed, those that lost what they were to save. `systems`: the file systems on which it is so,
    empty if on all (`Point`). `idle`: before which operations the store had waited for a request.
    """

    acknowledged: Mapping[int, int] = field(default_factory=dict)
    crash: int | None = None
    lost: Collection[int] = ()
    systems: str = ""
    idle: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A promise that a layer broke. `point` is the operation of the recording after or before which it struck, or,
    where nothing is recorded, the number of what was tried; `what` says which of the two.

    `story` says what was pending and lost, or what was done, so that a person can follow it. `kept` is the state of the
    disk as a tar file, beside which lies the recording, if there is one; None if nothing is kept, or an earlier one of
    its class is. `marks` are for the picture of the recording, None where nothing is recorded.
    """

    point: int
    verdict: CrashOutcome
    story: str
    kept: Path | None = None
    what: str = "operation"
    marks: Marks | None = None

    def __str__(self) -> str:
        """For a person."""
        return f"at {self.what} {self.point}: {self.verdict}. {self.story}"


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a layer showed. `unproven` says in words why it is no pass although nothing was found; `tally` how much of
    what there is was tried, and from which seed.

    `beside` says in words why there is nothing to try: the layer does not apply. Empty wherever it does. `floor` is how
    many tries a pass needs, or all that there are; `short` how many of them the time did not suffice for. Of those that
    were made, `later` belong to a second session.
    """

    layer: Layer
    tried: int
    total: int
    tally: str
    findings: tuple[BrokenPromise, ...] = ()
    unproven: tuple[str, ...] = ()
    seconds: float = 0.0
    beside: str = ""
    floor: int = 0
    short: int = 0
    later: int = 0

    @property
    def clean(self) -> bool:
        """Whether something was tried, all that matters, and nothing was found; or there is nothing to try."""
        return (self.tried > 0 or bool(self.beside)) and not self.findings and not self.unproven


class RunError(Exception):
    """A run that proves nothing; the text says why."""


class Tally:
    """What a layer has found so far. Its work sets `total`, and counts in `tried`; `noun` says what it counts.

    It owes `floor` tries, or all that there are: fewer show nothing.
    """

    def __init__(self, layer: Layer, *, seed: int, floor: int, most: int) -> None:
        """It stops at `most` findings."""
        self.layer, self.seed, self.floor, self.most = layer, seed, floor, most
        self.tried = 0
        # How many of them in a second session.
        self.later = 0
        self.total = 0
        self.noun = ""
        self.notes = ""
        self.beside = ""
        self.findings: list[BrokenPromise] = []
        self.unproven: list[str] = []
        # Those that it is the sum of, as long as they go on.
        self.parts: list[Tally] = []

    @property
    def owes(self) -> bool:
        """Whether a pass needs more tries."""
        return any(part.owes for part in self.parts) if self.parts else self.tried < self.floor

    @property
    def enough(self) -> bool:
        """Whether a layer can stop. A loss before the first acknowledgement is no broken promise."""
        return sum(one.verdict.kind is not CrashClass.INIT for one in self.findings) >= self.most

    def cannot_tell(self, why: str) -> None:
        """Note why nothing is proven, once for all states that show it."""
        if not self.unproven:
            self.unproven.append(why)

    def has_no_point(self, recording: Recording, lacked: str, doubt: str = "") -> None:
        """The recording has no `lacked`: the layer does not apply, if nothing else can have done it unseen."""
        calls = [one.call for one in recording.operations if not isinstance(one.action, Event)]
        doubt = doubt or ("a process that is not traced has changed files" if "unseen" in calls else "")
        doubt = doubt or " and ".join(f"{call} was refused" for call in recording.refused)
        doubt = doubt or ("" if calls else "it was not seen to do anything to a file")
        if doubt:
            self.cannot_tell(f"no {lacked} was recorded, and that there is none is not shown: {doubt}")
        else:
            self.beside = f"does not apply: none of its {len(calls)} recorded operations on files is a {lacked}"
            self.floor = 0

    def must_be_reached(self, expected: str) -> None:
        """Where nothing is left to try, and less than half of what is owed was reached, nothing is proven."""
        if self.tried * 2 < min(self.floor, self.total):
            self.cannot_tell(f"only {self.tried} of {self.total} {self.noun} were reached; expected {expected}")

    @property
    def words(self) -> str:
        """How much of what there is was tried."""
        noun = f" {self.noun}" if self.noun else ""
        return f"{self.tried} of {self.total}{noun}, seed {self.seed}{self.notes}"


# The work of a layer: one try after the other, each begun when it is asked to go on. It may raise RunError, OSError and
# OutOfTimeError.
Work: TypeAlias = Callable[[Tally], Iterator[None]]


def summed(works: Mapping[str, Work], tally: Tally) -> Iterator[None]:
    """The same layer at different times, each by its name; one that owes tries comes before one that does not.

    `tally` becomes the sum of all. A finding says at which time it was found, of the first alone it does not.
    """
    every = {name: Tally(tally.layer, seed=tally.seed, floor=tally.floor, most=tally.most) for name in works}
    going = {name: work(every[name]) for name, work in works.items()}
    tally.parts = list(every.values())
    while going:
        name = min(going, key=lambda one: (not every[one].owes, every[one].tried))
        part = every[name]
        try:
            next(going[name])
        except StopIteration:
            del going[name]
            tally.parts = [every[name] for name in going]
        except RunError as error:
            raise RunError(f"{_at(name)}{error}") from error
        _sum(tally, every)
        if part.enough:
            return
        if name in going:
            yield


def _sum(tally: Tally, every: Mapping[str, Tally]) -> None:
    parts = every.values()
    tally.tried, tally.total = sum(part.tried for part in parts), sum(part.total for part in parts)
    tally.later = sum(part.tried for name, part in every.items() if name)
    tally.floor = sum(min(part.floor, part.total or part.floor) for part in parts)
    tally.noun = next((part.noun for part in parts if part.noun), "")
    shares = [f", {part.tried} of them {name}" for name, part in every.items() if name and part.tried]
    tally.notes = "".join((*shares, *dict.fromkeys(part.notes for part in parts)))
    if all(part.beside or not part.floor for part in parts):
        tally.beside = next((part.beside for part in parts if part.beside), "") if not tally.total else ""
    found = [(name, one) for name, part in every.items() for one in part.findings]
    tally.findings = [replace(one, story=f"{_at(name)}{one.story}") for name, one in found]
    tally.unproven = [f"{_at(name)}{why}" for name, part in every.items() for why in part.unproven][:1]


def _at(name: str) -> str:
    return f"{name.capitalize()}: " if name else ""


class Trial:
    """A layer in progress: it gets time once or more often, and reports on all of it."""

    def __init__(self, tally: Tally, work: Work, deadline: Deadline | None = None) -> None:
        """After the deadline nothing is tried, even if the floor is not reached."""
        self.tally, self._tries, self._deadline = tally, work(tally), deadline or Deadline()
        self._seconds, self._is_over, self._is_whole = 0.0, False, False

    @property
    def is_over(self) -> bool:
        """Whether more time would change nothing."""
        return self._is_over

    def go_on(self, seconds: float) -> None:
        """Try for `seconds`, and always until the floor is reached."""
        began = time.monotonic()
        while not self._is_over and (self.tally.owes or time.monotonic() < began + seconds):
            self._next()
        self._seconds += time.monotonic() - began

    def report(self, seconds: float = 0.0) -> SweepReport:
        """What it showed after `seconds` more."""
        self.go_on(seconds)
        tally = self.tally
        is_short = tally.owes and not self._is_whole and not tally.findings and not tally.unproven
        # Where nothing is left to try, all that there is was tried.
        floor = min(tally.floor, tally.tried if self._is_whole else tally.total or tally.floor)
        if is_short:
            lacking = f"a pass needs {floor}" if tally.tried < floor else "the checks after the last one were not made"
            tally.unproven.append(f"the time was over: {tally.words}; {lacking}")
        return SweepReport(
            tally.layer,
            tally.tried,
            tally.total,
            tally.words,
            tuple(tally.findings),
            tuple(tally.unproven),
            self._seconds,
            tally.beside,
            floor,
            max(0, floor - tally.tried) if is_short else 0,
            tally.later,
        )

    def _next(self) -> None:
        try:
            self._deadline.check()
            next(self._tries)
            # What it will be asked for next is made when it is asked for.
            self._is_over = self.tally.enough
        except StopIteration:
            self._is_over = self._is_whole = True
        except OutOfTimeError:
            self._is_over = True
        except (RunError, OSError) as error:
            # An error that keeps it from proving anything ends in the report.
            self._is_over = True
            self.tally.unproven.append(str(error))
