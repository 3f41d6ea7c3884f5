"""Histories beside the model of rs4a-replay: the reference agrees with it, and planted bugs do not."""

from __future__ import annotations

import pytest

from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.histories import hold
from holdfast.conformance.suites.rs4a_replay import suite
from holdfast.conformance.suites.rs4a_replay.history import FEWEST
from holdfast.conformance.suites.rs4a_replay.steps import history, volume
from holdfast.conformance.verdict import Verdict
from holdfast.reference_impl.rs4a_replay.mutants.histories import BUGS
from holdfast.servers.serving import Launched
from tests.rs4a_replay.played import bench_of, judged

HORIZON_S = 7200
# They show with hundreds of keys, which takes a while.
MANY = ("few-remembered", "one-batch-of-tombstones")
# The steps of the shortest history are few enough to be read.
MOST_STEPS = 8


def histories(bench: Bench) -> None:
    """A few histories with a horizon, which has all that there is without one."""
    hold(
        bench,
        count=8,
        draw=lambda dice: history(dice, horizon_s=HORIZON_S, parts=3),
        begin=lambda: suite._play(bench, horizon_s=HORIZON_S),
    )


@pytest.mark.parametrize("seed", ["one", "two"])
def test_the_reference_agrees_with_the_model_in_any_history(sqlite: Launched, seed: str) -> None:
    with bench_of(sqlite, seed=seed) as bench:
        judgement = judged(bench, histories)
    assert judgement.verdict is Verdict.CONFORMS, judgement


@pytest.mark.parametrize("bug", [name for name in BUGS if name not in MANY])
def test_a_bug_that_one_call_does_not_show_is_found_by_a_short_history(sqlite: Launched, bug: str) -> None:
    with bench_of(sqlite, mutant=bug) as bench:
        judgement = judged(bench, histories)
    assert not judgement.verdict.is_incomplete, judgement
    assert judgement.verdict is not Verdict.CONFORMS
    shortest = judgement.detail[judgement.detail.index("[") + 1 : judgement.detail.index("]")]
    assert len(shortest.split("; ")) <= MOST_STEPS, shortest


@pytest.mark.parametrize("bug", MANY)
def test_a_bug_that_shows_with_many_keys_is_found(sqlite: Launched, bug: str) -> None:
    def many(bench: Bench) -> None:
        hold(
            bench,
            count=1,
            draw=lambda dice: volume(dice, horizon_s=HORIZON_S, keys=FEWEST),
            begin=lambda: suite._play(bench, horizon_s=HORIZON_S),
        )

    with bench_of(sqlite, mutant=bug) as bench:
        judgement = judged(bench, many)
    assert not judgement.verdict.is_incomplete, judgement
    assert judgement.verdict is not Verdict.CONFORMS
