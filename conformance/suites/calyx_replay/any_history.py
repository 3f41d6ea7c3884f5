"""calyx-replay: any history against a small model (`model`)."""

from __future__ import annotations

from random import Random

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Explorer
from holdfast.conformance.attacks.histories import Deck, explore_histories, run_histories
from holdfast.conformance.cases.session import START
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.calyx_replay.generate import (
    AHEAD,
    BACK,
    DAY,
    SCENARIOS,
    Step,
    caller,
    fraction,
    leap,
    lower_cutoff_second,
    made_ahead,
    scheduled,
    volume,
)
from holdfast.conformance.suites.calyx_replay.runner import playing
from holdfast.conformance.suites.calyx_replay.settings import SampledSettings, drawn

# More scenarios of histories: records of older versions that are inspected, and every setting by its edges.
# An inspection changes nothing (CALYX-OPS-3). So records of every form lie there while the mailbox and its operator
# inspect it, and after that each is as it was stored, and goes when it is due. What a mailbox is configured with holds
# for each operation and for each command (CALYX-OPS-2), so each setting is met just within it and just beyond it, by
# all of them.

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


# How explored histories begin: with what is rare, letters that came in every way and were pruned by each who can


def _pruned_by(dice: Random, by: str, *, back: bool) -> list[Step]:
    """Letters that came in every way, and were then pruned. `back`: the clock goes back afterwards."""
    steps = [leap(dice)] if by == "command" else []
    steps += [Step("leave", lists=(0, 2, 1)), Step("migrate", caller(dice)), Step("leave", lists=(1, 1, 1))]
    steps += [Step("send", caller(dice)), Step("same id", caller(dice)), Step("send", caller(dice), seconds=300)]
    steps += [Step("send", caller(dice), seconds=fraction(dice, 1, 299))]
    if by == "prune":
        # The cutoff lies before the times of those from ahead, or behind them. Before them, a mailbox that compares
        # times with the cutoff alone admits what was pruned once the clock has gone back.
        between, behind = fraction(dice, 1, 290), fraction(dice, 300, 5000)
        later = between if back else dice.choice((between, behind))
        steps += [Step("clock", seconds=later), Step("send"), Step("clock", seconds=601)]
        return [*steps, Step("prune", caller(dice), seconds=dice.choice((600, fraction(dice, 600, 601))))]
    steps.append(Step("clock", seconds=fraction(dice, 1.01 * DAY, 3 * DAY)))
    last = {"send": Step("send", caller(dice)), "restart": Step("restart", caller(dice))}
    return [*steps, last.get(by) or Step("command prune", caller(dice))]


def _opening(dice: Random, by: str, *, back: bool) -> list[Step]:
    """The first steps of a history. `back`: the clock goes back behind the prune, and the letters come again."""
    if by == "lists":
        migrate = Step("migrate", caller(dice))
        return [Step("send"), Step("leave", lists=(1, 1, 2)), migrate, Step("leave", lists=(0, 1, 1)), migrate]
    if by == "lower":
        return lower_cutoff_second(dice)
    steps = _pruned_by(dice, by, back=back) if by else []
    if steps and back:
        gone = sum(step.seconds for step in steps if step.what == "clock")
        steps.append(Step("clock", seconds=-round(gone - dice.uniform(0, 290), 6)))
        steps += [Step("again", caller(dice), which) for which in dice.sample(range(6), 6)]
    return steps


# Every scenario comes up at least once: five of them make a history.
_HISTORIES = 4
_BACKWARDS = 2
# Histories that are explored, what the steps of each may cost, and the part that has to be reached of what was offered.
_STEERED, _COSTS, _FLOOR = 14, 60, 0.8


@clause(
    "CALYX-ALG-3",
    "CALYX-ALG-5",
    "CALYX-ALG-8",
    "CALYX-ALG-10",
    "CALYX-PRN-2",
    "CALYX-MIG-4",
    "CALYX-HARD-2",
    "CALYX-HARD-6",
    "CALYX-LOC-2",
    "CALYX-SCH-6",
    "CALYX-PRN-3",
    "CALYX-PRN-6c",
    "CALYX-MIG-7",
    "CALYX-OPS-2",
    "CALYX-OPS-3",
    "CALYX-PRN-13",
    whole=True,
)
def test_any_history_agrees_with_the_model(bench: Bench) -> None:
    """All operations by two processes and the command line, days, restarts, kills and failures, in any order.

    Some mailboxes are configured otherwise than is usual, and some too narrowly.
    """
    dealt = SampledSettings(bench)
    # What stays refused is no copy yet there.
    steps = scheduled(ALL, together=5, scenarios=ALL, first=["too early"])
    draw = dealt.draw(steps, configured, turning)
    run_histories(bench, count=_HISTORIES, draw=draw, begin=playing(bench, settings=lambda: dealt.now))


@clause("CALYX-PRN-6a", whole=True)
def test_a_mailbox_that_was_made_while_the_clock_was_ahead_prunes_when_it_is_right_again(bench: Bench) -> None:
    """A time to come is no time of the last prune."""
    run_histories(bench, count=1, draw=made_ahead, begin=playing(bench, made=shift(START, f"+{AHEAD:.0f}s")))


@clause("CALYX-ALG-12", whole=True)
def test_in_no_history_a_clock_that_goes_back_opens_anything(bench: Bench) -> None:
    """What a prune removed stays refused, after a prune by either process and after later prunes."""
    run_histories(bench, count=_BACKWARDS, draw=scheduled(BACK, together=3), begin=playing(bench, remembers=True))


@clause(
    "CALYX-ALG-14",
    "CALYX-ALG-3",
    "CALYX-PRN-12",
    "CALYX-LOC-3",
    "CALYX-LOC-4",
    "CALYX-MIG-4",
    "CALYX-MIG-5",
    whole=True,
)
def test_every_operation_is_held_against_the_model_in_every_situation(bench: Bench) -> None:
    """Situations of a letter, of the mailbox and of its clock, with every operation that is offered in them."""
    _explored(bench, remembers=False, least=700)


@clause("CALYX-ALG-12", whole=True)
def test_what_was_pruned_is_refused_in_every_situation(bench: Bench) -> None:
    """It does not matter who pruned it, and where the clock is then."""
    _explored(bench, remembers=True, least=250)


def _explored(bench: Bench, *, remembers: bool, least: int) -> None:
    settings = drawn(bench, bench.dice("settings"))
    more = [*(["command"] if "command_line" not in bench.not_claimed else ()), *(["lower"] if remembers else ())]
    # Each of those who can prune, two lists, and an empty mailbox, equally often.
    deck = Deck(("", "lists", "prune", "send", "restart", *more))
    explore_histories(
        bench,
        count=_STEERED,
        length=_COSTS,
        begin=playing(bench, remembers=remembers, settings=lambda: settings),
        steering=Explorer(floor=_FLOOR, least=least),
        opening=lambda dice: [settings.stretched(step) for step in _opening(dice, deck.deal(dice), back=remembers)],
    )


@clause("CALYX-PRN-4", "CALYX-PRN-10", "CALYX-MIG-5", "CALYX-ALG-3", whole=True)
def test_more_than_a_thousand_records_are_migrated_and_pruned_whole_or_not_at_all(bench: Bench) -> None:
    """Failures and kills among them."""
    run_histories(bench, count=1, draw=volume, begin=playing(bench))
