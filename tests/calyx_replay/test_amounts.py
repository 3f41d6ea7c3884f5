"""Suite tests of large numbers: a mailbox that gives up for want of time is asked again, and never accused."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, ClassVar

import pytest

from holdfast.conformance.suites.calyx_replay import amounts
from holdfast.conformance.verdict import Verdict
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.servers.serving import Launched
from tests.calyx_replay.playing import played

PRUNED = "test_no_number_of_records_is_too_many"


class GivesUp(Store):
    """Some prunes are interrupted when their time is up."""

    left: ClassVar[list[float]] = []

    def delete_before(self, connection: Any, cutoff: int) -> int:
        removed = super().delete_before(connection, cutoff)
        if self.left:
            time.sleep(self.left.pop())
            raise sqlite3.OperationalError("interrupted")
        return removed


@pytest.mark.parametrize(
    ("taken", "long_s", "verdict"),
    [
        ([0.3] * 2, 0.25, Verdict.CONFORMS),
        ([0.3] * 5, 0.25, Verdict.NOT_REACHED),
        # On a busy machine even what is refused at once takes a while.
        ([0.0] * 5, 60.0, Verdict.OVER_REFUSAL),
    ],
    ids=["twice", "each time", "each time, and at once"],
)
def test_a_prune_that_takes_too_long_is_no_finding(
    taken: list[float], long_s: float, verdict: Verdict, template: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amounts, "_LONG_S", long_s)
    # What it takes here does not grow with the load of this machine.
    monkeypatch.setattr(amounts, "scaled", float)
    # How many there are does not matter here.
    monkeypatch.setattr(amounts, "_HELD", 200)
    monkeypatch.setattr(amounts, "_SHOWN", 100)
    GivesUp.left = list(taken)
    judgement, _ = played(PRUNED, template, "amounts", Store=GivesUp)
    assert judgement.verdict is verdict, judgement
