"""What is put to the test, behind the one protocol that it speaks: its operations, its answers, what it shows.

A `Subject` is written once for a protocol, not for an implementation: an implementation learns its work directory and
nothing of crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeAlias

# What a subject shows of its state: facts by name. Nothing else of it is judged.
Facts: TypeAlias = Mapping[str, str]

# With one fact an operation is there or not; only with two can it be there by half.
MIN_FACTS = 2


class SubjectError(Exception):
    """A subject does not do what every subject must (start, show its facts, stop); the text says what came instead."""


class SubjectHangError(SubjectError):
    """Nothing came within the subject's limits of time. To fail is right for one that is deprived, to hang never."""


class SubjectExposedError(SubjectError):
    """What a crash left shows something in clear that has to be hidden; the text says what, and where."""

    expected = "nothing in clear that is hidden"


class SubjectReopenedError(SubjectError):
    """It accepts a request that it must refuse after every crash; the text says which."""

    expected = "what is never accepted again to be refused after each restart"


class SubjectPartlyError(SubjectError):
    """It refuses to report some of its facts and reports others, `reported`; `about` says of which names these are."""

    def __init__(self, text: str, reported: Facts, about: Callable[[str], bool]) -> None:
        super().__init__(text)
        self.reported, self.about = reported, about


@unique
class Outcome(StrEnum):
    """How an operation was answered. Refused: with a reason, and without effect. An error leaves the effect open."""

    OK = "ok"
    REFUSED = "refused"
    ERROR = "error"
    SILENT = "no answer"


@dataclass(frozen=True, slots=True)
class SubjectAnswer:
    """An answer; times are CLOCK_MONOTONIC in nanoseconds. `came_at` is when it was known, None if none came.

    `sent_at` lies before the first byte left. `text` is the reason, or what came instead of an answer, in words.
    `new` is what a success says of itself: done now, or known from before; None where the protocol does not say.
    `hung`: there is no answer because none came within the subject's limits of time.
    """

    outcome: Outcome
    sent_at: int
    came_at: int | None = None
    text: str = ""
    new: bool | None = None
    hung: bool = False

    @property
    def acked_at(self) -> int | None:
        """When the success was known; None without it."""
        return self.came_at if self.outcome is Outcome.OK else None


