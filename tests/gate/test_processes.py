"""A long run is judged by several processes: the reasons do not depend on them, and one that dies opens nothing."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool
from typing import NoReturn

import pytest

from holdfast.conformance.gate import cases
from holdfast.conformance.gate.model import ReasonCode
from tests.gate.conftest import Bench, Lines

SECOND = "toy/once/a-second-put-of-a-key-is-refused"


def _several(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cases, "_MANY", 1)
    patch.setattr(cases, "processors", lambda: 3)


def _told_to_conform(lines: Lines) -> None:
    told = {"verdict": "conforms", "side": None, "n": None, "silence": None}
    for line in lines:
        if line["type"] == "verdict":
            line.update(told, detail="", expected="", received="", advice="")


@pytest.mark.parametrize("flaw", [None, "accepts duplicates", "confuses reasons"])
def test_several_processes_give_the_reasons_of_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, flaw: str | None
) -> None:
    path = bench.run(flaw=flaw)
    one = bench.decide(path)
    _several(monkeypatch)
    assert bench.decide(path) == one


def test_a_verdict_that_its_exchanges_do_not_show_holds_the_gate_in_any_process(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _several(monkeypatch)
    decision = bench.forged(_told_to_conform, flaw="accepts duplicates")
    assert ReasonCode.JUDGED_OTHERWISE in [reason.code for reason in decision.reasons]
    assert SECOND in [case for reason in decision.reasons for case in reason.cases]


def test_a_judging_process_that_dies_opens_no_gate(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.run()
    _several(monkeypatch)

    def dies(*_asked: object, **_more: object) -> NoReturn:
        os._exit(0)

    monkeypatch.setattr(cases, "judge_case", dies)
    with pytest.raises(BrokenProcessPool):
        bench.decide(path)
