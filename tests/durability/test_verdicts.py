"""What a layer's report means for its case."""

from __future__ import annotations

import pytest

from conformance.durability.verdicts import judged
from conformance.faults import oracle
from conformance.faults.oracle import Kind
from conformance.faults.report import Finding, Layer, Report
from conformance.verdict import Verdict
from specs.model import FaultCase, FaultLayer, Promise


def case(layer: FaultLayer) -> FaultCase:
    """A case of that layer."""
    return FaultCase("a/faults/b", "a", "A-1", (), "Something strikes", layer, "work", Promise.KEPT, {})


def report(*kinds: Kind, tried: int = 3, unproven: tuple[str, ...] = (), beside: str = "") -> Report:
    """A report with findings of these kinds."""
    findings = tuple(Finding(number, oracle.Verdict(kind, "this", "that"), "So.") for number, kind in enumerate(kinds))
    return Report(Layer.POWER, tried, 9, f"{tried} of 9, seed 1", findings, unproven, beside=beside)


CRASH, AWAY = FaultLayer.POWER_LOSS, FaultLayer.STORE_MISSING


@pytest.mark.parametrize(
    ("layer", "kind", "verdict"),
    [
        (CRASH, Kind.LOST, Verdict.LOST_DURABILITY),
        (CRASH, Kind.TORN, Verdict.LOST_DURABILITY),
        (CRASH, Kind.UNRECOVERABLE, Verdict.LOST_DURABILITY),
        (CRASH, Kind.UNSTABLE, Verdict.LOST_DURABILITY),
        (CRASH, Kind.INVENTED, Verdict.FAIL_OPEN),
        # The store was there before anything was acknowledged, so not to come back from a crash is a loss.
        (CRASH, Kind.INIT, Verdict.LOST_DURABILITY),
        (AWAY, Kind.LOST, Verdict.FAIL_OPEN),
        (AWAY, Kind.TORN, Verdict.FAIL_OPEN),
        (AWAY, Kind.INVENTED, Verdict.FAIL_OPEN),
        (AWAY, Kind.UNRECOVERABLE, Verdict.LOST_DURABILITY),
    ],
)
def test_lost_without_the_store_is_open_for_it_says_not_seen_yet(
    layer: FaultLayer, kind: Kind, verdict: Verdict
) -> None:
    found = judged(case(layer), report(kind))
    assert found.verdict is verdict
    assert (found.expected, found.received) == ("this", "that")
    assert kind.value in found.detail
    assert "3 of 9, seed 1" in found.detail


def test_the_gravest_finding_is_told() -> None:
    found = judged(case(CRASH), report(Kind.LOST, Kind.INVENTED))
    assert found.verdict is Verdict.FAIL_OPEN
    assert "1 more" in found.detail


def test_what_could_not_be_seen_is_indeterminate() -> None:
    found = judged(case(CRASH), report(unproven=("the recording does not explain these files: kv.db",)))
    assert found.verdict is Verdict.INDETERMINATE
    assert "kv.db" in found.detail


def test_a_layer_that_tried_nothing_is_no_pass() -> None:
    assert judged(case(CRASH), report(tried=0)).verdict is Verdict.NOT_REACHED


def test_a_finding_is_told_although_not_all_could_be_seen() -> None:
    assert judged(case(CRASH), report(Kind.LOST, unproven=("something",))).verdict is Verdict.LOST_DURABILITY


def test_a_layer_that_does_not_apply_holds_nothing_up() -> None:
    assert judged(case(CRASH), report(tried=0, beside="it starts no process")).verdict is Verdict.CONFORMS
    assert judged(case(CRASH), report()).verdict is Verdict.CONFORMS
