"""Generated histories: the seed decides them, a difference is made short, and nothing that happens then hides it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import HistoryRunner, PossibleStates, in_turn, run_histories
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import load_contract
from tests.harness.suite_play import bench_on

OPEN = Judgement(Verdict.FAIL_OPEN, detail="it got through")


def bench(seed: str = "5eed") -> Bench:
    return bench_on(load_contract("rs4a-replay"), "a-history", lambda _: None, seed, 1)


@dataclass
class Vault:
    """Opens once it has seen 3 and, after it, 7. Keeps what each session was asked."""

    at_the_end: bool = False
    asked: list[list[int]] = field(default_factory=list)

    def step(self, step: int) -> None:
        self.asked[-1].append(step)
        if not self.at_the_end:
            self._judge()

    def compare(self) -> None:
        self._judge()

    def _judge(self) -> None:
        seen = self.asked[-1]
        if 3 in seen and 7 in seen[seen.index(3) :]:
            raise NonConformance(OPEN)

    @contextlib.contextmanager
    def session(self) -> Iterator[HistoryRunner[int]]:
        self.asked.append([])
        yield self


def digits(dice: Random) -> Sequence[int]:
    return [dice.randrange(10) for _ in range(40)]


def failing(vault: Vault, judgement: Judgement, when: Callable[[], bool], *, after: bool = False) -> Any:
    """Begins sessions of a vault, which fail at their beginning or `after` their end."""

    @contextlib.contextmanager
    def begin() -> Iterator[HistoryRunner[int]]:
        if not after and when():
            raise NonConformance(judgement)
        with vault.session() as player:
            yield player
        if after and when():
            raise NonConformance(judgement)

    return begin


def found(
    vault: Vault, begin: Callable[[], contextlib.AbstractContextManager[HistoryRunner[int]]] | None = None
) -> Judgement:
    with pytest.raises(NonConformance) as raised:
        run_histories(bench(), count=20, draw=digits, begin=begin or vault.session)
    return raised.value.judgement


def test_a_history_is_drawn_before_its_session_begins() -> None:
    """What is drawn may say with which settings: a suite draws them together."""
    vault, told = Vault(), list[str]()

    @contextlib.contextmanager
    def begin() -> Iterator[HistoryRunner[int]]:
        told.append("begin")
        with vault.session() as session:
            yield session

    def draw(_: Random) -> Sequence[int]:
        told.append("draw")
        return [1]

    run_histories(bench(), count=2, draw=draw, begin=begin)
    assert told == ["draw", "begin"] * 2


@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_differs_is_shortened_to_the_steps_that_it_takes(at_the_end: bool) -> None:
    judgement = found(Vault(at_the_end=at_the_end))
    assert judgement.verdict is Verdict.FAIL_OPEN
    assert "[3; 7]" in judgement.detail


def test_a_session_that_ends_badly_does_not_hide_a_difference() -> None:
    vault, crash = Vault(), Judgement(Verdict.NO_VERDICT, FailureMode.CRASH, "it does not close")
    begin = failing(vault, crash, lambda: True, after=True)
    with contextlib.suppress(NonConformance):
        run_histories(bench(), count=1, draw=lambda _: [1, 2], begin=begin)
    assert found(vault, begin).verdict in (Verdict.FAIL_OPEN, Verdict.NO_VERDICT)


def test_a_crash_while_it_is_shortened_leaves_what_was_found() -> None:
    vault, crash = Vault(), Judgement(Verdict.NO_VERDICT, FailureMode.CRASH, "it does not start again")
    begin = failing(vault, crash, lambda: any(3 in each and 7 in each[each.index(3) :] for each in vault.asked))
    assert found(vault, begin).verdict is Verdict.FAIL_OPEN


def test_evidence_of_another_test_is_not_taken_for_a_history_that_does_not_differ() -> None:
    vault, others = Vault(), Judgement(Verdict.KIT_FAULT, detail="the records are others")
    assert found(vault, failing(vault, others, lambda: len(vault.asked) > 3)).verdict is Verdict.KIT_FAULT


def test_a_history_that_came_to_no_end_is_no_difference() -> None:
    class Hung(Vault):
        def step(self, step: int) -> None:
            raise NonConformance(Judgement(Verdict.NO_VERDICT, FailureMode.HANG, f"{step} was not answered"))

    vault = Hung()
    assert found(vault).verdict is Verdict.NO_VERDICT
    assert len(vault.asked) == 1


def test_a_mild_difference_hides_no_grave_one_of_a_later_history() -> None:
    class Misnaming(Vault):
        def step(self, step: int) -> None:
            if len(self.asked) == 1:
                raise NonConformance(Judgement(Verdict.WRONG_REASON, detail="it has another name"))
            super().step(step)

    assert found(Misnaming()).verdict is Verdict.FAIL_OPEN

    class OnlyMisnaming(Misnaming):
        def _judge(self) -> None:
            """Nothing gets through."""

    assert found(OnlyMisnaming()).verdict is Verdict.WRONG_REASON


def test_a_history_goes_on_behind_what_it_reports() -> None:
    tested = bench()

    class Reporting(Vault):
        opens = True

        def step(self, step: int) -> None:
            if step == 5:
                tested.report("wrong_reason", "it has another name")
            super().step(step)

        def _judge(self) -> None:
            if self.opens:
                super()._judge()

    def judged(vault: Vault) -> Judgement:
        with pytest.raises(NonConformance) as raised:
            run_histories(tested, count=20, draw=digits, begin=vault.session)
        assert tested.reported() == []
        return raised.value.judgement

    assert judged(Reporting()).verdict is Verdict.FAIL_OPEN
    shut = Reporting()
    shut.opens = False
    assert judged(shut).verdict is Verdict.WRONG_REASON
    assert "[5]" in judged(shut).detail


def test_each_scene_has_its_turn_before_one_comes_again() -> None:
    assert "".join(scene for number in range(4) for scene in in_turn("abcde", number, 2)) == "abcdeabc"


def test_worlds_are_those_that_an_answer_leaves() -> None:
    worlds = PossibleStates(0)
    steps: list[tuple[Callable[[int], Sequence[int]], bool, tuple[int, ...]]] = [
        (lambda world: (world, world + 1, world), True, (0, 1)),
        (lambda _: (), False, (0, 1)),
        (lambda world: (world,) if world else (), True, (1,)),
    ]
    for after, fits, left in steps:
        assert worlds.narrow(after) is fits
        assert worlds.possible == left


def test_no_world_is_dropped_where_there_are_too_many() -> None:
    with pytest.raises(NonConformance) as raised:
        PossibleStates(0).narrow(lambda _: range(1000))
    assert raised.value.judgement.verdict is Verdict.NOT_REACHED


def test_a_thorough_run_plays_more_histories() -> None:
    played = []
    for factor in (1.0, 2.5):
        vault, thorough = Vault(), bench()
        thorough.thorough = factor
        run_histories(thorough, count=4, draw=lambda _: [1, 2], begin=vault.session)
        played.append(len(vault.asked))
    assert played == [4, 10]
