"""What a layer's report means for its case."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.durability import verdicts
from holdfast.conformance.durability.verdicts import BY_SIGNALS, LAYERS, ReportError, how_of, read, report_of
from holdfast.conformance.faults import oracle
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import BrokenPromise, Layer, SweepReport
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs.faults import FaultCase, FaultLayer, Promise


def case(layer: FaultLayer) -> FaultCase:
    """A case of that layer."""
    return FaultCase("a/faults/b", "a", "A-1", "Something strikes", layer, "work", Promise.KEPT)


def report(*kinds: CrashClass, tried: int = 3, unproven: tuple[str, ...] = (), beside: str = "") -> SweepReport:
    """A report with findings of these kinds."""
    findings = tuple(
        BrokenPromise(number, oracle.CrashOutcome(kind, "this", "that"), "So.") for number, kind in enumerate(kinds)
    )
    return SweepReport(Layer.POWER, tried, 9, f"{tried} of 9, seed 1", findings, unproven, beside=beside)


def judged(fault: FaultCase, told: SweepReport) -> Judgement:
    """The judgement of that report, as it stands in the evidence of that case."""
    told = replace(told, layer=LAYERS[fault.layer])
    return verdicts.judged(fault, read(report_of(told, how=how_of(fault.layer), seed=1).detail()))


CRASH, AWAY = FaultLayer.POWER_LOSS, FaultLayer.STORE_MISSING


@pytest.mark.parametrize(
    ("layer", "kind", "verdict"),
    [
        (CRASH, CrashClass.LOST, Verdict.LOST_DURABILITY),
        (CRASH, CrashClass.TORN, Verdict.LOST_DURABILITY),
        (CRASH, CrashClass.UNRECOVERABLE, Verdict.LOST_DURABILITY),
        (CRASH, CrashClass.UNSTABLE, Verdict.LOST_DURABILITY),
        (CRASH, CrashClass.INVENTED, Verdict.FAIL_OPEN),
        # The store was there before anything was acknowledged, so not to come back from a crash is a loss.
        (CRASH, CrashClass.INIT, Verdict.LOST_DURABILITY),
        (AWAY, CrashClass.LOST, Verdict.FAIL_OPEN),
        (AWAY, CrashClass.TORN, Verdict.FAIL_OPEN),
        (AWAY, CrashClass.INVENTED, Verdict.FAIL_OPEN),
        (AWAY, CrashClass.UNRECOVERABLE, Verdict.LOST_DURABILITY),
    ],
)
def test_lost_without_the_store_is_open_for_it_says_not_seen_yet(
    layer: FaultLayer, kind: CrashClass, verdict: Verdict
) -> None:
    found = judged(case(layer), report(kind))
    assert found.verdict is verdict
    assert (found.expected, found.received) == ("this", "that")
    assert kind.value in found.detail
    assert "3 of 9, seed 1" in found.detail


NONE = replace(report(tried=0), total=0, tally="0 of 0", beside="does not apply: it starts no process")


@pytest.mark.parametrize(
    ("layer", "told", "verdict", "words"),
    [
        (CRASH, report(), Verdict.CONFORMS, ""),
        # The gravest finding is told, also where not all could be seen.
        (CRASH, report(CrashClass.LOST, CrashClass.INVENTED), Verdict.FAIL_OPEN, "1 more"),
        (CRASH, report(CrashClass.LOST, unproven=("something",)), Verdict.LOST_DURABILITY, "lost"),
        (CRASH, report(unproven=("kv.db is not explained",)), Verdict.INDETERMINATE, "kv.db is not explained"),
        # A layer that tried nothing is no pass.
        (CRASH, report(tried=0), Verdict.NOT_REACHED, ""),
        # One that does not apply holds nothing up and says so. A store that works through a mapping calls no write.
        *(
            (layer, NONE, Verdict.CONFORMS, f"^{LAYERS[layer].value}: {NONE.beside}$")
            for layer in (
                FaultLayer.DEPENDENCY_KILLED,
                FaultLayer.KILL_WITHIN_WRITE,
                FaultLayer.SHORT_WRITES,
                FaultLayer.FAILED_SYNC,
            )
        ),
        # One that always applies is no pass because it is said not to, and what was tried applies.
        *((layer, NONE, Verdict.NOT_REACHED, "") for layer in (CRASH, AWAY, FaultLayer.KILL, FaultLayer.CLOCK_BACK)),
        (FaultLayer.DEPENDENCY_KILLED, report(beside=NONE.beside), Verdict.NOT_REACHED, ""),
    ],
)
def test_what_was_tried_and_what_was_not_decide(
    layer: FaultLayer, told: SweepReport, verdict: Verdict, words: str
) -> None:
    found = judged(case(layer), told)
    assert found.verdict is verdict
    assert re.search(words, found.detail)


def test_signals_are_weaker_than_what_they_stand_for_and_can_only_say_no() -> None:
    def by_signals(kill: SweepReport, layer: FaultLayer = FaultLayer.KILL, untested: str = "no ptrace") -> Judgement:
        told = report_of(replace(kill, layer=Layer.SIGNALS), how=BY_SIGNALS, seed=1, untested=untested)
        return verdicts.judged(case(layer), read(told.detail()))

    clean = by_signals(report())
    assert clean.verdict is Verdict.NOT_REACHED
    assert "kill NOT TESTED: no ptrace; by signals, a weaker layer, nothing was found in 3 of 9" in clean.detail
    assert by_signals(report(CrashClass.TORN)).verdict is Verdict.LOST_DURABILITY
    for layer, untested in ((FaultLayer.KILL, ""), (FaultLayer.POWER_LOSS, "no ptrace")):
        with pytest.raises(ReportError, match="it tells of kill by signals"):
            by_signals(report(), layer, untested)


def test_the_report_of_another_layer_tells_nothing() -> None:
    told = report_of(replace(report(), layer=Layer.KILL), how=how_of(CRASH), seed=1)
    with pytest.raises(ReportError, match="it tells of kill, recorded by ptrace, and power loss"):
        verdicts.judged(case(CRASH), told)


def test_what_is_told_comes_back_and_reads_well() -> None:
    kept = replace(report(CrashClass.LOST, unproven=("a file \ud800",)).findings[0], kept=Path("faults/power-lost.tar"))
    told = report_of(replace(report(unproven=("a file \ud800",)), findings=(kept,)), how=how_of(CRASH), seed=7)
    assert read(told.detail()) == told
    assert told.sentence() == (
        "power loss: 3 of 9, seed 1; recorded by ptrace; lost: expected this; got that. So. "
        "The state is kept as faults/power-lost.tar.; not proven: a file ?"
    )


@pytest.mark.parametrize(
    "detail",
    [
        None,
        "",
        "nothing at all",
        "[]",
        "{}",
        report_of(report(), how="", seed=1).detail().replace(",", ", "),
        report_of(report(), how="", seed=1).detail().replace('"tried":3', '"tried":true'),
        report_of(report(), how="", seed=1).detail().replace('"tried":3', '"tried":4'),
        report_of(report(), how="", seed=1).detail().replace('"tried":3', '"tried":-3'),
        report_of(report(), how="", seed=1).detail().replace('"total":9', '"total":"9"'),
        report_of(report(), how="", seed=1).detail().replace('"unproven":[]', '"unproven":null'),
        report_of(report(), how="", seed=1).detail().replace('"unproven":[]', '"unproven":[1]'),
        report_of(report(), how="", seed=1).detail().replace('"beside":null', '"beside":""'),
        report_of(report(), how="", seed=1).detail().replace('"how":""', '"how":null'),
        report_of(report(CrashClass.LOST), how="", seed=1).detail().replace('"lost"', '"clean"'),
        report_of(report(CrashClass.LOST), how="", seed=1).detail().replace('"findings":[{', '"findings":[7,{'),
        report_of(report(CrashClass.LOST), how="", seed=1).detail().replace('"came":"that",', ""),
    ],
)
def test_any_other_text_tells_of_no_layer(detail: object) -> None:
    with pytest.raises(ReportError):
        read(detail)


@pytest.mark.parametrize("mode", [FailureMode.BUSY, FailureMode.FAULT])
def test_what_kept_a_layer_from_proving_anything_is_no_verdict_with_its_failure_mode(mode: FailureMode) -> None:
    told = report_of(report(unproven=("because",)), how=how_of(CRASH), seed=1, silence=mode)
    found = verdicts.judged(case(CRASH), read(told.detail()))
    assert (found.verdict, found.silence) == (Verdict.NO_VERDICT, mode)
    assert "because" in found.detail


def test_a_failure_mode_beside_nothing_that_is_unproven_is_no_report() -> None:
    detail = report_of(report(), how=how_of(CRASH), seed=1).detail()
    with pytest.raises(ReportError):
        read(detail.replace('"silence":null', '"silence":"busy"'))
