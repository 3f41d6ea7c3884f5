"""calyx-replay: attacks that chance would seldom meet on every operation and command, each in a history of its own."""

from __future__ import annotations

from itertools import cycle
from random import Random

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.suites.calyx_replay import losses, rivals
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes, told
from holdfast.conformance.suites.calyx_replay.generate import Step, caller, leap
from holdfast.conformance.suites.calyx_replay.losses import LossRunner
from holdfast.conformance.suites.calyx_replay.rivals import RivalRunner
from holdfast.conformance.suites.calyx_replay.runner import playing
from holdfast.conformance.suites.calyx_replay.settings import drawn

# Operators' commands over days: what is due for each, to the microsecond, again and again, and while the clock steps.
# A command may go by the clock of the session or by that of the machine. So there is always a record that is old by
# both, and others whose age by the session's clock is near the retention.

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
_PARTS = (_thousand, _days)


# Each trial takes as long as a dozen of other histories.
_TRIALS = 12


@clause("CALYX-HARD-6", "CALYX-HARD-2", "CALYX-LOC-4", "CALYX-ALG-14", whole=True)
def test_no_operation_and_no_command_takes_another_store_for_its_own(bench: Bench) -> None:
    """Lost, cut off, replaced or without its log, before a start and under the running mailbox, in any order."""
    run_histories(bench, count=losses.HISTORIES, draw=losses.losses(), begin=playing(bench, LossRunner), trials=_TRIALS)


@clause(
    "CALYX-PRN-11",
    "CALYX-ALG-3",
    "CALYX-ALG-14",
    "CALYX-PRN-2",
    "CALYX-PRN-6b",
    "CALYX-MIG-5",
    "CALYX-MIG-6",
    whole=True,
)
def test_whatever_overlaps_some_order_explains_it(bench: Bench) -> None:
    """Every operation and every command beside its rivals, and twice at once."""
    draw = rivals.rivals()
    run_histories(bench, count=rivals.HISTORIES, draw=draw, begin=playing(bench, RivalRunner), trials=_TRIALS)


@clause("CALYX-OPS-1", "CALYX-HARD-6", whole=True)
def test_a_command_that_finds_the_store_busy_fails(bench: Bench) -> None:
    """Each command beside an operation that is held before its commit. Nothing waits for a lock here."""
    begin = playing(bench, RivalRunner, settings=lambda: rivals.IMPATIENT)
    run_histories(bench, count=1, draw=rivals.busy, begin=begin, trials=_TRIALS)


@clause(
    "CALYX-PRN-6b",
    "CALYX-PRN-2",
    "CALYX-PRN-10",
    "CALYX-PRN-12",
    "CALYX-MIG-1",
    "CALYX-MIG-4",
    "CALYX-LOC-1",
    "CALYX-OPS-1",
    "CALYX-OPS-2",
    whole=True,
)
def test_the_commands_of_operators_are_held_against_the_model_over_days(bench: Bench) -> None:
    """Around the retention, again and again, after a step of the clock in either direction, on a thousand records.

    The mailbox is configured otherwise than is usual, and its commands go by that.
    """
    dice, parts = bench.dice("settings"), cycle(_PARTS)
    hours = dice.choice(RETENTIONS)
    settings = drawn(bench, dice, hours=hours)
    run_histories(
        bench,
        count=len(_PARTS),
        draw=lambda dice: [settings.stretched(step) for step in (leap(dice), *next(parts)(dice, hours * 3600.0))],
        begin=playing(bench, settings=lambda: settings),
        trials=_TRIALS,
    )


@clause("CALYX-ALG-3", "CALYX-LOC-1")
def test_a_process_that_gets_another_mailbox_knows_nothing_of_the_last_one(bench: Bench) -> None:
    """Letters that the first mailbox has received, or has refused as too early, are new to the second one."""
    for is_second in (False, True):
        with bench.session() as session:
            letters = Envelopes(session)
            received, early = letters.make(0), letters.make(3600)
            for letter, due in ((received, "new"), (early, "new" if is_second else "TIMESTAMP_OUT_OF_WINDOW")):
                if is_second and letter is early:
                    session.clock("+1h")
                told(bench, session, letter, due, what="a letter that another mailbox knows")
