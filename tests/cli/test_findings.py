"""What `holdfast verify` says of a run: the gravest finding first, one group for one cause, bytes as text."""

from __future__ import annotations

import base64
import json
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.run.findings import Finding, absent, finding_of, grouped, in_words, texts_in
from holdfast.conformance.run.plan import PlannedCase, plan_of
from holdfast.conformance.verdict import Verdict, gravest_finding
from holdfast.reports.plain import bytes_as_text, difference
from holdfast.specs import contract_names, load_contract
from holdfast.specs.model import Remedy
from tests import warm
from tests.hostile.verify import LIMIT_S, environment

JCS = load_contract("jcs")
SMALL = Path(__file__).parents[1] / "jcs" / "small_canonicaliser.py"
REFERENCE = [sys.executable, "-P", "-m", "holdfast.reference_impl"]
TRIED = [
    (name, remedy, mutant)
    for name in contract_names()
    for remedy in load_contract(name).remedies.values()
    for mutant in remedy.tried
]


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def planned(number: int, *clauses: str) -> PlannedCase:
    return replace(plan_of(JCS)[number], clauses=clauses)


def finding(number: int, clause: str, verdict: Verdict, detail: str, operation: str = "canonicalise") -> Finding:
    return Finding(planned(number, clause), verdict, "", operation, detail, "", "")


def verified(folder: Path, *words: str) -> tuple[int, str]:
    """The exit status of a run, and what it prints, with one blank between two words."""
    known = {name: value for name, value in environment(folder).items() if name != "HOLDFAST_SPECS"}
    done = warm.run(["verify", *words], cwd=folder, env=known, limit=LIMIT_S * 2)
    return done.returncode, done.stdout


# Order


@given(st.lists(st.sampled_from(Verdict), min_size=1))
def test_a_finding_goes_before_what_was_not_proven(verdicts: list[Verdict]) -> None:
    found = gravest_finding(verdicts)
    findings = [each for each in verdicts if not each.is_incomplete and each is not Verdict.CONFORMS]
    if findings:
        assert found in findings
        assert list(Verdict).index(found) == min(map(list(Verdict).index, findings))
    else:
        assert found is (Verdict.CONFORMS if {*verdicts} == {Verdict.CONFORMS} else found)
        assert found.is_incomplete or {*verdicts} == {Verdict.CONFORMS}


def test_a_finding_is_reported_under_the_clause_whose_harm_it_is() -> None:
    contract = load_contract("idempotency-key")
    case = next(each for each in plan_of(contract) if {"IK-CRASH-1", "IK-LIVE-1"} <= {*each.clauses})
    stuck, twice = (Judgement(each, n=0) for each in (Verdict.OVER_REFUSAL, Verdict.FAIL_OPEN))
    assert finding_of(stuck, [], case, contract).clause == "IK-LIVE-1"
    assert finding_of(twice, [], case, contract).clause == "IK-CRASH-1"


# Groups


def test_findings_of_one_operation_and_one_difference_are_one_group_and_the_gravest_leads() -> None:
    found = grouped(
        [
            finding(0, "JCS-NUM-01", Verdict.WRONG_REASON, "value.canonical: 1.50 is due, 1.5 came"),
            finding(1, "JCS-NUM-02", Verdict.WRONG_REASON, "value.canonical: -12 is due, 1e30 came; and more"),
            finding(2, "JCS-NUM-02", Verdict.WRONG_REASON, "value.canonical: 'x' is due, 1 came", "verify"),
            finding(3, "JCS-STR-01", Verdict.WRONG_REASON, "value.canonical: 1 is due, 2 came"),
            finding(4, "JCS-STR-01", Verdict.NO_VERDICT, "the adapter ended with status 7"),
            finding(5, "JCS-LIT-01", Verdict.NO_VERDICT, "the adapter ended with status 9"),
            finding(6, "JCS-LIT-01", Verdict.FAIL_OPEN, "accepted where it must be refused"),
            finding(7, "JCS-LIT-01", Verdict.UNSUPPORTED, "the adapter does not support verify"),
            finding(8, "JCS-LIT-01", Verdict.CONFORMS, ""),
        ],
        [JCS],
    )
    numbers = {case.id: number for number, case in enumerate(plan_of(JCS))}
    assert [[numbers[each.planned.id] for each in group.members] for group in found] == [[6], [0, 1], [2], [3], [4, 5]]


