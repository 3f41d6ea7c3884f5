"""More scenarios of histories: records of older versions that are inspected, and every setting by its edges.

An inspection changes nothing (CALYX-OPS-3). So records of every form lie there while the mailbox and its operator
inspect it, and after that each is as it was stored, and goes when it is due. What a mailbox is configured with holds
for each operation and for each command (CALYX-OPS-2), so each setting is met just within it and just beyond it, by
all of them.
"""

from __future__ import annotations

from random import Random

from holdfast.conformance.suites.calyx_replay.generate import DAY, SCENARIOS, Step, caller, leap

# How many letters have records of older versions: four of each step.
_OLD = 8
_MICROSECOND = 0.000001


def older_versions(dice: Random) -> list[Step]:
    """Inspections, copies, and prunes near the times of the records and of the usual retention."""
    steps = [leap(dice)]
    steps += [
        Step("insert old", which=dice.randrange(2**16), seconds=round(dice.uniform(100, 80_000), 6)) for _ in range(2)
    ]
    inspections = [Step("command inspect", caller(dice)), Step("look", caller(dice)), Step("restart", caller(dice))]
    steps += dice.sample(inspections, len(inspections))
    which, *others = dice.sample(range(_OLD), 4)
    steps += [Step("again", caller(dice), each) for each in others]
    steps += [Step("clock", seconds=round(dice.uniform(601, 5000), 6))]
    steps += [Step("prune near", caller(dice), which, delta) for delta in (0.9, -0.3)]
    steps += [Step("clock", seconds=round(dice.uniform(0.1, 0.9) * DAY, 6))]
    return [*steps, Step("prune", caller(dice)), Step("send", caller(dice)), Step("look")]


def configured(dice: Random) -> list[Step]:
    """The window, blocks that last for one, the longest letter, the retention: each at its edge, by every path."""
    steps = [leap(dice)]
    steps += [Step("send", caller(dice), seconds=side * (300 + more)) for side in (1, -1) for more in (0, _MICROSECOND)]
    steps += [Step("send long", caller(dice), which=more) for more in (0, 1)]
    # By itself: what is as old as the retention stays, and the interval has not passed a second time.
    steps += [Step("clock", seconds=1.5 * DAY), Step("count"), Step("send"), Step("clock", seconds=0.6 * DAY)]
    steps += [Step("send", caller(dice)), Step("count"), Step("clock", seconds=0.4 * DAY)]
    steps += [Step("send", caller(dice)), Step("look")]
    for migrate in dice.sample(("migrate", "command migrate"), 2):
        steps += [Step("leave", lists=(0, 1, 3)), Step("leave long"), Step(migrate, caller(dice))]
        steps += [*(Step("again", caller(dice), which) for which in range(1, 5)), Step("clock", seconds=300)]
        # A letter of a blocked id that is dated when the block ends, and one from behind that.
        steps += [Step("same id", caller(dice), 2), Step("clock", seconds=_MICROSECOND), Step("same id", which=3)]
        steps += [Step("clock", seconds=400)]
    steps += [Step("leave long", which=1), Step("migrate", caller(dice))]
    steps += [Step("command migrate", caller(dice)) for _ in range(dice.randrange(2))]
    steps += [Step("leave", lists=(0, 1, 0))]
    steps += [Step("send"), Step("clock", seconds=DAY - 0.5), Step("send")]
    prunes = (Step("prune", caller(dice)), Step("command prune", caller(dice)), Step("send", caller(dice)))
    steps += [each for prune in dice.sample(prunes, 3) for each in (prune, Step("clock", seconds=0.25))]
    return [*steps, Step("look")]


def turning(dice: Random) -> list[Step]:
    """A day of 23 hours of local time: what is an hour younger than the retention stays, as on any day."""
    beside = round(dice.uniform(60, 3500), 6)
    steps = [leap(dice), Step("send"), Step("clock", seconds=beside), Step("send", caller(dice))]
    return [*steps, Step("clock", seconds=DAY - beside + 1), Step("send", caller(dice)), Step("look")]


ALL = {**SCENARIOS, "older versions": older_versions}
