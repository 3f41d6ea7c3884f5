"""JUnit XML of a run: the schema that CI systems use holds, and nothing that failed is shown as green."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reports.junit import junit_xml
from holdfast.reports.results import RUN, Outcome, Result, Results

# As Jenkins' xUnit plugin has it (MIT, the notice stands in the file); GitLab and GitHub's actions read the same form.
SCHEMA = xmlschema.XMLSchema10(str(Path(__file__).resolve().parent / "junit-10.xsd"))
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
CASE = Result(
    case="toy/once/a-put",
    contract="toy",
    clauses=("TOY-01",),
    title="a put",
    outcome=Outcome.PASSED,
    verdict="conforms",
    severity="critical",
)


def results(*cases: Result, status: int = 0, problem: str = "") -> Results:
    return Results(cases, status, problem, BEGUN, contracts={"toy": {"digest": "sha256:0"}})


def parsed(found: Results) -> ET.Element:
    document = junit_xml(found)
    SCHEMA.validate(document.decode())
    return ET.fromstring(document)


def case_of(root: ET.Element, name: str) -> ET.Element:
    (found,) = (case for case in root.iter("testcase") if case.get("name") == name)
    return found


@pytest.mark.parametrize(
    ("outcome", "child"),
    [
        (Outcome.PASSED, None),
        (Outcome.FAILED, "failure"),
        (Outcome.ERROR, "error"),
        (Outcome.SKIPPED, "skipped"),
    ],
)
def test_each_outcome_has_its_element_and_is_counted_in_its_suite(outcome: Outcome, child: str | None) -> None:
    root = parsed(results(replace(CASE, outcome=outcome, verdict="v", message="m"), status=10, problem="p"))
    case = case_of(root, "a-put")
    assert [each.tag for each in case if each.tag in {"failure", "error", "skipped"}] == ([child] if child else [])
    assert case.get("classname") == "toy.once"
    (suite,) = (each for each in root if each.get("name") == "toy")
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert {name: suite.get(name) for name in counted} == {
        name: "1" if element == child else "0" for name, element in counted.items()
    }


def test_each_contract_is_a_suite_with_its_digest_as_a_property() -> None:
    found = replace(results(CASE), contracts={"toy": {"digest": "sha256:1"}, "other": {"digest": "sha256:2"}})
    root = parsed(replace(found, cases=(CASE, replace(CASE, case="other/x/y", contract="other"))))
    suites = {str(each.get("name")): each for each in root}
    assert list(suites) == [RUN, "toy", "other"]
    for name, digest in (("toy", "sha256:1"), ("other", "sha256:2")):
        assert [(each.get("name"), each.get("value")) for each in suites[name].iter("property")] == [("digest", digest)]
        assert len(list(suites[name].iter("testcase"))) == 1


def test_a_run_that_did_not_exit_0_is_never_green_even_if_no_case_failed() -> None:
    root = parsed(results(status=13, problem="the adapter did not start"))
    error = case_of(root, "run").find("error")
    assert error is not None
    assert error.get("message") == "the adapter did not start"
    assert root.get("errors") == "1"
    assert parsed(results(CASE)).get("errors") == "0"


@given(st.text(st.characters(codec=None, categories=None)), st.text(st.characters(codec=None, categories=None)))
def test_whatever_an_adapter_says_the_document_stays_valid_and_keeps_its_cases(message: str, text: str) -> None:
    bad = replace(CASE, outcome=Outcome.FAILED, verdict="fail_open", message=message, text=text, transcript=text)
    found = replace(results(bad, status=10), properties={"implementation": message})
    root = parsed(found)
    assert [case.get("name") for case in root.iter("testcase")] == ["run", "a-put"]
    assert len(list(root.iter("failure"))) == 1