def test_a_remedy_is_that_of_its_clauses_and_details_and_of_no_missing_verdict() -> None:
    texts = ("the same bytes in another order", "other bytes", "the same bytes in another order")
    verdicts = (Verdict.WRONG_REASON, Verdict.WRONG_REASON, Verdict.NO_VERDICT)
    found = grouped(
        [finding(at, f"JCS-LIT-0{at}", verdicts[at], f"{at}: {text}") for at, text in enumerate(texts)], [JCS]
    )
    assert [None if group.remedy is None else group.remedy.name for group in found] == ["utf-16-order", None, None]


@pytest.mark.parametrize(
    ("clause", "detail", "remedy"),
    [
        ("IK-RACE-2", "16 requests at once, round 1: the sink took 2 effects, 1 is due", "claim-before-the-effect"),
        ("IK-RACE-1", "a retry behind it: it was executed again", None),
        ("IK-FP-1", "the payload b'7' for b'8': it was executed", "compare-a-fingerprint"),
        ("IK-FP-1", "the first payload again: it was executed again", None),
        ("IK-RESP-4", "a handler that ends with {'throw': True}, and then is retried", "keep-the-key-on-a-throw"),
        ("IK-RESP-3", "a first request got the answer of another", None),
    ],
)
def test_a_remedy_is_of_no_other_finding_than_that_of_its_cause(clause: str, detail: str, remedy: str | None) -> None:
    known = load_contract("idempotency-key")
    case = replace(plan_of(known)[0], clauses=(clause,))
    for verdict in Verdict:
        found = grouped([Finding(case, verdict, "", "submit", detail, "", "")], [known])
        named = [group.remedy.name for group in found if group.remedy is not None]
        assert named == ([remedy] if remedy is not None and verdict is Verdict.FAIL_OPEN else [])


def test_what_is_declared_absent_is_counted_by_capability_with_the_adapters_reason() -> None:
    case = plan_of(JCS)[0]
    counted = absent(
        [
            (case, "the case needs what the adapter does not claim: verify (nobody asked for i-json-strict)"),
            (case, "the adapter does not support i-json-strict"),
            (case, "the adapter does not support verify"),
            (case, "the case needs 3 workers, the adapter allows 1"),
        ],
        {"jcs": {"verify": "nobody asked for i-json-strict", "i-json-strict": "later"}},
    )
    assert counted == {
        ("verify", "nobody asked for i-json-strict"): 2,
        ("i-json-strict", "later"): 1,
        ("", "the case needs 3 workers, the adapter allows 1"): 1,
    }


def test_a_narrowed_run_of_one_role_says_so_and_names_no_hooks_that_the_contract_lacks(tmp_path: Path) -> None:
    cases = ("--case", "jcs/utf8-02/utf-16-with-a-mark", "--case", "jcs/depth-02/verify-at-the-floor")
    status, text = verified(tmp_path, "--contract", "jcs", *cases, "--", sys.executable, str(SMALL), "utf-16")
    assert status == 12
    (clauses,) = [line for line in text.splitlines() if line.startswith("clauses:")]
    assert "narrowed" in clauses
    (left_out,) = [line for line in text.splitlines() if "are left out" in line]
    assert "provocations" not in left_out


# Bytes


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_two_byte_strings_part_where_they_differ_and_never_within_a_character(due: bytes, came: bytes) -> None:
    text = difference(due, came)
    if due == came:
        assert text == ""
        return
    at = int(re.findall(r"at byte ([0-9]+)", text)[0])
    assert due[:at] == came[:at]
    assert all(not part[at : at + 1] or at == 0 or part[at] & 0xC0 != 0x80 for part in (due, came))
    assert text.isascii()
    assert text.isprintable()
    assert ("another order" in text) is (sorted(due) == sorted(came))


@pytest.mark.parametrize("raw", ["\u2028", "\U0001f600", "\x7f", "\n", "\t"])
def test_a_character_is_not_shown_as_its_escape(raw: str) -> None:
    due, came = f'["{raw}"]'.encode(), json.dumps([raw]).encode().replace(b"\x7f", b"\\u007f")
    assert bytes_as_text(due, most=99) != bytes_as_text(came, most=99)
    shown = re.search("byte [0-9]+: (.*) is due, (.*) came", difference(due, came))
    assert shown is not None
    assert shown[1] != shown[2]


def test_a_byte_that_is_no_utf_8_is_shown_as_one_byte() -> None:
    assert bytes_as_text(b'["\xff\\xff"]', most=99) == '["<FF>\\xff"]'


