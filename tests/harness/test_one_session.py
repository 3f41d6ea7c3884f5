"""Cases, suites and fault workloads speak with an adapter in one way: its failure means the same in all three."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.gate.cases import judge_fault
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import Form, PlannedCase
from holdfast.conformance.run.settings import RunSettings
from holdfast.specs.loader import read_contract
from holdfast.specs.model import CaseKind
from tests.harness.play import toy_case, verdict_of
from tests.hostile.verify import temp_folder

HERE = Path(__file__).resolve().parent
LEDGER = read_contract(HERE.parent / "durability" / "contracts" / "ledger")
CASE = toy_case(
    "a-put-key-stands-on-the-shelf",
    id="ledger/made/state",
    kind=CaseKind.BEHAVIOUR,
    values={},
    needs=frozenset(),
    given=(),
    when=({"observe": "state"},),
    then=(),
    twin=None,
)
TEST = PlannedCase("ledger/suite/state", "ledger", ("LEDGER-1",), "state", Form.SUITE, frozenset())
# Its layer takes something away, so that nothing has to be recorded.
FAULT = next(fault for fault in LEDGER.faults if fault.layer.value == "store-missing")


def asks_for_state(bench: Bench) -> None:
    """The same as the case, as a suite test."""
    with bench.session() as session:
        session.observe("state")


@pytest.mark.parametrize(
    ("where", "how", "due"),
    [
        ("state", "crash", "no_verdict:crash"),
        ("state", "hang", "no_verdict:hang"),
        ("state", "garbage", "no_verdict:garbage"),
        ("state", "eof", "no_verdict:eof"),
        ("state", "invalid", "no_verdict:garbage"),
        ("state", "fault", "no_verdict:fault"),
        ("state", "unsupported", "unsupported"),
        ("state", "undeclared", "no_verdict:garbage"),
        ("open", "crash", "no_verdict:crash"),
        ("open", "fault", "no_verdict:fault"),
        ("open", "undeclared", "no_verdict:garbage"),
        ("open", "indeterminate", "indeterminate"),
        ("close", "eof", "no_verdict:eof"),
        ("close", "fault", "no_verdict:fault"),
        ("close", "undeclared", "no_verdict:garbage"),
        ("close", "indeterminate", "indeterminate"),
    ],
)
def test_a_failure_is_the_same_in_a_case_a_suite_and_a_fault_workload(where: str, how: str, due: str) -> None:
    with temp_folder() as folder:
        settings = RunSettings(
            (sys.executable, str(HERE / "misbehaving.py"), where, how),
            ("ledger",),
            seed="one",
            workdir=str(folder),
            slow=0.5,
        )
        with Engine(settings) as engine:
            results = {
                "case": engine.run_case(LEDGER, CASE),
                "suite": engine.run_suite_test(LEDGER, TEST, asks_for_state),
                "fault": engine.run_fault(LEDGER, FAULT),
            }
    assert {way: verdict_of(result.judgement) for way, result in results.items()} == dict.fromkeys(results, due)
    for result in results.values():
        judged = next(record for record in result.main if record.n == result.judgement.n)
        asked = judged.request or {}
        assert where in (asked.get("op"), asked.get("method"))


@pytest.mark.parametrize("how", ["crash", "fault"])
def test_the_gate_finds_the_same_failure_in_the_records_of_a_workload(how: str) -> None:
    with temp_folder() as folder:
        command = (sys.executable, str(HERE / "misbehaving.py"), "state", how)
        with Engine(RunSettings(command, ("ledger",), seed="one", workdir=str(folder), slow=0.5)) as engine:
            result = engine.run_fault(LEDGER, FAULT)
    again = judge_fault(LEDGER, FAULT, result.main, seed="one", environment={})
    assert verdict_of(again) == verdict_of(result.judgement) == f"no_verdict:{how}"
