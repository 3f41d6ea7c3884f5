"""How steered histories begin: with what is rare, letters that came in every way and were pruned by each who can."""

from __future__ import annotations

from random import Random

from holdfast.conformance.suites.calyx_replay.history import DAY, Step, caller, fraction, leap, lower_cutoff_second


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


class Openings:
    """Deals openings of histories: each of those who can prune, two lists, and an empty mailbox, equally often."""

    def __init__(self, *, commands: bool, back: bool) -> None:
        """`back`: the clock goes back behind the prune, and the letters come again."""
        self._back = back
        more = (*(("command",) if commands else ()), *(("lower",) if back else ()))
        self._names = ("", "lists", "prune", "send", "restart", *more)
        self._left: list[str] = []

    def draw(self, dice: Random) -> list[Step]:
        """The first steps of one history."""
        if not self._left:
            self._left = dice.sample(self._names, len(self._names))
        by = self._left.pop()
        if by == "lists":
            migrate = Step("migrate", caller(dice))
            return [Step("send"), Step("leave", lists=(1, 1, 2)), migrate, Step("leave", lists=(0, 1, 1)), migrate]
        if by == "lower":
            return lower_cutoff_second(dice)
        steps = _pruned_by(dice, by, back=self._back) if by else []
        if steps and self._back:
            gone = sum(step.seconds for step in steps if step.what == "clock")
            steps.append(Step("clock", seconds=-round(gone - dice.uniform(0, 290), 6)))
            steps += [Step("again", caller(dice), which) for which in dice.sample(range(6), 6)]
        return steps
