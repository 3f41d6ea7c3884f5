"""Operators' commands over days: what is due for each, to the microsecond, again and again, and while the clock steps.

A command may go by the clock of the session or by that of the machine. So there is always a record that is old by both,
and others whose age by the session's clock is near the retention.
"""

from __future__ import annotations

from random import Random

from holdfast.conformance.suites.calyx_replay.generate import Step, caller, leap

# How many hours sessions are configured to keep: longer than is usual. By the clock of the machine a command may remove
# nothing, so only what is removed too early shows.
RETENTIONS = (25, 36, 72)
# How far from the retention a record's age is, in seconds.
_NEAR = (1.0, 0.999999, 0.500001, 0.5, 0.499999, 0.000001)
_MANY = 1000


def _days(dice: Random, retention_s: float) -> list[Step]:
    """Records older than the retention and younger, by what their places differ. Then days, and back."""
    steps = [step for _ in range(2) for step in (Step("send", caller(dice)), Step("clock", seconds=0.5))]
    near, soon, late = retention_s - dice.choice(_NEAR), dice.uniform(1, 600), retention_s + dice.uniform(1, 600)
    steps.append(Step("send", caller(dice)))
    for at, later in enumerate((near, soon, late, -dice.uniform(4000, 7000))):
        # What is due for them, also when they are run again.
        steps += [Step("clock", seconds=round(later, 6)), Step("insert", which=1 + at), Step("leave", lists=(0, 1, 1))]
        commands = [Step("command prune", caller(dice)), Step("command migrate", caller(dice))]
        steps += [*dice.sample(commands, 2), Step("again", caller(dice), which=1), Step("again", caller(dice))]
        steps.append(Step("send", caller(dice)))
    return steps


def _thousand(dice: Random, _: float) -> list[Step]:
    """More than a thousand records, and more than a thousand ids."""
    steps = [Step("insert", which=dice.randrange(_MANY + 1, _MANY + 100))]
    steps += [Step("leave", lists=(0, dice.randrange(1, 4), dice.randrange(_MANY + 1, _MANY + 50)))]
    names = ("inspect", "prune", "migrate", "inspect")
    steps += [Step(f"command {name}", caller(dice)) for name in names]
    return [*steps, *(Step("again", caller(dice), which=which) for which in range(2))]


# A session has a deadline, so that each is a history of its own.
_PARTS = (_days, _thousand)
HISTORIES = len(_PARTS)


class Operators:
    """Deals the parts: commands over days, and on many records."""

    def __init__(self, retention_s: float) -> None:
        """`retention_s` is how long a record is kept here."""
        self._retention_s = retention_s
        self._left = list(_PARTS)

    def draw(self, dice: Random) -> list[Step]:
        """The steps of one history."""
        self._left = self._left or list(_PARTS)
        return [leap(dice), *self._left.pop()(dice, self._retention_s)]
