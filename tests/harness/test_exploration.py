"""Explored histories: they reach rare situations, the seed decides them, and too few are no proof."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from holdfast.conformance.attacks.explore import Candidate, Explorer, Pair
from holdfast.conformance.attacks.histories import explore_histories
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict
from tests.harness.test_histories import bench

FLOORS = 4
OPERATIONS = ("up", "down", "ring", "call")
ALL = frozenset((f"floor {floor}", name) for floor in range(FLOORS) for name in OPERATIONS)


@dataclass
class Lift:
    """It goes up and down, and falls to the ground with a call. `broken` is the floor where its bell opens the door.

    Of dice alone it is seldom at the top.
    """

    broken: int | None = None
    floor: int = 0
    done: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def begin(self) -> Iterator[Lift]:
        self.floor = 0
        yield self

    def offers(self, dice: Random) -> Sequence[Candidate[str]]:
        return [Candidate(name, frozenset({f"floor {self.floor}"}), name) for name in OPERATIONS]

    def step(self, step: str) -> None:
        self.done.append(step)
        if step == "ring" and self.floor == self.broken:
            raise NonConformance(Judgement(Verdict.FAIL_OPEN, detail="the door is open"))
        moved = {"up": self.floor + 1, "down": self.floor - 1, "call": 0}.get(step, self.floor)
        self.floor = min(FLOORS - 1, max(0, moved))

    def compare(self) -> None:
        pass


def steered(
    lift: Lift, owed: frozenset[Pair] = ALL, *, seed: str = "5eed", count: int = 12, length: int = 60, least: int = 0
) -> Explorer:
    steering = Explorer(owed, floor=1, least=least)
    explore_histories(bench(seed), count=count, length=length, begin=lift.begin, steering=steering)
    return steering


def test_every_operation_is_done_in_every_situation_that_can_be_reached() -> None:
    steering = steered(Lift())
    assert steering.missing == []
    assert set(steering.reached) >= ALL


def test_a_seed_has_always_the_same_history_and_another_seed_another() -> None:
    asked = []
    for seed in ("one", "two", "one"):
        lift = Lift()
        steered(lift, seed=seed)
        asked.append(lift.done)
    assert asked[0] == asked[2] != asked[1]


def test_a_bug_in_a_rare_situation_is_found_and_the_history_made_short() -> None:
    with pytest.raises(NonConformance) as raised:
        steered(Lift(broken=3))
    judgement = raised.value.judgement
    assert judgement.verdict is Verdict.FAIL_OPEN
    assert "[up; up; up; ring]" in judgement.detail


@pytest.mark.parametrize(
    ("owed", "least", "missing"), [(ALL | {("floor 17", "ring")}, 0, "floor 17 with ring"), ((), 1000, "")]
)
def test_too_little_is_not_reached_and_says_what_is_missing(owed: frozenset[Pair], least: int, missing: str) -> None:
    with pytest.raises(NonConformance) as raised:
        steered(Lift(), owed, least=least)
    judgement = raised.value.judgement
    assert judgement.verdict is Verdict.NOT_REACHED
    assert missing in judgement.detail


def test_what_was_offered_is_looked_for_and_counts() -> None:
    steering = steered(Lift(), frozenset())
    assert steering.wanted == set(steering.reached) == ALL


def test_the_report_of_a_test_that_conforms_says_how_much_was_reached() -> None:
    tested = bench()
    explore_histories(tested, count=12, length=60, begin=Lift().begin, steering=Explorer(floor=1))
    tested._sessions = 1
    assert f"{len(ALL)} of {len(ALL)} pairs" in tested.conclude().detail
