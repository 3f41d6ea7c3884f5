"""What `Bench.must_be` says of an answer that is not the one that is due."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict
from tests.harness.suite_play import bench_of


def refused(reason: str) -> dict[str, Any]:
    return {"outcome": "refused", "reason": reason}


@pytest.mark.parametrize(
    ("answer", "due", "verdict"),
    [
        (refused("FORK"), "refused FORK", "conforms"),
        (refused("FORK"), "refused", "conforms"),
        (refused("FORK"), "refused STALE", "wrong_reason"),
        ({"outcome": "accepted", "effect": "new"}, "refused STALE", "fail_open"),
        ({"outcome": "accepted", "effect": "prior"}, "accepted new", "fail_open"),
        (refused("FORK"), "accepted new", "over_refusal"),
        # It says neither that it was done nor that it was not.
        ({"outcome": "indeterminate"}, "refused STALE", "indeterminate"),
        ({"outcome": "indeterminate"}, "accepted new", "indeterminate"),
    ],
)
def test_an_answer_that_is_not_due_has_the_verdict_of_its_outcome(
    answer: dict[str, Any], due: str, verdict: str
) -> None:
    words = " ".join(str(part) for part in answer.values())
    bench, last = bench_of("m5-log", "must-be", lambda: lambda *_: answer), Judgement(Verdict.CONFORMS)
    try:
        bench.must_be(words, due, "a call")
    except NonConformance as finding:
        last = finding.judgement
    assert bench.gravest(last).verdict.value == verdict
