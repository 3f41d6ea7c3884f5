"""What generated histories of a mailbox are made of: scenarios, each about one thing that goes wrong, in any order.

A schedule orders the scenarios, so that each comes up in every run. Within a scenario the dice decide who does it,
when to the microsecond, and where it is interrupted. A step names an envelope by its age: 0 is the last that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from holdfast.conformance.attacks.histories import Deck
from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES, UNSOUND

# As many as every adapter allows.
WORKERS = 2
DAY, _HOUR = 86400.0, 3600.0
# The places of a transaction, and those that the operations without an envelope are sure to reach.
POINTS = ("before_insert", "after_insert", "before_commit", "after_commit")
NEAR_COMMIT = "before_commit"
# How near to an age a retention comes: fractions of a second, so that whole seconds are wrong. A number of hours says a
# time to a few microseconds.
_DELTAS = (0.9, 0.3, 0.001, 0.00005)
# How far ahead a clock may be, in seconds: no retention is as long.
AHEAD = 1_000 * _HOUR
# Behind the machine's own time: where a year begins, where one ends, and a day that most years do not have.
LEAPS = ("2100-01-01T00:00:00Z", "2100-12-29T21:00:00Z", "2104-02-28T22:00:00Z")


@dataclass(frozen=True, slots=True)
class Step:
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

Scenario = Callable[[Random], Sequence[Step]]
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


def _too_early(dice: Random) -> list[Step]:
    """Refused by its timestamp first, and due later."""
    early = fraction(dice, 301, 5000)
    steps = [Step("send", caller(dice), seconds=early), *_others(dice)]
    return [*steps, Step("clock", seconds=early - dice.choice((300, 0, -300))), *_others(dice)]


def _from_ahead(dice: Random) -> list[Step]:
    """As long in the window as the shortest retention."""
    later = dice.choice((600, 599.999999, 599.5, 600.000001))
    steps = [Step("send", caller(dice), seconds=300), Step("clock", seconds=later)]
    return [*steps, Step("prune", caller(dice), seconds=600), *_others(dice)]


def _forged(dice: Random) -> list[Step]:
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


def _at_the_cutoff(dice: Random) -> list[Step]:
    """A retention that is a little longer than the age of a record, and then a little shorter."""
    steps = []
    for _ in range(3):
        steps += [Step("send", caller(dice)), Step("clock", seconds=fraction(dice, 0.000001, 3))]
    steps.append(Step("clock", seconds=fraction(dice, 700, 90_000)))
    which, deltas = dice.randrange(3), (*dice.sample(_DELTAS, 2), -dice.choice(_DELTAS))
    return [*steps, *(Step("prune near", caller(dice), which, delta) for delta in deltas), *_others(dice, which)]


def _usual_retention(dice: Random) -> list[Step]:
    steps = [Step("send", caller(dice)), Step("clock", seconds=fraction(dice, 0.1, 0.9)), Step("send", caller(dice))]
    steps += [Step("clock", seconds=DAY + dice.choice((-0.5, -0.000001, 0, 0.000001)))]
    return [*steps, Step("prune", caller(dice)), Step("look"), Step("prune", caller(dice))]


def _clock_back_before_prune(dice: Random) -> list[Step]:
    """Between a receipt and a prune by another process the clock goes back, by less than a second and by days."""
    steps = []
    for back in (fraction(dice, 0.000001, 1), fraction(dice, 1.1 * DAY, 3 * DAY)):
        receiver = caller(dice)
        # Not the usual retention, which may be configured too short for a prune.
        pruned = Step("prune", (receiver + 1) % WORKERS, seconds=dice.choice((600, 600.25, 7200)))
        steps += [Step("send", receiver), Step("clock", seconds=-back), pruned, Step("send", receiver)]
        steps += [Step("clock", seconds=back), Step("again", caller(dice), 1), Step("look")]
    return steps


def _lower_cutoff(dice: Random) -> list[Step]:
    """Two prunes, the second with a lower cutoff, and the clock back between them."""
    ahead = fraction(dice, 2 * _HOUR, 5 * _HOUR)
    steps = [Step("send", caller(dice)), Step("send", caller(dice), seconds=299.5), Step("clock", seconds=ahead)]
    killed = Step("kill prune", caller(dice), point=dice.choice(("before_commit", "after_commit")))
    steps.append(dice.choice((killed, Step("prune", caller(dice), seconds=fraction(dice, 600, 1800)))))
    steps.append(Step("prune", caller(dice), seconds=fraction(dice, 20_000, 80_000)))
    if dice.randrange(2):
        steps.append(Step("kill", caller(dice)))
    # As far as the window of what was sent.
    back = ahead - fraction(dice, 0, 299)
    steps += [Step("clock", seconds=-back), *_others(dice, 1), *_others(dice), Step("send", caller(dice))]
    return [*steps, Step("clock", seconds=back), Step("send", caller(dice)), *_others(dice)]


def lower_cutoff_second(dice: Random) -> list[Step]:
    """A prune removes a letter; with the clock in its window again, the other process prunes with a lower cutoff."""
    ahead, first = fraction(dice, 602, 9000), caller(dice)
    pruned = Step("prune", first, seconds=fraction(dice, 600, 601))
    lower = Step("prune", (first + 1) % WORKERS, seconds=fraction(dice, 602, 80_000))
    sent = Step("send", caller(dice), seconds=fraction(dice, -290, 290))
    back = Step("clock", seconds=-fraction(dice, ahead - 9, ahead))
    return [sent, Step("clock", seconds=ahead), pruned, back, lower, *_others(dice)]


def _provable(dice: Random) -> list[Step]:
    """The clock is back behind a prune, and letters are new that are dated a window behind its cutoff, or just not."""
    # A quarter of an hour is a number of hours that every language holds exactly.
    retention, back = 900, fraction(dice, 310, 890)
    sent = [round(back + 300 - retention + more, 6) for more in (0, 0.000001, -0.000001)]
    steps = [Step("send", caller(dice)), Step("clock", seconds=fraction(dice, 4 * _HOUR, 9 * _HOUR))]
    steps += [Step("prune", caller(dice), seconds=retention), Step("clock", seconds=-back)]
    return [*steps, *(Step("send", caller(dice), seconds=each) for each in dice.sample(sent, len(sent)))]


def _too_short(dice: Random) -> list[Step]:
    short = [Step("prune", caller(dice), seconds=each) for each in dice.sample((-1, -DAY, 1e-9, 599.99, 300, 598.5), 3)]
    return [Step("send"), Step("clock", seconds=fraction(dice, 1, 5000)), *short, Step("look"), *_others(dice)]


# Migrating


def _two_lists(dice: Random) -> list[Step]:
    """A second list is taken over, and the blocks of the first end when they are due."""
    lists = Step("leave", lists=(0, 1, 1))
    steps = [lists, Step("migrate", caller(dice)), Step("clock", seconds=fraction(dice, 301, 599)), lists]
    steps += [Step("migrate", caller(dice)), Step("same id", caller(dice), 2), Step("same id", caller(dice), 1)]
    return [*steps, *_others(dice), Step("clock", seconds=301), Step("same id", caller(dice), 2)]


def _nothing_to_migrate(dice: Random) -> list[Step]:
    steps = [Step("migrate", caller(dice)), Step("send")]
    for way in dice.sample(range(UNSOUND), UNSOUND):
        steps += [Step("leave unsound", which=way, lists=(1, 1, 1)), Step("migrate", caller(dice))]
    # What a list that was refused names is not blocked either.
    return [*steps, Step("look"), *(Step("again", caller(dice), which) for which in range(3))]


def _blocks_end(dice: Random) -> list[Step]:
    """A block has ended when its list is pruned, and its letter is in the window all the same."""
    steps = [Step("send"), Step("leave", lists=(0, 1, 3)), Step("migrate", caller(dice))]
    steps.append(Step("clock", seconds=fraction(dice, 300.000001, 449)))
    pruned = [Step("prune", caller(dice), seconds=600), Step("send", caller(dice)), Step("restart", caller(dice))]
    # The last letter that was made is the one that was sent, behind three ids alone.
    return [*steps, *dice.sample(pruned, 3), *(Step("again", caller(dice), which) for which in range(1, 4))]


# Interrupted


def _killed_when_due(dice: Random) -> list[Step]:
    """A receipt that finds a prune due is killed, and another comes on the same day."""
    steps = [Step("send", caller(dice)), Step("clock", seconds=fraction(dice, 2 * DAY, 3 * DAY))]
    steps += [Step("kill send", caller(dice), point=dice.choice(("after_commit", "before_commit")))]
    steps += [Step("clock", seconds=fraction(dice, _HOUR, 3 * _HOUR)), Step("send", caller(dice))]
    return [*steps, Step("clock", seconds=_HOUR), Step("send", caller(dice)), Step("look")]


# Operators


def _operator(dice: Random) -> list[Step]:
    """The command line changes what running workers must see."""
    # The first commands come before a worker uses the database again, and after a crash nobody has it open.
    steps = [leap(dice), Step("restart"), Step("restart", 1), Step("command inspect", caller(dice)), Step("send")]
    steps += [Step("crash"), Step(f"command {dice.choice(('inspect', 'prune'))}", caller(dice)), Step("again")]
    steps += [Step("send", caller(dice)), Step("leave", lists=(1, 2, 1))]
    steps += [Step("command migrate", caller(dice)), *(Step("again", caller(dice), which) for which in range(4))]
    steps += [Step("insert", which=2), Step("send", caller(dice))]
    steps += [Step("clock", seconds=fraction(dice, 0.9 * DAY, 1.1 * DAY)), Step("send", caller(dice))]
    return [*steps, Step("command prune", caller(dice)), *_others(dice), Step("command inspect"), Step("look")]


SCENARIOS: Mapping[str, Scenario] = {
    "too early": _too_early,
    "from ahead": _from_ahead,
    "forged": _forged,
    "days": _days,
    "at the cutoff": _at_the_cutoff,
    "at the cutoff again": _at_the_cutoff,
    "usual retention": _usual_retention,
    "clock back": _clock_back_before_prune,
    "lower cutoff": _lower_cutoff,
    "lower cutoff second": lower_cutoff_second,
    "a window behind a cutoff": _provable,
    "too short": _too_short,
    "two lists": _two_lists,
    "nothing to migrate": _nothing_to_migrate,
    "a block's end": _blocks_end,
    "killed when due": _killed_when_due,
    "operator": _operator,
}
# Those in which the clock goes back behind a cutoff.
BACK = ("clock back", "lower cutoff", "from ahead", "at the cutoff", "lower cutoff second", "a window behind a cutoff")


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


def scheduled(
    names: Iterable[str], together: int, scenarios: Mapping[str, Scenario] = SCENARIOS, first: Iterable[str] = ()
) -> Draw:
    """Draws histories, `together` scenarios in each, each as often as any other; these come `first`."""
    deck = Deck(names, first)

    def draw(dice: Random) -> list[Step]:
        steps: list[Step] = []
        for _ in range(together):
            # An old envelope once more: an earlier decision holds regardless of later steps.
            steps += [*scenarios[deck.deal(dice)](dice), Step("again", caller(dice), dice.randrange(9))]
        return steps

    return draw
