"""Cases, suites and fault workloads speak with an adapter in one way: its failure means the same in all three."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.gate.cases import judge_fault
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.run.plan import Form, PlannedCase
from holdfast.conformance.run.settings import RunSettings
from holdfast.specs.loader import read_contract
from holdfast.specs.model import CaseKind
from tests.harness.play import SEED, TOY, toy_case, verdict_of
from tests.harness.test_judge import HELD, live
from tests.hostile.verify import HERE as HOSTILE
from tests.hostile.verify import adapter, temp_folder

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
    # The gate finds it in the records of the workload, but for what only hello, a schema or the session can tell.
    again = judge_fault(LEDGER, FAULT, results["fault"].main, seed="one", environment={})
    assert verdict_of(again) == due or how in ("invalid", "undeclared", "indeterminate")
    for result in results.values():
        judged = next(record for record in result.main if record.n == result.judgement.n)
        asked = judged.request or {}
        assert where in (asked.get("op"), asked.get("method"))


# `unanswered` on a live worker: a call that is held is found waiting, one that went through is found out.

ENTRY = {"key": "key-1", "nonce": "nonce-1"}
ARMED: tuple[Mapping[str, Any], ...] = ({"provoke": "hold_at", "args": {"point": "before_commit", "fault": "hold"}},)
STARTED: tuple[Mapping[str, Any], ...] = ({"start": "put", "as": "first", "args": ENTRY},)
REACHED: tuple[Mapping[str, Any], ...] = ({"reached": "before_commit"},)
WATCHED: tuple[Mapping[str, Any], ...] = ({"unanswered": "first"},)
RELEASED: tuple[Mapping[str, Any], ...] = ({"release": "before_commit"},)


@pytest.mark.parametrize(
    ("steps", "due"),
    [
        ((*ARMED, *STARTED, *REACHED, *WATCHED, *RELEASED), "conforms"),
        ((*STARTED, *WATCHED), "fail_open"),
        ((*ARMED, *STARTED, *REACHED, *RELEASED, *WATCHED), "fail_open"),
    ],
    ids=["held", "never-held", "released"],
)
def test_a_call_is_watched_for_an_answer_that_comes_too_early(
    steps: tuple[Mapping[str, Any], ...], due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(HOSTILE.parent / "toycontract"))
    finish = {"finish": "first", "expect": {"outcome": "accepted", "effect": "new"}}
    case = replace(toy_case(HELD), kind=CaseKind.RACE, given=steps, when=(finish,), then=())
    (result,) = live(adapter("honest"), slow=1.0, cases=[case])
    assert verdict_of(result.judgement) == due
    assert judge_case(TOY, case, result.main, result.twin, seed=SEED) == result.judgement
