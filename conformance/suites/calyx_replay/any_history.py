"""calyx-replay: any history against a small model (`model`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from random import Random

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Explorer
from holdfast.conformance.attacks.histories import Deck, explore_histories, run_histories
from holdfast.conformance.cases.session import START
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.calyx_replay.envelopes import UNSOUND
from holdfast.conformance.suites.calyx_replay.generate import (
    AHEAD,
    DAY,
    Step,
    caller,
    forged,
    fraction,
    leap,
    lower_cutoff_second,
    made_ahead,
    volume,
)
from holdfast.conformance.suites.calyx_replay.runner import playing
from holdfast.conformance.suites.calyx_replay.settings import NEVER, Settings, drawn, sampled

# What a mailbox is configured with holds for each operation and for each command (CALYX-OPS-2), so each setting is met
# just within it and just beyond it, by all of them, at the beginning of a history.

_MICROSECOND = 0.000001


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


# How explored histories begin: with what is rare, letters that came in every way and were pruned by each who can


def _pruned_by(dice: Random, by: str, *, back: bool) -> list[Step]:
    """Letters that came in every way, and were then pruned. `back`: the clock goes back afterwards."""
    steps = _commanded(dice, old=not back) if by == "command" else []
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


def _listed(dice: Random) -> list[Step]:
    """Lists that are taken over one after the other, and blocks that end when they are due; and lists that are refused,
    of which nothing is blocked."""
    migrate, left = Step("migrate", caller(dice)), Step("leave", lists=(0, 1, 1))
    steps = [Step("send"), Step("leave", lists=(1, 1, 2)), migrate, left, migrate]
    # What the second list brings ends no block of the first.
    steps += [Step("again", caller(dice), which) for which in (2, 3)]
    steps += [Step("clock", seconds=fraction(dice, 301, 449)), left, migrate]
    steps += [Step("same id", caller(dice), which) for which in (2, 1)]
    # A prune, when blocks have ended and the letters that they refuse are in the window all the same. The last letter
    # that was made is the one that was sent, behind three ids alone.
    steps += [Step("leave", lists=(0, 1, 3)), migrate, Step("clock", seconds=fraction(dice, 300.000001, 449))]
    steps += dice.sample([Step("prune", caller(dice), seconds=600), Step("send", caller(dice))], 2)
    steps += [Step("again", caller(dice), which) for which in range(1, 4)]
    for way in dice.sample(range(UNSOUND), UNSOUND):
        steps += [Step("leave unsound", which=way, lists=(1, 1, 1)), migrate, Step("again", which=1)]
    return steps


def _commanded(dice: Random, *, old: bool) -> list[Step]:
    """Commands come before a worker uses the database again, and after a crash, when nobody has it open."""
    steps = [leap(dice), Step("restart"), Step("restart", 1)]
    # Rows of older versions, in whose place an inspection may put nothing.
    steps += [Step("insert old", which=dice.randrange(2**16), seconds=fraction(dice, 100, 80_000))] if old else []
    steps += [Step("command inspect", caller(dice)), Step("send")]
    return [*steps, Step("crash"), Step(f"command {dice.choice(('inspect', 'prune'))}", caller(dice)), Step("again")]


def _opening(dice: Random, by: str, *, back: bool) -> list[Step]:
    """The first steps of a history. `back`: the clock goes back behind the prune, and the letters come again."""
    if by == "lists":
        return _listed(dice)
    if by == "lower":
        return lower_cutoff_second(dice)
    if by == "forged":
        return forged(dice)
    steps = _pruned_by(dice, by, back=back) if by else []
    if steps and back:
        gone = sum(step.seconds for step in steps if step.what == "clock")
        steps.append(Step("clock", seconds=-round(gone - dice.uniform(0, 290), 6)))
        steps += [Step("again", caller(dice), which) for which in dice.sample(range(6), 6)]
    return steps


# How many histories are explored, what the steps of each may cost, and the part that has to be reached of what was
# offered in those of every situation.
_HISTORIES, _BACKWARDS, _STEERED, _COSTS, _FLOOR = 4, 2, 14, 60, 0.8


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
    _explored(bench, sampled(bench), count=_HISTORIES, first=("forged", "lists", "command"))


@clause("CALYX-PRN-6a", whole=True)
def test_a_mailbox_that_was_made_while_the_clock_was_ahead_prunes_when_it_is_right_again(bench: Bench) -> None:
    """A time to come is no time of the last prune."""
    run_histories(bench, count=1, draw=made_ahead, begin=playing(bench, made=shift(START, f"+{AHEAD:.0f}s")))


@clause("CALYX-ALG-12", whole=True)
def test_in_no_history_a_clock_that_goes_back_opens_anything(bench: Bench) -> None:
    """What a prune removed stays refused, after a prune by either process and after later prunes."""
    _explored(bench, [Settings()], remembers=True, count=_BACKWARDS, first=("prune", "lower"))


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
    _explored(bench, [drawn(bench, bench.dice("settings"))], floor=_FLOOR, least=700)


@clause("CALYX-ALG-12", whole=True)
def test_what_was_pruned_is_refused_in_every_situation(bench: Bench) -> None:
    """It does not matter who pruned it, and where the clock is then."""
    _explored(bench, [drawn(bench, bench.dice("settings"))], remembers=True, floor=_FLOOR, least=250)


def _explored(
    bench: Bench,
    dealt: Sequence[Settings],
    *,
    remembers: bool = False,
    count: int = _STEERED,
    first: Sequence[str] = (),
    floor: float = 0,
    least: int = 0,
) -> None:
    """Histories with each of these settings in turn."""
    more = [*(["command"] if "command_line" not in bench.not_claimed else ()), *(["lower"] if remembers else ())]
    # Each of those who can prune, two lists, and an empty mailbox, equally often.
    deck, settings, now = Deck(("", "lists", "prune", "send", "restart", *more), first), cycle(dealt), [*dealt]

    def opening(dice: Random) -> Sequence[Step]:
        now[0] = next(settings)
        edges = configured(dice) if len(dealt) > 1 and now[0].factor > 1 else ()
        edges = turning(dice) if now[0].turns is NEVER else edges
        return [now[0].stretched(step) for step in (*edges, *_opening(dice, deck.deal(dice), back=remembers))]

    explore_histories(
        bench,
        count=count,
        length=_COSTS,
        begin=playing(bench, remembers=remembers, settings=lambda: now[0]),
        steering=Explorer(floor=floor, least=least),
        opening=opening,
    )


@clause("CALYX-PRN-4", "CALYX-PRN-10", "CALYX-MIG-5", "CALYX-ALG-3", whole=True)
def test_more_than_a_thousand_records_are_migrated_and_pruned_whole_or_not_at_all(bench: Bench) -> None:
    """Failures and kills among them."""
    run_histories(bench, count=1, draw=volume, begin=playing(bench))