def test_bytes_of_a_method_stand_as_text_and_nothing_else_is_changed() -> None:
    method = JCS.methods["canonicalise"]
    due, came = '{"\U0001f600":1,"\ufb33":2}'.encode(), '{"\ufb33":2,"\U0001f600":1}'.encode()
    text = in_words(f"value.canonical: expected {encoded(due)!r}, got {encoded(came)!r}", method)
    assert encoded(due)[:6] not in text
    assert '{"<U+1F600>":1,"<U+FB33>":2}' in text
    assert difference(due, came) in text
    call = json.dumps({"document": encoded(due), "profile": "core"}, separators=(",", ":"))
    assert bytes_as_text(due, most=99) in in_words(f"refused; the call was canonicalise {call}", method)
    assert '"profile":"core"' in in_words(call, method)
    # A value that was cut, anywhere.
    for length in range(4, 20):
        cut = in_words(f"accepted, new, value {{'canonical': '{encoded(came)[:length]}…", method)
        assert encoded(came)[:length] not in cut
        assert "canonical" in cut
    assert in_words("a word: 'eyJh'", method) == "a word: 'eyJh'"
    # A near miss of bytes is none.
    assert texts_in({"document": "ey.h"}, frozenset({"document"})) == []
    assert in_words("document: 'eyJh'", None) == "document: 'eyJh'"


# Whole runs


@pytest.mark.parametrize(("contract", "remedy", "mutant"), TRIED, ids=[mutant for _, _, mutant in TRIED])
def test_an_advice_is_printed_for_a_program_without_it_and_not_for_one_with_it(
    contract: str, remedy: Remedy, mutant: str, tmp_path: Path
) -> None:
    words = ["--contract", contract, "--case", remedy.tried[mutant]]
    launcher = shlex.join([*REFERENCE, "launch", "--mutant", mutant])
    _, broken = verified(tmp_path, *words, "--launcher", launcher, "--", *REFERENCE, "adapter", "--mutant", mutant)
    assert remedy.mends in broken
    assert remedy.cause in broken
    _, mended = verified(tmp_path, *words, "reference")
    assert "1 conforms" in mended
    assert remedy.mends not in mended


def test_wrong_results_lead_their_bytes_are_text_and_what_is_not_claimed_is_one_line(tmp_path: Path) -> None:
    adapter = ("--", sys.executable, str(SMALL))
    reports = ("--junitxml", "junit.xml", "--alluredir", "allure")
    status, text = verified(tmp_path, "--contract", "jcs", "--seed", "s", *reports, *adapter, "code-points")
    lines = text.splitlines()
    assert "wrong_reason" in lines[-1]
    assert status == 11
    assert lines[-1].endswith(f"exit {status}")
    first = next(number for number, line in enumerate(lines) if "wrong_reason" in line)
    assert any(JCS.remedies["utf-16-order"].cause in line for line in lines[:first])
    # What hello declares absent is one line of the report, and one of the counts.
    assert len([line for line in lines if line.startswith("not claimed:")]) == 1
    assert not [line for line in lines if line.startswith("unsupported")]
    assert 'they part at byte 2: <U+1F600>":2' in text
    case = next(one for one in JCS.cases if one.id.endswith("beyond-the-basic-plane"))
    found = {one.get("name"): one for one in ET.parse(tmp_path / "junit.xml").getroot().iter("testcase")}
    # What is of roles that the adapter does not claim is no error.
    assert [one for one in found.values() if one.find("skipped") is not None]
    assert not [one for one in found.values() if one.find("error") is not None and one.get("name") != "run"]
    failure = found[case.id.rpartition("/")[2]].find("failure")
    assert failure is not None
    assert "<U+1F600>" in failure.get("message", "")
    assert JCS.remedies["utf-16-order"].mends in (failure.text or "")
    results = [json.loads(path.read_text()) for path in (tmp_path / "allure").glob("*-result.json")]
    (result,) = [one for one in results if one["fullName"] == f"holdfast.jcs#{case.id}"]
    assert "<U+1F600>" in result["statusDetails"]["message"]
    assert any(label["name"] == "story" and "UTF-16" in label["value"] for label in result["labels"])
    # With the advice applied the finding is gone.
    _, mended = verified(tmp_path, "--contract", "jcs", "--case", case.id, *adapter, "utf-16")
    assert "1 conforms" in mended
