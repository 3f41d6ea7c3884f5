"""Operators' commands over days: what is due for each, to the microsecond, again and again, and while the clock steps.

A command may go by the clock of the session or by that of the machine. So there is always a record that is old by both,
and others whose age by the session's clock is near the retention.
"""

from __future__ import annotations

from random import Random

from holdfast.conformance.suites.calyx_replay.history import WORKERS, Step

_DAY = 86_400.0
# How far from the retention a record's age is, in seconds.
_NEAR = (1.0, 0.999999, 0.500001, 0.5, 0.499999, 0.000001)
_MANY = 1000


def operators(dice: Random) -> list[Step]:
    """Commands on the usual amounts, and then on more than a thousand records and ids."""

    def worker() -> int:
        return dice.randrange(WORKERS)

    # Three records: older than the retention, or younger, by what their places differ.
    steps = [Step("leap"), *(step for _ in range(2) for step in (Step("send", worker()), Step("clock", seconds=0.5)))]
    steps += [Step("send", worker()), Step("clock", seconds=_DAY - dice.choice(_NEAR))]
    for at, later in enumerate((dice.uniform(1, 600), _DAY + dice.uniform(1, 600), -dice.uniform(4000, 7000))):
        # What is due for them, also when they are run again.
        steps += [Step("insert", which=1 + at), Step("leave", lists=(0, 1, 1))]
        commands = [Step("command prune", worker()), Step("command migrate", worker())]
        steps += [*dice.sample(commands, 2), Step("again", worker(), which=1), Step("again", worker())]
        steps += [Step("send", worker()), Step("clock", seconds=round(later, 6))]
    steps += [Step("insert", which=dice.randrange(_MANY + 1, _MANY + 100))]
    steps += [Step("leave", lists=(0, dice.randrange(1, 4), dice.randrange(_MANY + 1, _MANY + 50)))]
    steps += [Step("command inspect", worker()), Step("command prune", worker()), Step("command migrate", worker())]
    return [*steps, Step("command inspect", worker()), Step("again", worker()), Step("again", worker(), which=1)]
