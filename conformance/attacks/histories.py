"""Long generated histories: any steps in any order, held against a pure model, and made short where the two differ.

The seed of the run decides every step, so the line that repeats a test repeats its histories, and another run has
others. A history depends on nothing else but the answers. So the gate draws it again and judges it from the exchanges,
the shorter ones that were tried included.

    suite                draws steps from a `Random`, and runs one step against session and model (`HistoryRunner`)
    `run_histories`      runs a number of histories; the first that differs from the model is shortened and reported
    `explore_histories`  the same, and each step is chosen after the one before, by what was not met yet (`explore`)
    `PossibleStates`     the states of the model that fit all answers so far, where an answer leaves open what happened
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import chain, permutations
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, settings

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Explorable, Explorer
from holdfast.conformance.cases.record import Judgement, NonConformance, gravest_of
from holdfast.conformance.verdict import Verdict

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
W = TypeVar("W")

# Values that hypothesis generates for tests without a history. Nothing is shrunk: each trial costs a session.
DRAWN = settings(
    derandomize=True, database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
)

# How many shorter histories are tried. Each is a session, and a bug that shows in one history shows in most of them.
_TRIALS = 48
# How many worlds are followed; a suite observes after each open answer, which leaves one.
_WORLDS = 256


class HistoryRunner(Protocol[S_contra]):
    """One history under way: a session, and the model beside it."""

    def step(self, step: S_contra) -> None:
        """Do it, and hold what came against the model. Raises NonConformance.

        What does not apply to the present state does nothing, because steps before it may have been left out.
        """

    def compare(self) -> None:
        """Hold what is stored at the end against the model. Raises NonConformance."""


class ExploringRunner(HistoryRunner[S], Explorable[S], Protocol[S]):
    """A player that can be steered."""


P = TypeVar("P", bound=HistoryRunner[Any])
# The steps of one history, the next of which may depend on what came of those before.
Steps = Callable[[P], Iterable[S]]
Begin = Callable[[], AbstractContextManager[P]]


@dataclass(frozen=True, slots=True)
class _Difference(Generic[S]):
    """A history that differs from the model at its last step, or in the comparison at its end."""

    steps: tuple[S, ...]
    found: Judgement


def run_histories(
    bench: Bench,
    *,
    count: int,
    draw: Callable[[Random], Sequence[S]],
    begin: Begin[HistoryRunner[S]],
    trials: int = _TRIALS,
) -> None:
    """Play `count` histories, each in a session that `begin` opens. Raises NonConformance where one differs.

    The first that differs gravely is the last that is played; behind a mild difference the others are played too.

    A more thorough run plays a multiple of them.

    `draw` takes the steps of one from its dice, and reads nothing else. The text of a step stands in the report. At
    most `trials` are made to shorten it; fewer for histories that take long.
    """
    count = math.ceil(count * bench.thorough)
    # Before its session begins: what is drawn may say with which settings.
    drawn = ((f"{number + 1} of {count}", _fixed(draw(bench.dice(str(number))))) for number in range(count))
    _judged(bench, begin, drawn, trials)


def walk_histories(
    bench: Bench, *, count: int, begin: Begin[P], walk: Callable[[P, Random, int], Iterable[S]], trials: int = _TRIALS
) -> None:
    """The same with steps that may depend on what came of those before: `walk` has the runner and the number too."""
    count = math.ceil(count * bench.thorough)

    def steps(number: int) -> Steps[P, S]:
        return lambda player: walk(player, bench.dice(str(number)), number)

    _judged(bench, begin, ((f"{number + 1} of {count}", steps(number)) for number in range(count)), trials)


def explore_histories(
    bench: Bench,
    *,
    count: int,
    length: float,
    begin: Begin[ExploringRunner[S]],
    steering: Explorer,
    opening: Callable[[Random], Sequence[S]] = lambda _: (),
    trials: int = _TRIALS,
) -> None:
    """Run `count` histories whose steps `steering` chooses, each for steps whose costs amount to `length` at most.

    A session has a deadline. `opening` draws the first steps of each, which lead to situations that are rare. Raises
    NonConformance as `run_histories` does, and where too little was reached.
    """

    count = math.ceil(count * bench.thorough)

    def steps(number: int) -> Steps[ExploringRunner[S], S]:
        dice = bench.dice(str(number))
        # Before its session begins: it may say with which settings.
        first = opening(dice)
        return lambda player: chain(first, steering.walk(player, dice, length))

    _judged(bench, begin, ((f"{number + 1} of {count}", steps(number)) for number in range(count)), trials)
    bench.note(steering.conclude())


def _fixed(steps: Sequence[S]) -> Steps[Any, S]:
    return lambda _: steps


def _judged(bench: Bench, begin: Begin[Any], histories: Iterable[tuple[str, Steps[Any, S]]], trials: int) -> None:
    """Run histories until one differs gravely. Raises NonConformance for the gravest difference, made short."""
    gravest: tuple[str, _Difference[S]] | None = None
    for which, steps in histories:
        try:
            difference = _played(bench, begin, steps)
        except NonConformance as finding:
            # What came to no end hides no difference of an earlier history.
            if gravest is None or finding.judgement.verdict is Verdict.KIT_FAULT:
                raise
            break
        if difference is not None and (gravest is None or not difference.found.verdict.is_mild):
            gravest = which, difference
            if not difference.found.verdict.is_mild:
                break
    if gravest is not None:
        which, difference = gravest
        shortest = _shortened(bench, begin, difference, trials)
        listed = "; ".join(map(str, shortest.steps))
        told = f"history {which}, {len(shortest.steps)} of its {len(difference.steps)} steps [{listed}]: "
        raise NonConformance(replace(shortest.found, detail=told + shortest.found.detail))


def _played(bench: Bench, begin: Begin[Any], steps: Steps[Any, S]) -> _Difference[S] | None:
    """The difference that a history shows, if any. Raises NonConformance where it came to no end."""
    difference = None
    try:
        with begin() as player:
            difference = _differing(bench, player, iter(steps(player)))
    except NonConformance:
        # A session that differs may also end badly. The difference is what is reported.
        if difference is None:
            raise
    return difference


def _differing(bench: Bench, player: HistoryRunner[S], steps: Iterator[S]) -> _Difference[S] | None:
    """The gravest difference of a history, which goes on behind what it only reports."""
    done: list[S] = []
    before, first, found = len(bench.reported()), 0, []
    try:
        for step in steps:
            done.append(step)
            player.step(step)
            first = first or (len(done) if bench.reported(before) else 0)
        player.compare()
    except NonConformance as finding:
        found.append(finding.judgement)
    mild = bench.reported(before, take=True)
    if not mild and not found:
        return None
    gravest = gravest_of((*mild, *found))
    if gravest.verdict.is_incomplete:
        raise NonConformance(gravest)
    return _Difference(tuple(done if gravest in found else done[: first or len(done)]), gravest)


def _shortened(bench: Bench, begin: Begin[Any], first: _Difference[S], left: int) -> _Difference[S]:
    """A shorter history with the same verdict: ever smaller parts are left out, for as many trials as there are."""
    found, size = first, max(1, len(first.steps) // 2)
    while left:
        at, shorter = len(found.steps), False
        while at > 0 and left:
            at, end = max(0, at - size), at
            left -= 1
            try:
                trial = _played(bench, begin, _fixed(found.steps[:at] + found.steps[end:]))
            except NonConformance as finding:
                if finding.judgement.verdict is Verdict.KIT_FAULT:
                    raise
                if finding.judgement.silence is not None:
                    # Each further trial may wait for a deadline. What was found stands.
                    return found
                continue
            if trial is not None and trial.found.verdict is found.found.verdict:
                found, shorter, at = trial, True, min(at, len(trial.steps))
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return found


def mixed(dice: Random, kinds: Mapping[str, int], count: int, scenes: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """This number of kinds of steps, by their weights, and among them each scene, which is kinds in an order."""
    parts: list[Sequence[str]] = [*((kind,) for kind in dice.choices([*kinds], [*kinds.values()], k=count)), *scenes]
    dice.shuffle(parts)
    return parts


def in_turn(cards: Sequence[W], number: int, count: int) -> list[W]:
    """`count` cards for the history with this number. Every card is dealt once before any is dealt again."""
    return [cards[(number * count + at) % len(cards)] for at in range(count)]


class Deck(Generic[W]):
    """Deals every card once, in an order that the dice draw, before it deals any again. `first` come before all."""

    def __init__(self, cards: Iterable[W], first: Iterable[W] = ()) -> None:
        self._cards, self._left = [*cards], [*first][::-1]

    def deal(self, dice: Random) -> W:
        """The next one."""
        self._left = self._left or dice.sample(self._cards, len(self._cards))
        return self._left.pop()


def in_some_order(
    state: W, calls: Sequence[Callable[[W], Iterable[W]]], orders: Iterable[Sequence[int]] | None = None
) -> Iterator[W]:
    """The states after calls that overlapped: those of every order. A call gives the states that may follow a state.

    `orders` are those that are possible, as numbers of the calls.
    """
    for order in permutations(range(len(calls))) if orders is None else orders:
        states = [state]
        for number in order:
            states = [end for each in states for end in calls[number](each)]
        yield from states


class PossibleStates(Generic[W]):
    """The states that an implementation may be in as far as its answers show: one, but where an answer left it open."""

    def __init__(self, first: W) -> None:
        self.possible: tuple[W, ...] = (first,)

    def narrow(self, after: Callable[[W], Iterable[W]]) -> bool:
        """Go on to what can come `after` each state. False if nothing can: then the model and the answer differ."""
        found: list[W] = []
        for each in (each for world in self.possible for each in after(world)):
            if each not in found:
                found.append(each)
        if len(found) > _WORLDS:
            # To drop one could drop the true one.
            raise NonConformance(
                Judgement(Verdict.NOT_REACHED, detail=f"the answers leave open which of {len(found)} states")
            )
        self.possible = tuple(found) or self.possible
        return bool(found)
