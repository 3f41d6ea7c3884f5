"""The harness's own inspections are in the evidence as text. An edit of this text does not open the gate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cases.report import Report, ReportError
from holdfast.conformance.gate.cases import inconclusive_suite
from holdfast.conformance.gate.decision import GateDecision, ReasonCode
from holdfast.conformance.steps.files import LINK, LIST
from holdfast.conformance.verdict import Exit
from holdfast.specs.strictjson import canonical
from tests.gate.conftest import CALM, SEED, Bench, Json, Lines, forge
from tests.gate.test_suites import TOLD, TOY, records
from tests.harness.ledger import LEDGER, ONCE, ran


@pytest.fixture(scope="module", params=["", "leaks"])
def result(request: pytest.FixtureRequest) -> Any:
    """A run of the ledger's case with the gate's seed."""
    return next(iter(ran(ONCE, flaw=request.param, seed=SEED)))


def decided(result: Any, folder: Path, edit: Callable[[Lines], Lines | None]) -> GateDecision:
    """The gate's decision on the run, edited and its chain mended."""
    bench = Bench(LEDGER, folder)
    return bench.decide(forge(bench.one(result), edit))


def looks(lines: Lines, words: str) -> list[Json]:
    """The exchanges that report inspections."""
    found = [line for line in lines if line["type"] == "exchange" and words in line["action"]]
    assert found
    return found


def told(line: Json, change: Callable[[Json], object]) -> None:
    """Change the value that an exchange reports."""
    value = json.loads(line["event"]["detail"])
    change(value)
    line["event"]["detail"] = canonical(value).decode()


def is_honest(result: Any) -> bool:
    return bool(result.judgement.verdict.value == "conforms")


def test_the_run_as_it_was_is_judged_as_it_was(result: Any, tmp_path: Path) -> None:
    decision = decided(result, tmp_path, list.copy)
    assert decision.can_proceed == ("YES" if is_honest(result) else "NO")


@pytest.mark.parametrize("result", ["leaks"], indirect=True)
def test_a_leak_that_was_edited_away_does_not_follow_any_more(result: Any, tmp_path: Path) -> None:
    assert not is_honest(result)
    decision = decided(result, tmp_path, CALM)
    assert decision.can_proceed == "NO"
    assert ReasonCode.JUDGED_OTHERWISE in {reason.code for reason in decision.reasons}


LOG = [{"n": 1, "what": "again"}]


@pytest.mark.parametrize("result", [""], indirect=True)
@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: told(looks(lines, "inspect after")[0], lambda value: value["rows"].update(log=LOG)),
        lambda lines: told(looks(lines, "inspect store")[0], lambda value: value["rows"].update(entry=[])),
        lambda lines: told(looks(lines, "inspect before")[0], lambda value: value.update(error="hidden")),
        lambda lines: told(looks(lines, "inspect before")[0], lambda value: value.update(surprise=1)),
        lambda lines: told(looks(lines, "inspect before")[0], lambda value: value.pop("digest")),
        lambda lines: told(looks(lines, "inspect before")[0], lambda value: value["rows"].update(ghost=[])),
        lambda lines: looks(lines, "inspect before")[0]["event"].update(detail=""),
        lambda lines: looks(lines, "inspect before")[0]["event"].update(detail="{"),
        lambda lines: looks(lines, "inspect before")[0]["event"].update(detail="[]"),
        lambda lines: looks(lines, "inspect after")[0]["event"].update(kind="failed"),
        lambda lines: looks(lines, "inspect after")[0]["event"].update(
            detail=" " + looks(lines, "inspect after")[0]["event"]["detail"]
        ),
    ],
)
def test_an_edited_look_holds(result: Any, tmp_path: Path, edit: Callable[[Lines], None]) -> None:
    assert is_honest(result)
    decision = decided(result, tmp_path, edit)
    assert decision.can_proceed == "NO"
    assert decision.exit in {Exit.INCOMPLETE, Exit.FAIL_OPEN}
    assert {reason.code for reason in decision.reasons} == {ReasonCode.JUDGED_OTHERWISE}


SIZED = '"exists":true,"ignored":false,"kind":"file","mode":"0600"'
FILE = (
    '{"bytes":"aGk",' + SIZED + ',"sha256":"8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4","size":2}'
)


@pytest.mark.parametrize(
    ("verb", "detail", "doubt"),
    [
        ("file", FILE, None),
        ("file", FILE.replace('"aGk"', "null"), None),
        ("file", FILE.replace("aGk", "***"), None),
        ("file", FILE.replace("aGk", "aGo"), "its bytes are not those of"),
        ("file", FILE.replace("aGk", "aGl"), "not base64url"),
        ("file", FILE.replace("aGk", "a"), "Incorrect padding|base64"),
        ("file", FILE.replace('"size":2', '"size":3'), "its bytes are not those of"),
        ("file", FILE.replace("true", "false", 1), "a file that is not there has properties"),
        ("tree", '{"error":null,"exists":true,"files":[{"kind":"file","path":"a","size":1}]}', None),
        ("tree", '{"error":"x","exists":true,"files":[{"kind":"file","path":"a","size":1}]}', "was not listed"),
        ("tree", '{"error":null,"exists":false,"files":[{"kind":"file","path":"a","size":1}]}', "was not listed"),
        (
            "tree",
            '{"error":null,"exists":true,"files":[{"kind":"file","path":"b","size":1},'
            '{"kind":"file","path":"a","size":1}]}',
            "not sorted",
        ),
        ("link", '{"to":"a"}', None),
        ("link", '{"to":""}', "at to: "),
        ("probe", '{"error":null,"inserted":true}', None),
        ("probe", '{"error":null,"inserted":false}', "an error stands beside"),
        ("probe", '{"inserted":true,"error":null}', "not the RFC 8785 form"),
        ("probe", "wonderful", "not JSON"),
        ("probe", None, "ends a test"),
    ],
)
def test_a_look_must_agree_with_itself(verb: str, detail: str | None, doubt: str | None) -> None:
    made = records(TOLD)
    event = {"kind": "failed", "detail": "no disk"} if detail is None else {"kind": "done", "detail": detail}
    made.append(replace(made[0], n=len(made), action=f"{verb} x", request=None, answer=None, event=event))
    found = inconclusive_suite(TOY, made, {})
    assert (found is None) if doubt is None else re.search(doubt, str(found))


@pytest.mark.parametrize(
    ("report", "detail", "operand", "doubt"),
    [
        (LINK, '{"to":"a"}', {"path": "x", "to": "b"}, "leads elsewhere"),
        (
            LIST,
            '{"error":null,"exists":true,"files":[{"kind":"file","path":"b/c","size":1}]}',
            {"path": "a"},
            "below the folder",
        ),
    ],
)
def test_what_a_case_asked_for_is_what_was_looked_at(report: Report, detail: str, operand: Json, doubt: str) -> None:
    with pytest.raises(ReportError, match=doubt):
        report.read(detail, operand)
