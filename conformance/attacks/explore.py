"""Explores histories: a step is preferred that meets a situation which no step of this test has met yet.

A suite says before each step which steps it could take now (`Candidate`), each with its operation and the features of
the state that it would meet: of the store, of the clock, and of the thing that the step names, such as "its record is
pruned" or "it was sent again last". A pair is a feature and an operation; two operations on one thing are a pair too,
where the suite names the last operation as a feature.

Where every pair was met, the step is preferred that was done least often. Every choice follows from the dice and from
the answers: the gate makes the same ones from the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")

# A feature of a state, and an operation that meets it.
Pair = tuple[str, str]

# A history ends after this number of steps that reached nothing.
_PATIENCE = 20
# How many of the pairs that were not reached are named.
_NAMED = 6


class Candidate(Struct, Generic[S_co], frozen=True):
    """A step that can be taken now, with the features that it meets.

    `cost` is how long it takes, as a multiple of a plain call.
    """

    operation: str
    features: frozenset[str]
    step: S_co
    cost: float = 1.0


class Explorable(Protocol[S_co]):
    """A runner of histories that can be explored (`histories.HistoryRunner`)."""

    def offers(self, dice: Random) -> Sequence[Candidate[S_co]]:
        """What can be done now; `dice` decide what the engine does not, such as amounts and which worker."""


class Explorer:
    """What the histories of one test have reached, of what they are to reach: these pairs, and each that was offered.

    A test has shown nothing below `floor`, a part of them from 0 to 1, and below `least` pairs.
    """

    def __init__(self, pairs: Iterable[Pair] = (), *, floor: float, least: int = 0) -> None:
        self._floor, self._least = floor, least
        # The features by operation: those that are wanted, and how often each was reached.
        self._wanted: defaultdict[str, set[str]] = defaultdict(set)
        self._reached: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for feature, operation in pairs:
            self._wanted[operation].add(feature)

    @property
    def wanted(self) -> set[Pair]:
        """The pairs that are to be reached."""
        return {(feature, operation) for operation, features in self._wanted.items() for feature in features}

    @property
    def reached(self) -> set[Pair]:
        """The pairs that were reached."""
        return {(feature, operation) for operation, met in self._reached.items() for feature in met}

    @property
    def missing(self) -> list[Pair]:
        """The pairs that are wanted and were not reached."""
        return sorted(self.wanted - self.reached)

    def walk(self, player: Explorable[S], dice: Random, length: float) -> Iterator[S]:
        """Steps for a player, each chosen when the one before is done, until their costs amount to `length`.

        Fewer if too many steps reached nothing: then a fresh store is better.
        """
        idle = 0
        while length > 0 and idle <= _PATIENCE and (offers := player.offers(dice)):
            for offer in offers:
                self._wanted[offer.operation] |= offer.features
            chosen = self._chosen(offers, dice)
            length -= chosen.cost
            idle = 0 if self._gain(chosen) else idle + 1
            yield chosen.step
            self.meet((feature, chosen.operation) for feature in chosen.features)

    def meet(self, pairs: Iterable[Pair]) -> None:
        """Note what a step reached that was chosen otherwise."""
        for feature, operation in pairs:
            met = self._reached[operation]
            met[feature] = met.get(feature, 0) + 1

    def conclude(self) -> str:
        """How much was reached. Raises NonConformance below the floor."""
        missing, count = self.missing, len(self.wanted)
        told = f"{count - len(missing)} of {count} pairs of a situation and an operation were reached"
        if count - len(missing) < max(self._floor * count, self._least):
            named = ", ".join(" with ".join(pair) for pair in missing[:_NAMED])
            raise NonConformance(Judgement(Verdict.NOT_REACHED, detail=f"{told}; not {named}"))
        return told

    def _chosen(self, offers: Sequence[Candidate[S]], dice: Random) -> Candidate[S]:
        """The offer that reaches most for what it costs, or else was done least; one of the best."""
        values = [self._gain(offer) / offer.cost for offer in offers]
        if not any(values):
            values = [self._seldom(offer) / offer.cost for offer in offers]
        best = max(values)
        return dice.choice([offer for offer, value in zip(offers, values, strict=True) if value >= 0.9 * best])

    def _gain(self, offer: Candidate[S]) -> int:
        return len(offer.features.difference(self._reached[offer.operation]))

    def _seldom(self, offer: Candidate[S]) -> float:
        met = self._reached[offer.operation]
        return max((1 / (1 + met.get(feature, 0)) for feature in offer.features), default=0.0)
