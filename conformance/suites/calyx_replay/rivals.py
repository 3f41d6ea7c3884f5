"""What overlaps: every operation and every command beside each of its rivals, and twice at once.

Two short calls start behind a barrier. A command is a process that has to start first; so receipts come one after the
other while it is under way. Some order has to explain all answers, and what is stored then. Who is kept waiting by a
call that does not end is refused, and of what is refused nothing is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from random import Random

from holdfast.conformance.attacks.histories import Deck
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.calyx_replay import model
from holdfast.conformance.suites.calyx_replay.generate import NEAR_COMMIT, WORKERS, Draw, Step, dice_of, leap
from holdfast.conformance.suites.calyx_replay.runner import COMMANDS, HistoryRunner
from holdfast.conformance.suites.calyx_replay.settings import Settings

# What two workers do at once.
_RACES: Mapping[str, tuple[str, str]] = {
    "of copies": ("send", "the same"),
    "of others": ("send", "again"),
    "with a prune": ("again", "prune"),
    "with a migration": ("migrate", "again"),
    "of prunes": ("prune", "prune"),
    "of migrations": ("migrate", "migrate"),
    "of a prune and a migration": ("prune", "migrate"),
    **{f"of {name} commands": (f"command {name}",) * 2 for name in COMMANDS},
}
# How many receipts come while a command is under way, and how far apart they are, in seconds.
_RECEIPTS, _APART = 12, 0.04
_BESIDE = ("prune", "migrate")
# What is held before its commit, when no other can write, and how many others are asked for meanwhile.
_HELD, _WAITING = ("send", "prune", "migrate"), 2
# A prune that is held before it writes, while another prune and a migration make an old record anew.
_EARLY = "prune early"
# Who is to wait for no lock is refused at once.
IMPATIENT = Settings(config={"busy_timeout_seconds": "0"})
# A race lasts for milliseconds, so that each is repeated.
_TIMES = 2


# All of them, each as often as it is to be met, and how many histories have them, because a session has a deadline.
_KINDS = (
    *(f"race {kind}" for kind in _RACES for _ in range(1 if "command" in kind else _TIMES)),
    *(f"beside {name}" for name in _BESIDE),
    *(f"held {name}" for name in (*_HELD, _EARLY)),
)
HISTORIES = 3


def rivals() -> Draw:
    """Draws histories with the races. Each has letters that version 0 left, and old records, for both to do."""
    deck = Deck(_KINDS)

    def draw(dice: Random) -> list[Step]:
        steps = [leap(dice)]
        for kind in (deck.deal(dice) for _ in range(math.ceil(len(_KINDS) / HISTORIES))):
            # Records that a prune to the shortest retention removes, and one that every command removes.
            steps += [Step("insert", which=dice.randrange(2, 9), seconds=7200), Step("insert", which=2)]
            steps.append(Step("leave", lists=(0, 1, 1)))
            if kind.endswith(_EARLY):
                steps += [Step("migrate"), Step("clock", seconds=7200)]
            steps += [Step(kind, dice.randrange(WORKERS), which=1), Step("look")]
            # What was refused meanwhile comes again.
            steps += [Step("again", dice.randrange(WORKERS), which) for which in range(_WAITING) if "held" in kind]
        return steps

    return draw


def busy(dice: Random) -> list[Step]:
    """Commands while an operation is held that writes: none is done, and none says so (CALYX-OPS-1)."""
    steps = [leap(dice)]
    for command in _BESIDE:
        kind = f"held {dice.choice(_HELD)} beside {command}"
        steps += [Step("insert", which=dice.randrange(2, 9), seconds=7200), Step("insert", which=2)]
        steps += [Step("leave", lists=(0, 1, 1)), Step(kind, dice.randrange(WORKERS)), Step("look")]
    return steps


class RivalRunner(HistoryRunner):
    """A history in which a command overlaps with what else is done."""

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        verb, _, rest = step.what.partition(" ")
        verbs = {"beside": self._beside, "held": self._held, "race": self._race}
        if verb not in verbs:
            super().step(step)
            return
        verbs[verb](step, rest)
        self._left_letters()
        self._look(step.worker)
        self._worlds.narrow(lambda state: [model.settled(state)])

    def _race(self, step: Step, rest: str) -> None:
        """Each worker calls at once."""
        names = _RACES[rest]
        if not self._is_possible(*names):
            return
        self._settle()
        first = self._calls[names[0]](step.which)
        calls = [first, first if names[1] == "the same" else self._calls[names[1]](step.which)]
        self._made(*calls)
        self._judge(self._session.race([(call.method, call.args) for call in calls]), calls)

    def _beside(self, step: Step, command: str) -> None:
        """Receipts by one worker, while a command of the other one is under way."""
        if not self._is_possible(f"command {command}"):
            return
        self._settle()
        names = ("again", *("send" for _ in range(_RECEIPTS)))
        calls = [self._commanding(command, 0), *(self._calls[name](step.which) for name in names)]
        self._made(*calls)
        under_way = self._session.start(calls[0].method, calls[0].args, (step.worker + 1) % WORKERS)
        answers: list[Answer] = []
        for call in calls[1:]:
            answers.append(self._session.call(call.method, call.args, step.worker))
            time.sleep(_APART)
        receipts = range(1, len(calls))
        orders = [(*receipts[:place], 0, *receipts[place:]) for place in range(len(calls))]
        self._judge([self._session.finish(under_way), *answers], calls, orders=orders)

    def _held(self, step: Step, what: str) -> None:
        """Others are asked for by one worker, while an operation of the other one is held."""
        self._settle()
        what, _, command = what.partition(" beside ")
        what, early, _ = what.partition(" early")
        point, other = "before_insert" if early else NEAR_COMMIT, (step.worker + 1) % WORKERS
        calls = [self._calls[what](step.which)]
        if not self._can("hold_at") or self._due(calls[0]) != {"new"} or not self._is_possible(what):
            return
        self._made(*calls)
        self._session.hold_at(point, step.worker)
        handle = self._session.start(calls[0].method, calls[0].args, step.worker)
        self._session.reached(point)
        if command and self._is_possible(f"command {command}"):
            # It fails, or comes before that.
            commanded = self._commanding(command, 0)
            self._judge([self._ask(commanded, other)], [commanded], aborted=True)
        # A letter is among them: another operation leaves nothing.
        others = ("send", *dice_of(step).sample(_HELD, _WAITING - 1))
        answers = []
        for name in ("prune", "migrate") if early else others:
            calls.append(self._calls[name](step.which))
            answers.append(self._ask(calls[-1], other))
        self._session.release(point)
        self._judge([self._session.finish(handle), *answers], calls)
        self._remaining.inspect()
