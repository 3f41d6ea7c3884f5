"""Explores histories: a step is preferred that meets a situation which no step of this test has met yet.

A suite says before each step which steps it could take now (`Candidate`), each with its operation and the features of
the state that it would meet: of the store, of the clock, and of the thing that the step names, such as "its record is
pruned" or "it was sent again last". A pair is a feature and an operation; two operations on one thing are a pair too,
where the suite names the last operation as a feature.

Which operation makes a feature appear is learned from the history itself, so no suite has to say how a situation is
reached. Every choice follows from the dice and from the answers: the gate makes the same ones from the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Generic, Protocol, TypeVar

from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")

# A feature of a state, and an operation that meets it.
Pair = tuple[str, str]
# An operation as a thing has met it: it was named by the step, or was there.
_Met = tuple[str, bool]

# What a step costs of what waits at the end of a way to a feature.
_WORTH = 0.8
# What it is worth to do something where it was never done, beside 1 for a pair that is wanted.
_TRIED = 0.2
# A history ends after this number of steps that reached nothing.
_PATIENCE = 20
# How many of the pairs that were not reached are named.
_NAMED = 6


@dataclass(frozen=True, slots=True)
class Candidate(Generic[S_co]):
    """A step that can be taken now, with the features that it meets.

    `thing` is what the step names, if it names one. `cost` is how long it takes, as a multiple of a plain call.
    """

    operation: str
    features: frozenset[str]
    step: S_co
    thing: str = ""
    cost: float = 1.0

    @property
    def pairs(self) -> list[Pair]:
        """What it reaches, in an order that no process changes."""
        return [(feature, self.operation) for feature in sorted(self.features)]


class Explorable(Protocol[S_co]):
    """A runner of histories that can be explored (`histories.HistoryRunner`)."""

    def situations(self) -> Mapping[str, frozenset[str]]:
        """The features of each thing that a step can name, by its name; of the store itself by an empty one."""

    def offers(self, dice: Random) -> Sequence[Candidate[S_co]]:
        """What can be done now; `dice` decide what the engine does not, such as amounts and which worker."""


class Explorer:
    """What the histories of one test have reached, of what they are to reach: these pairs, and each that was offered.

    A test has shown nothing below `floor`, a part of them from 0 to 1, and below `least` pairs.
    """

    def __init__(self, pairs: Iterable[Pair] = (), *, floor: float, least: int = 0) -> None:
        self.wanted, self._floor, self._least = set(pairs), floor, least
        self._names: list[str] = []
        self.reached: Counter[Pair] = Counter()
        # How often an operation met a feature of a thing, and how often the thing had another feature after that.
        self._met: Counter[tuple[str, _Met]] = Counter()
        self._led: dict[tuple[str, _Met], Counter[str]] = {}
        # The same by the other feature.
        self._before: dict[str, Counter[tuple[str, _Met]]] = {}
        # How often nothing came of a feature for which it was looked.
        self._vain: Counter[str] = Counter()
        self._worth: dict[str, float] = {}

    @property
    def missing(self) -> list[Pair]:
        """The pairs that are wanted and were not reached."""
        return sorted(self.wanted - self.reached.keys())

    def walk(self, player: Explorable[S], dice: Random, length: float) -> Iterator[S]:
        """Steps for a player, each chosen when the one before is done, until their costs amount to `length`.

        Fewer if too many steps reached nothing: then a fresh store is better.
        """
        idle, before = 0, player.situations()
        while length > 0:
            offers = player.offers(dice)
            self.wanted.update(pair for offer in offers for pair in offer.pairs)
            self._names = sorted({name for _, name in self.wanted})
            if not offers or idle > _PATIENCE:
                return
            chosen = self._chosen(offers, before, dice)
            length -= chosen.cost
            idle = 0 if self._gain(chosen) else idle + 1
            yield chosen.step
            self.meet(chosen.pairs)
            after = player.situations()
            self._learn(chosen, before, after)
            before = after

    def meet(self, pairs: Iterable[Pair]) -> None:
        """Note what a step reached that was chosen otherwise."""
        self.reached.update(pairs)

    def conclude(self) -> str:
        """How much was reached. Raises NonConformance below the floor."""
        missing, count = self.missing, len(self.wanted)
        told = f"{count - len(missing)} of {count} pairs of a situation and an operation were reached"
        if count - len(missing) < max(self._floor * count, self._least):
            named = ", ".join(" with ".join(pair) for pair in missing[:_NAMED])
            raise NonConformance(Judgement(Verdict.NOT_REACHED, detail=f"{told}; not {named}"))
        return told

    def _chosen(
        self, offers: Sequence[Candidate[S]], things: Mapping[str, frozenset[str]], dice: Random
    ) -> Candidate[S]:
        """The offer that reaches most for what it costs, or leads there; one of the best."""
        values = [self._gain(offer) / offer.cost for offer in offers]
        if not any(values):
            self._vain.update(sorted(frozenset().union(*things.values())))
            self._reckon()
            values = self._promises(offers, things)
        best = max(values)
        return dice.choice([offer for offer, value in zip(offers, values, strict=True) if value >= 0.9 * best])

    def _gain(self, offer: Candidate[S]) -> int:
        return sum(pair not in self.reached for pair in offer.pairs)

    # Ways to a feature

    def _learn(
        self, chosen: Candidate[S], before: Mapping[str, frozenset[str]], after: Mapping[str, frozenset[str]]
    ) -> None:
        for thing, features in before.items():
            now = sorted(after.get(thing, features) - features)
            for feature in sorted(features):
                key = feature, (chosen.operation, thing == chosen.thing)
                self._met[key] += 1
                if now:
                    self._led.setdefault(key, Counter()).update(now)
                for found in now:
                    self._before.setdefault(found, Counter())[key] += 1

    def _reckon(self) -> None:
        """What each feature is worth: those of which a pair is missing most, and what leads there less."""
        worth = {feature: self._seldom(feature) for feature in dict.fromkeys(met for met, _ in self._met)}
        worth.update({feature: 1 / (1 + self._vain[feature]) for feature, _ in self.missing})
        # From the best down: what leads to a feature can only be worth less than it, so each is looked at once.
        rest = [(-value, feature) for feature, value in worth.items()]
        heapify(rest)
        while rest:
            value, feature = heappop(rest)
            if -value < worth[feature]:
                continue
            for key, count in self._before.get(feature, {}).items():
                leading = _WORTH * -value * count / self._met[key]
                if leading > worth.get(key[0], 0.0):
                    worth[key[0]] = leading
                    heappush(rest, (-leading, key[0]))
        self._worth = worth

    def _promises(self, offers: Sequence[Candidate[S]], things: Mapping[str, frozenset[str]]) -> list[float]:
        """What the best feature is worth that a thing may have after each of these steps, and has not now."""
        there = sorted({tuple(sorted(features)) for features in things.values()})
        unnamed = {
            name: max((self._led_to(name, features, named=False) for features in there), default=0.0)
            for name in {offer.operation for offer in offers}
        }
        return [
            max(
                unnamed[offer.operation],
                self._led_to(offer.operation, tuple(things[offer.thing]), named=True),
                max((_TRIED / (1 + self.reached[pair]) for pair in offer.pairs), default=0.0),
            )
            / offer.cost
            for offer in offers
        ]

    def _seldom(self, feature: str) -> float:
        """What it is worth to do with a feature what was seldom done: that may lead to what was never met."""
        done, names = self.reached, self._names
        # Mostly one of them was never done, and the first of these says so.
        is_done = names and all((feature, name) in done for name in names)
        fewest = min(done[feature, name] for name in names) if is_done else 0
        return _TRIED / (1 + fewest)

    def _led_to(self, operation: str, features: tuple[str, ...], *, named: bool) -> float:
        best = 0.0
        for feature in features:
            key = feature, (operation, named)
            for found, count in self._led.get(key, {}).items():
                if found not in features:
                    best = max(best, count * self._worth.get(found, 0.0) / self._met[key])
        return best