@dataclass(frozen=True, slots=True)
class Op:
    """One operation: its number from 1 on, how the subject is asked for it, and the facts that it sets as one.

    `anew`: sent again it is done again, as a rebuild is, and says so. `apart` are beginnings of names: until it is
    acknowledged, these facts may be as before it, gone, or as after it, each for itself. `follows` are beginnings of
    names too: what is recorded after its effect, and is due once it was acknowledged. A retry need not bring it.
    `idle`: there is nothing left for it to do, so that it sets no fact. `part` names another request of the same
    operation; see `Instead`.
    `spared`: there is work for it once only, so that the session before a second one leaves it out. `command`: it is a
    command, which says no more than whether it was done; where it was done before, it may fail.
    `untrue` are texts of refusals that are never true of its first sending, such as that it was done before.
    `again`: a client sends it for the second time, after a fault.
    """

    number: int
    text: str
    facts: Facts
    anew: bool = False
    apart: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    idle: bool = False
    part: str = ""
    instead: Instead | None = None
    untrue: tuple[str, ...] = ()
    spared: bool = False
    command: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Instead:
    """What a client comes back with in place of a retry: something else, `asked` under the same names, and shorter.

    `whole` is accepted only if that is whole. Facts whose names begin with one of `about` may be of either.
    """

    asked: Op
    whole: Op
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked, in this order; small: three to ten operations find what hundreds do. `before` is there already.

    A value is set by one operation only, so that a fact identifies it. `probe` is a new write for after the crash.
    `once`: what was acknowledged may be sent again, and must then be known from before, or be refused. `prior`: no
    refusal will do, for what is whole can be known from before. `later` are the operations of a second session, and
    what is asked while something is away; without them `ops` are shared out. `long`: they are one long session, for
    what a process does only after many operations, and not all of them are looked at.
    """

    ops: tuple[Op, ...]
    probe: Op
    before: Facts = field(default_factory=dict)
    once: bool = False
    prior: bool = False
    later: tuple[Op, ...] = ()
    long: bool = False

    @property
    def every(self) -> tuple[Op, ...]:
        """All its operations, the probe as the last."""
        return (*self.ops, *self.later, self.probe)

    @property
    def sessions(self) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
        """What a session before a second one asks for, and what the second one asks for.

        Without `later` each has half of `ops`. What the first one spares, the second one is the first to do.
        """
        if not self.later:
            half = len(self.ops) // 2
            return self.ops[:half], self.ops[half:]
        likes = {op.number: like.facts for op, like in zip(self.later, self.ops, strict=False)}
        later = tuple(replace(op, facts=likes[op.number], idle=False) if op.spared else op for op in self.later)
        return tuple(op for op in self.ops if not op.spared), later

    @property
    def begun(self) -> Workload:
        """The same where a first session leaves to the second one all that there is work for once only."""
        if not any(op.spared for op in self.ops):
            return self
        first, later = self.sessions
        return replace(self, ops=first, later=later)

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that do not rise, too few facts, a value set twice, or prior not once."""
        if self.prior and not self.once:
            raise ValueError("expected `once` where `prior` says what it means")
        set_by: dict[tuple[str, str], int] = dict.fromkeys(self.before.items(), 0)
        for before, op in pairwise(self.every):
            if op.number <= before.number:
                raise ValueError(f"expected a number after {before.number} for the next operation, got {op.number}")
        for op in self.every:
            number = op.number
            if len(op.facts) < MIN_FACTS and not op.idle:
                raise ValueError(f"operation {number}: expected {MIN_FACTS} facts or more, got {len(op.facts)}")
            for fact in op.facts.items():
                if fact in set_by:
                    raise ValueError(f"operation {number}: {fact} was set by operation {set_by[fact]} already")
                set_by[fact] = number

    def after(self, numbers: Iterable[int]) -> dict[str, str]:
        """The facts after these operations, the probe's number among them or not; in order of number, each once."""
        facts = dict(self.before)
        wanted = frozenset(numbers)
        for op in self.every:
            if op.number in wanted:
                facts |= op.facts
        return facts


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation that was sent, and its answer."""

    op: Op
    answer: SubjectAnswer


@dataclass(frozen=True, slots=True)
class History:
    """What was sent and what came back, in the order of sending."""

    asked: tuple[Asked, ...]

    def numbers(self, *outcomes: Outcome) -> frozenset[int]:
        """The operations that were answered like this."""
        return frozenset(one.op.number for one in self.asked if one.answer.outcome in outcomes)

    @property
    def must(self) -> frozenset[int]:
        """What must be there after everything was sent: what was acknowledged."""
        return self.numbers(Outcome.OK)

    @property
    def may(self) -> frozenset[int]:
        """What may be there after everything was sent: all but what was refused."""
        return self.numbers(Outcome.OK, Outcome.ERROR, Outcome.SILENT)


class Subject(Protocol):
    """An implementation behind its protocol. One owner, one operation at a time; it sets its own limits of time."""

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """Start on a work directory, and return when it is ready. Raises SubjectError: it failed, in words.

        SubjectHangError: it was not ready in its time.
        `under` are the words of a command that runs another one (a tracer), to go before the implementation's own.
        """

    def submit(self, op: Op) -> SubjectAnswer:
        """Ask for one operation. Never raises: a subject that hangs, is gone or talks nonsense gives no answer."""

    def dump(self) -> Facts:
        """All that it shows. Raises SubjectError; SubjectHangError: nothing came in its time."""

    def stop(self) -> None:
        """End it, by force if it does not end itself, and leave no process behind; nothing if it does not run.

        Raises SubjectError if it had to be forced or ended badly.
        """

    def close(self) -> None:
        """End its session in order, if it has sessions, and stop. Raises SubjectError."""
        self.stop()


def perform(subject: Subject, workload: Workload, *, again: bool = False) -> History:
    """Send the workload to a subject that runs. An operation without an answer is the last: the line is broken.

    `again`: what is refused is sent again at once; the second time it may be done. Then one whose effect is open is the
    last as well: a later one may find a part of it, and do the rest.
    """
    asked: list[Asked] = []
    for op in workload.ops:
        asked.append(Asked(op, subject.submit(op)))
        if again and asked[-1].answer.outcome is Outcome.REFUSED:
            asked.append(Asked(op, subject.submit(op)))
        outcome = asked[-1].answer.outcome
        if outcome is Outcome.SILENT or (again and outcome is Outcome.ERROR):
            break
    return History(tuple(asked))
