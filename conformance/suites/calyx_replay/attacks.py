"""calyx-replay: attacks that chance would seldom meet on every operation and command, each in a history of its own."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay import losses, operators, rivals
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes, told
from holdfast.conformance.suites.calyx_replay.losses import Losses, LossRunner
from holdfast.conformance.suites.calyx_replay.operators import Operators
from holdfast.conformance.suites.calyx_replay.rivals import RivalRunner, Rivals
from holdfast.conformance.suites.calyx_replay.settings import dice_of, drawn
from holdfast.conformance.suites.calyx_replay.setups import playing
from holdfast.conformance.suites.histories import run_histories

# Each trial takes as long as a dozen of other histories.
_TRIALS = 12


@clause("CALYX-HARD-6", "CALYX-HARD-2", "CALYX-LOC-4", "CALYX-ALG-14", whole=True)
def test_no_operation_and_no_command_takes_another_store_for_its_own(bench: Bench) -> None:
    """Lost, cut off, replaced or without its log, before a start and under the running mailbox, in any order."""
    run_histories(bench, count=losses.HISTORIES, draw=Losses().draw, begin=playing(bench, LossRunner), trials=_TRIALS)


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
    run_histories(bench, count=rivals.HISTORIES, draw=Rivals().draw, begin=playing(bench, RivalRunner), trials=_TRIALS)


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
    dice = dice_of(bench)
    hours = dice.choice(operators.RETENTIONS)
    settings, operated = drawn(bench, dice, hours=hours), Operators(float(hours) * 3600)
    run_histories(
        bench,
        count=operators.HISTORIES,
        draw=lambda dice: [settings.stretched(step) for step in operated.draw(dice)],
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
