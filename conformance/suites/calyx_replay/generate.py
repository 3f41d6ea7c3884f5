"""What generated histories of a mailbox are made of: scenarios, each about one thing that goes wrong, in any order.

A schedule orders the scenarios, so that each comes up in every run. Within a scenario the dice decide who does it,
when to the microsecond, and where it is interrupted. A step names an envelope by its age: 0 is the last that was made.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES

# As many as every adapter allows.
WORKERS = 2
DAY, _HOUR = 86400.0, 3600.0
# The places of a transaction, and those that the operations without an envelope are sure to reach.
POINTS = ("before_insert", "after_insert", "before_commit", "after_commit")
NEAR_COMMIT = "before_commit"
# How far ahead a clock may be, in seconds: no retention is as long.
AHEAD = 1_000 * _HOUR
# Behind the machine's own time: where a year begins, where one ends, and a day that most years do not have.
LEAPS = ("2100-01-01T00:00:00Z", "2100-12-29T21:00:00Z", "2104-02-28T22:00:00Z")


class Step(Struct, frozen=True):
    """One step: `what` is done by a worker, with an envelope, over a time in seconds.

    `point` is where it is interrupted, `lists` what version 0 left: envelopes that came, others, and ids alone. A leap
    may be `to` another time than one of LEAPS.
    """

    what: str
    worker: int = 0
    which: int = 0
    seconds: float = 0
    point: str = ""
    lists: tuple[int, int, int] = (0, 0, 0)
    to: str = ""

    def __str__(self) -> str:
        if self.what == "leap":
            return f"clock to {self.to or LEAPS[self.which]}"
        if self.what in ("clock", "clock to"):
            return f"clock {self.seconds:+f} s" if self.seconds else self.what
        words = [self.what]
        words += [f"number {self.which}"] if self.which else []
        words += [f"of {self.seconds:+f} s"] if self.seconds else []
        words += ["of {} that came, {} others, {} ids alone".format(*self.lists)] if any(self.lists) else []
        words += [f"interrupted at {self.point}"] if self.point else []
        return " ".join((*words, f"by worker {self.worker}"))


def leap(dice: Random) -> Step:
    """The clock goes to a time behind that of any machine, for the sake of commands."""
    return Step("leap", which=dice.randrange(len(LEAPS)))


def dice_of(step: Step) -> Random:
    """The dice of a step that has `which` for its number."""
    return Random(step.which)  # noqa: S311 - nothing is kept secret with it


# More than a guard would count before it bars a sender.
_FORGERIES = 24
# What still says that it is of the sender.
_IN_THE_NAME = ("signature", "ciphertext", "recipient")

Draw = Callable[[Random], list[Step]]


def caller(dice: Random) -> int:
    """The number of one of the workers."""
    return dice.randrange(WORKERS)


def fraction(dice: Random, least: float, most: float) -> float:
    """Seconds with microseconds, between two."""
    return round(dice.uniform(least, most), 6)


def _others(dice: Random, which: int = 0) -> list[Step]:
    """Each worker is given an envelope again."""
    return [Step("again", worker, which) for worker in dice.sample(range(WORKERS), WORKERS)]


# Receiving


def forged(dice: Random) -> list[Step]:
    """What others make of letters that never came, and of those that did; much of it in the name of one sender."""
    steps = []
    for way in dice.sample(tuple(FORGERIES), len(FORGERIES)):
        steps += [Step(f"forge new {way}", caller(dice)), *_others(dice), Step(f"forge {way}", caller(dice))]
    often, worker = dice.choice(_IN_THE_NAME), caller(dice)
    steps += [Step(f"forge new {often}", worker), *(Step(f"forge {often}", worker) for _ in range(_FORGERIES))]
    steps += [Step("again", worker), Step("restart", worker), *_others(dice)]
    return [*steps, *(Step("send", worker) for _ in range(3)), Step("look")]


def _days(dice: Random) -> list[Step]:
    """Traffic of days, and a retry after two of them."""
    steps = []
    for _ in range(dice.randrange(5, 9)):
        steps += [Step("send", caller(dice)), Step("clock", seconds=fraction(dice, 5 * _HOUR, 11 * _HOUR))]
    return [
        *steps,
        *(Step("again", caller(dice), which) for which in range(4)),
        Step("send"),
        Step("send"),
        Step("look"),
    ]


def made_ahead(dice: Random) -> list[Step]:
    """The clock was far ahead when the mailbox was made, and is right again before the first receipt."""
    return [Step("clock", seconds=-AHEAD), *_days(dice), *_days(dice)]


# Pruning


def lower_cutoff_second(dice: Random) -> list[Step]:
    """A prune removes a letter; with the clock in its window again, the other process prunes with a lower cutoff."""
    ahead, first = fraction(dice, 602, 9000), caller(dice)
    pruned = Step("prune", first, seconds=fraction(dice, 600, 601))
    lower = Step("prune", (first + 1) % WORKERS, seconds=fraction(dice, 602, 80_000))
    sent = Step("send", caller(dice), seconds=fraction(dice, -290, 290))
    back = Step("clock", seconds=-fraction(dice, ahead - 9, ahead))
    return [sent, Step("clock", seconds=ahead), pruned, back, lower, *_others(dice)]


def volume(dice: Random) -> list[Step]:
    """Many kills; then a list of a thousand ids, and some thousand records: each interrupted, and then done."""
    steps = [step for _ in range(dice.randrange(6, 10)) for step in (Step("send"), Step("kill"), Step("again"))]
    steps += [Step("send", caller(dice)), Step("leave", lists=(0, dice.randrange(201, 260), dice.randrange(801, 900)))]
    steps += [Step("migrate", caller(dice), point=NEAR_COMMIT), _kill(dice, "migrate", within=0.4)]
    steps += [Step("migrate", caller(dice), point=dice.choice(("after_insert", "after_commit")))]
    steps += [Step("migrate", caller(dice)), Step("insert", which=dice.randrange(4097, 4300), seconds=600)]
    steps += [Step("clock", seconds=fraction(dice, 700, DAY / 2)), Step("send", caller(dice))]
    steps += [Step("prune", caller(dice), seconds=650, point=NEAR_COMMIT), _kill(dice, "prune", within=0.02)]
    steps += [Step("prune", caller(dice), seconds=650, point=dice.choice(("after_insert", "after_commit")))]
    return [*steps, Step("prune", caller(dice), seconds=650), *_others(dice), Step("look")]


def _kill(dice: Random, what: str, *, within: float) -> Step:
    """A kill near the commit, or a number of seconds after the call."""
    if dice.randrange(2):
        return Step(f"kill {what}", caller(dice), point=NEAR_COMMIT)
    return Step(f"kill {what}", caller(dice), seconds=fraction(dice, 0, within))
