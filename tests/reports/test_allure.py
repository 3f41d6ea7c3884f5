"""Allure results of a run: failed is failed, broken is only what has no verdict, and labels say contract and clause."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand

from holdfast.conformance.cli.verify.in_allure import FRAMEWORK, write_allure
from holdfast.conformance.cli.verify.options import Options
from holdfast.reports.evidence import Run
from holdfast.reports.results import Outcome, Result, Results
from tests.reports.test_junit import BEGUN
from tests.reports.test_junit import CASE as CONFORMS

CASE = replace(
    CONFORMS, clauses=("TOY-01", "TOY-02"), outcome=Outcome.FAILED, verdict="fail_open", message="accepted",
    text="clause, harm, detail",
)  # fmt: skip


def written(folder: Path, *cases: Result) -> dict[str, dict[str, Any]]:
    run = Run(None, (), (), (), (), None, (), "")
    options = Options(context=typer.Context(TyperCommand("verify")), alluredir=folder)
    write_allure(Results(cases, 10, "problem", BEGUN), run, (), options)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    return {result["fullName"].rpartition("#")[2]: result for result in found}


def labels(result: dict[str, Any], name: str) -> list[str]:
    return [label["value"] for label in result["labels"] if label["name"] == name]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.PASSED, "passed"),
        (Outcome.FAILED, "failed"),
        (Outcome.ERROR, "broken"),
        (Outcome.SKIPPED, "skipped"),
    ],
)
def test_each_outcome_has_its_status(tmp_path: Path, outcome: Outcome, status: str) -> None:
    found = written(tmp_path, replace(CASE, outcome=outcome))
    assert found[CASE.case]["status"] == status


def test_contract_clause_and_severity_are_labels_and_suites(tmp_path: Path) -> None:
    found = written(tmp_path, CASE)[CASE.case]
    assert labels(found, "parentSuite") == labels(found, "contract") == ["toy"]
    assert labels(found, "suite") == ["TOY-01"]
    assert labels(found, "clause") == ["TOY-01", "TOY-02"]
    assert labels(found, "severity") == ["critical"]
    assert labels(found, "framework") == [FRAMEWORK]


def test_what_the_environment_says_to_allure_leaves_no_case_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": "1.0", "tests": [{"selector": "none"}]}')
    monkeypatch.setenv("ALLURE_TESTPLAN_PATH", str(plan))
    assert set(written(tmp_path, CASE)) == {CASE.case, "holdfast/run"}


def test_a_report_that_cannot_be_written_is_an_error_and_no_result(tmp_path: Path) -> None:
    (tmp_path / "report").touch()
    with pytest.raises(OSError, match="report"):
        written(tmp_path / "report", CASE)


def test_the_history_of_a_case_goes_on_from_run_to_run(tmp_path: Path) -> None:
    first = written(tmp_path / "one", CASE)[CASE.case]
    second = written(tmp_path / "two", replace(CASE, outcome=Outcome.PASSED))[CASE.case]
    assert first["historyId"] == second["historyId"]
    assert first["uuid"] != second["uuid"]
