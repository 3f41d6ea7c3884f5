"""What overlaps: every operation and every command beside each of its rivals, and twice at once.

Two short calls start behind a barrier. A command is a process that has to start first; so receipts come one after the
other while it is under way. Some order has to explain all answers, and what is stored then. Who is kept waiting by a
call that does not end is refused, and of what is refused nothing is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from random import Random

from holdfast.conformance.attacks.histories import in_some_order
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.calyx_replay import model
from holdfast.conformance.suites.calyx_replay.generate import NEAR_COMMIT, RACES, WORKERS, Step, dice_of, leap
from holdfast.conformance.suites.calyx_replay.losses import COMMANDS
from holdfast.conformance.suites.calyx_replay.model import State
from holdfast.conformance.suites.calyx_replay.runner import HistoryRunner, Operation, ends
from holdfast.conformance.suites.calyx_replay.settings import Settings

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


# How many histories have all of them, because a session has a deadline.
HISTORIES = 3


class Rivals:
    """Deals the races. Each has something to do for both: letters that version 0 left, and old records."""

    def __init__(self) -> None:
        self._left: list[str] = []
        self._each = 0

    def draw(self, dice: Random) -> list[Step]:
        """The steps of one history."""
        if not self._left:
            kinds = [f"race {kind}" for kind in RACES] * _TIMES
            kinds += [f"race of {name} commands" for name in COMMANDS]
            kinds += [f"beside {name}" for name in _BESIDE]
            kinds += [f"held {name}" for name in (*_HELD, _EARLY)]
            self._left, self._each = dice.sample(kinds, len(kinds)), math.ceil(len(kinds) / HISTORIES)
        kinds, self._left = self._left[: self._each], self._left[self._each :]
        steps = [leap(dice)]
        for kind in kinds:
            # Records that a prune to the shortest retention removes, and one that every command removes.
            steps += [Step("insert", which=dice.randrange(2, 9), seconds=7200), Step("insert", which=2)]
            steps.append(Step("leave", lists=(0, 1, 1)))
            if kind.endswith(_EARLY):
                steps += [Step("migrate"), Step("clock", seconds=7200)]
            steps += [Step(kind, dice.randrange(WORKERS), which=1), Step("look")]
            # What was refused meanwhile comes again.
            steps += [Step("again", dice.randrange(WORKERS), which) for which in range(_WAITING) if "held" in kind]
        return steps


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
        if verb == "beside":
            self._beside(step, rest)
        elif verb == "held":
            self._held(step, rest)
        elif step.what.endswith(" commands"):
            self._race_of(rest.split()[1])
        else:
            super().step(step)
            return
        for letter in self._left.now.letters.values() if self._left.now is not None else ():
            self._remaining.made(letter)
        self._look(step.worker)
        self._worlds.narrow(lambda state: [model.settled(state)])

    def _beside(self, step: Step, command: str) -> None:
        """Receipts by one worker, while a command of the other one is under way."""
        if not self._can("command_line") or not self._is_migratable():
            return
        self._settle()
        other = (step.worker + 1) % WORKERS
        letters = [self._letters.of(step.which), *(self._letters.make(0) for _ in range(_RECEIPTS))]
        for letter in letters:
            self._remaining.made(letter)
        under_way = self._session.start("command_line", {"arguments": [command]}, other)
        answers: list[Answer] = []
        operations: list[Operation] = []
        for letter in letters:
            method, args, operation = self._accepting(letter)
            answers.append(self._session.call(method, args, step.worker))
            operations.append(operation)
            time.sleep(_APART)
        told, commanded = self._session.finish(under_way).value, self._commanded(command)
        self._judged = answers[-1].n

        def after(state: State) -> Iterator[State]:
            for place in range(len(answers) + 1):
                states = [state]
                for at, (answer, operation) in enumerate(zip(answers, operations, strict=True)):
                    if at == place:
                        states = [end for each in states for end in commanded.after(told, each)]
                    states = [end for each in states for end in ends(answer, operation, each, fails=True)]
                if place == len(answers):
                    states = [end for each in states for end in commanded.after(told, each)]
                yield from map(model.settled, states)

        if not self._worlds.narrow(after):
            received = ", ".join(f"{each.outcome} {each.reason or ''}".strip() for each in answers)
            self._differs(
                "wrong_reason",
                f"an order of {command} and {len(answers)} receipts that explains all answers",
                f"{told['status']}: {told['output'][:200]}; {received}",
            )

    def _held(self, step: Step, what: str) -> None:
        """Others are asked for by one worker, while an operation of the other one is held."""
        self._settle()
        what, _, command = what.partition(" beside ")
        what, early, _ = what.partition(" early")
        point = "before_insert" if early else NEAR_COMMIT
        method, args, operation = self._operations[what]()
        due = {due.said for state in self._worlds.possible for due, _ in operation(state)}
        if not self._can("hold_at") or due != {"new"} or not self._is_migratable():
            return
        self._remaining.made(self._letters.of(0))
        self._session.hold_at(point, step.worker)
        handle = self._session.start(method, args, step.worker)
        self._session.reached(point)
        if command:
            self._refused(command, (step.worker + 1) % WORKERS)
        answers, operations = [], [operation]
        # A letter is among them: another operation leaves nothing.
        others = ("send", *dice_of(step).sample(_HELD, _WAITING - 1))
        for other in ("prune", "migrate") if early else others:
            method, args, operation = self._operations[other]()
            answers.append(self._session.call(method, args, (step.worker + 1) % WORKERS))
            operations.append(operation)
            letter = self._letters.called(args.get("envelope", ""))
            if letter is not None:
                self._remaining.answered(letter, answers[-1], aborted=False)
        self._session.release(point)
        self._judge([self._session.finish(handle), *answers], operations)
        self._remaining.inspect()

    def _refused(self, command: str, worker: int) -> None:
        """A command while another process is about to commit: it fails, or comes before that."""
        if not self._can("command_line"):
            return
        told = self._session.provoke("command_line", {"arguments": [command]}, worker)
        commanded = self._commanded(command)
        if not self._worlds.narrow(lambda state: commanded.after(told, state, fails=True)):
            received = f"{told['status']}: {told['output'][:300]}"
            self._differs("wrong_reason", f"that {command} is done, or another status than 0", received)

    def _race_of(self, command: str) -> None:
        """The same command twice at once."""
        if not self._can("command_line") or not self._is_migratable():
            return
        self._settle()
        answers = self._session.race([("command_line", {"arguments": [command]})] * WORKERS)
        self._judged = answers[-1].n
        commanded, printed = self._commanded(command), [answer.value for answer in answers]
        calls = [partial(commanded.after, one) for one in printed]
        if not self._worlds.narrow(lambda state: in_some_order(state, calls)):
            received = "; ".join(f"{one['status']}: {one['output'][:200]}" for one in printed)
            self._differs("wrong_reason", f"an order of two {command} that explains what both print", received)
