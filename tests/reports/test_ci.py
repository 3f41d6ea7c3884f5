"""What CI servers show of a run: SARIF that fits its schema, Markdown and commands in which no text makes a line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reports.ci import Decided, annotated, sarif, summary
from holdfast.reports.results import Outcome, Result
from holdfast.specs.loader import read_contract
from tests.reports.test_junit import CASE, results

# As SchemaStore has it (Apache-2.0).
SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)
TOY = read_contract(Path(__file__).parents[1] / "toycontract" / "toy")
CLAUSE = next(iter(TOY.clauses))
YES, NO = Decided("YES", (), ("--nonce: for whom",)), Decided("NO", ("narrowed: run again", "fail_open: 1 case"), ())
BAD = replace(CASE, clauses=(CLAUSE,), outcome=Outcome.FAILED, verdict="fail_open", message="took it twice")


def sarif_of(*cases: Result, decided: Decided = NO) -> Any:
    found = json.loads(sarif(results(*cases, status=10), [TOY], decided, file="adapter.py"))
    assert [str(error.message) for error in VALIDATOR.iter_errors(found)] == []
    return found["runs"][0]


def test_each_clause_is_a_rule_and_each_case_that_does_not_conform_a_result() -> None:
    run = sarif_of(BAD, replace(BAD, case="toy/once/passed", outcome=Outcome.PASSED))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*TOY.clauses]
    (found,) = run["results"]
    assert (found["ruleId"], rules[found["ruleIndex"]]["id"], found["level"]) == (CLAUSE, CLAUSE, "error")
    assert found["properties"]["case"] == BAD.case
    assert "took it twice" in found["message"]["text"]


@pytest.mark.parametrize(("decided", "clean"), [(YES, True), (NO, False)])
def test_a_run_that_proves_too_little_is_no_clean_one(decided: Decided, clean: bool) -> None:
    (invocation,) = sarif_of(decided=decided)["invocations"]
    assert invocation["executionSuccessful"] is clean
    assert [note["message"]["text"] for note in invocation["toolExecutionNotifications"]] == [*decided.reasons]
    assert f"CAN_PROCEED = {decided.can_proceed}" in summary(results(), decided)
    assert bool(annotated(results(), decided, file="")) is not clean


def test_an_error_is_a_result_and_an_excused_failure_is_suppressed() -> None:
    excused = replace(BAD, case="toy/once/excused", outcome=Outcome.SKIPPED, excused="https://issues.example/1")
    error, known = sarif_of(replace(BAD, outcome=Outcome.ERROR), excused)["results"]
    assert "suppressions" not in error
    assert known["suppressions"] == [{"kind": "external", "justification": "https://issues.example/1"}]


def test_findings_of_one_cause_are_one_row_and_one_annotation_and_what_was_not_asked_is_counted() -> None:
    cases = [replace(BAD, case=f"toy/once/{number}", cause="put: took it (2 cases)") for number in range(2)]
    absent = replace(CASE, outcome=Outcome.SKIPPED, verdict="unsupported", message="no clock")
    found = results(*cases, absent, absent)
    (row,) = [line for line in summary(found, YES).splitlines() if "put: took it" in line]
    assert "| 2 |" in row
    assert "- 2 cases: no clock" in summary(found, YES)
    assert len(annotated(found, YES, file="").splitlines()) == 1


TEXTS = st.text(st.sampled_from("a|`*[]<>&#~\\%:,\r\n\u2028\x1b_ "), max_size=12)


@given(TEXTS, TEXTS)
def test_no_text_of_an_adapter_adds_a_line_a_cell_or_a_command(text: str, other: str) -> None:
    case = replace(BAD, title=text, message=other, cause=text, verdict="fail_open")
    decided = replace(NO, reasons=(other,))
    lines = annotated(results(case), decided, file="a,b:c.py").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 2
    assert all(line.startswith("::error file=a%2Cb%3Ac.py,title=") for line in lines)
    assert {line.removeprefix("::").partition("::")[0].count(",") for line in lines} == {1}
    plain, shown = (summary(results(each), one) for each, one in ((BAD, NO), (case, decided)))
    assert len(shown.splitlines()) == len(plain.splitlines()) - 1
    assert [line.count("|") for line in shown.splitlines() if line.startswith("| fail_open")] == [6]
    assert not {"<", "`", "["} & set(shown)
    sarif_of(case, decided=decided)
