"""Suite tests of large numbers: a mailbox that gives up for want of time is asked again, and never accused."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from holdfast.conformance.verdict import Verdict
from holdfast.reference_impl.calyx_replay.factory import REFERENCE
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
    ("taken", "verdict"),
    [([0.8] * 2, Verdict.CONFORMS), ([0.8] * 5, Verdict.NOT_REACHED), ([0.0] * 5, Verdict.OVER_REFUSAL)],
    ids=["twice", "each time", "each time, and at once"],
)
def test_a_prune_that_takes_too_long_is_no_finding(taken: list[float], verdict: Verdict, template: Launched) -> None:
    GivesUp.left = list(taken)
    judgement, _ = played(PRUNED, template, "amounts", factory=replace(REFERENCE, store=GivesUp))
    assert judgement.verdict is verdict, judgement
