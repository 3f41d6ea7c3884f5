"""Progress of a run on a plain stream: which contract, how many of its cases, how long still."""

from __future__ import annotations

import time

import pytest

from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.cli.verify import verification
from holdfast.conformance.cli.verify.verification import RunProgress
from holdfast.conformance.run.plan import Form, PlannedCase
from holdfast.conformance.verdict import Verdict

PLAN = [
    *(PlannedCase(f"one/{n}", "one", ("ONE-1",), f"case {n}", Form.SCRIPT, frozenset()) for n in range(6)),
    PlannedCase("two/fault", "two", ("TWO-1",), "a fault", Form.FAULT, frozenset()),
]


def ran(case: str, verdict: Verdict = Verdict.CONFORMS) -> CaseResult:
    """A result of that case."""
    return CaseResult(case, (), Judgement(verdict), (), (), 0.0)


def test_a_line_names_the_contract_and_counts_its_cases_and_all() -> None:
    shown = RunProgress(PLAN, quiet=True)
    shown.begin({case.id for case in PLAN})
    assert shown.text() == "one: 0 of 6 cases, 0 of 7 in all contracts"
    shown.result(ran("one/0"))
    shown.result(ran("one/1", Verdict.OVER_REFUSAL))
    assert shown.text().startswith("one: 2 of 6 cases, 2 of 7 in all contracts, 1 not conforming")
    shown.result(ran("two/fault"))
    assert shown.text().startswith("two: 1 of 1 cases, 3 of 7 in all contracts")


def test_what_is_of_a_role_that_is_not_claimed_is_neither_named_nor_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with RunProgress(PLAN, quiet=False, not_asked={"one/0", "one/1"}) as shown:
        shown.begin({case.id for case in PLAN})
        shown.result(ran("one/0", Verdict.UNSUPPORTED))
        assert "not conforming" not in shown.text()
        assert capsys.readouterr().err == ""
        # A finding is one in any role, and a claim is asked.
        shown.result(ran("one/1", Verdict.FAIL_OPEN))
        shown.result(ran("one/2", Verdict.UNSUPPORTED))
        assert "1 not conforming, 1 unsupported" in shown.text()
        printed = capsys.readouterr().err
    assert "one/1" in printed
    assert "one/2" in printed


def test_lines_come_while_one_case_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification, "PLAIN_EVERY_S", 0.01)
    printed = ""
    with RunProgress(PLAN, quiet=False) as shown:
        shown.begin({case.id for case in PLAN})
        # No result comes.
        while printed.count("one: 0 of 6 cases") < 2:
            time.sleep(0.01)
            printed += capsys.readouterr().err
