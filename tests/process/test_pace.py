"""The factor of a machine, and the time of a session that is counted in its work."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from holdfast.servers.pace import MOST_FACTOR, REQUESTS_OF_A_START, USUAL, Budget, Pace, adopted, measured, scaled


@pytest.mark.parametrize(
    ("times", "factor"),
    [((1, 1, 1), 1.0), ((0.1, 0.2, 0.3), 1.0), ((1, 2, 1), 2.0), ((3, 1, 2), 3.0), ((1, 1, 1e6), MOST_FACTOR)],
)
def test_a_machine_is_as_slow_as_what_it_does_worst_and_never_faster_than_usual(
    times: tuple[float, float, float], factor: float
) -> None:
    exchange, start, sync = times
    pace = Pace(USUAL.exchange_s * exchange, USUAL.start_s * start, USUAL.sync_s * sync)
    assert pace.factor == pytest.approx(factor, abs=0.25)
    assert pace.factor >= 1.0


def test_a_machine_is_measured_and_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    pace = measured(tmp_path)
    assert 1.0 <= pace.factor <= MOST_FACTOR
    assert min(pace.exchange_s, pace.start_s, pace.sync_s) > 0
    assert list(tmp_path.iterdir()) == []


def test_the_limits_of_a_process_follow_the_factor_that_it_has_adopted() -> None:
    before = scaled(1.0)
    with adopted(3.0):
        assert scaled(2.0) == 6.0
        with adopted(0.1):
            assert scaled(2.0) == 2.0
    assert scaled(1.0) == before


def test_more_work_has_more_time_and_little_work_no_less_than_the_whole() -> None:
    budget = Budget(30.0)
    budget.work(10)
    assert budget.seconds == budget.left == 30.0
    budget.work(20 * REQUESTS_OF_A_START)
    assert budget.seconds > 60.0
    budget.grant_again()
    assert budget.seconds > 120.0


def test_only_waiting_is_spent_and_what_is_left_is_never_negative() -> None:
    budget = Budget(0.01)
    time.sleep(0.02)
    assert budget.spent == 0.0
    with budget.spending():
        time.sleep(0.02)
    assert budget.spent >= 0.02
    assert budget.left == 0.0
    assert Budget(math.inf).left == math.inf
