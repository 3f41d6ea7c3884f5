"""Expected failures excuse exactly what they name, and nothing for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.run.xfail import Expectation, XfailError, apply, excuse_of, read_xfail
from holdfast.conformance.verdict import Exit, Verdict

TODAY = date(2026, 1, 15)
CASE = "toy/once/a-second-put-of-a-key-is-refused"
ENTRY = Expectation(CASE, Verdict.WRONG_REASON, "NONCE_CONSUMED", "shelf team", "issue 17", date(2026, 1, 15))


def result(case: str, verdict: Verdict, detail: str, received: str = "") -> CaseResult:
    return CaseResult(case, ("TOY-01",), Judgement(verdict, None, detail, "", received), (), (), 0.0)


FAILING = result(CASE, Verdict.WRONG_REASON, "refused with NONCE_CONSUMED")

TEXT = f"""
[[expected]]
id = "{CASE}"
verdict = "wrong_reason"
reason = "NONCE_CONSUMED"
owner = "shelf team"
issue = "issue 17"
expires = 2026-01-15
"""


# What is said of an entry that is not true.
EXPIRED, UNMATCHED, PASSING = "excused until 2026-01-15, today is", "no case of this run", "but it conforms"
OTHER_FAILURE, TOO_LONG = "it fails otherwise", "name a day within 90 days"


def problems_of(entry: Expectation, *results: CaseResult, today: date = TODAY) -> tuple[str, ...]:
    applied = apply([entry], results, today)
    assert applied.exit is (Exit.EXPECTATION if applied.problems else Exit.OK)
    assert not (applied.problems and applied.excused)
    return applied.problems


def test_a_failure_as_expected_is_excused_to_the_end_of_its_last_day() -> None:
    applied = apply([ENTRY], [FAILING], TODAY)
    assert applied.excused == {CASE: ENTRY}
    assert applied.exit is Exit.OK


@pytest.mark.parametrize(
    ("found", "today", "due"),
    [
        (FAILING, date(2026, 1, 16), EXPIRED),
        (result("toy/once/other", Verdict.CONFORMS, ""), TODAY, UNMATCHED),
        (result(CASE, Verdict.CONFORMS, ""), TODAY, PASSING),
        (result(CASE, Verdict.FAIL_OPEN, "NONCE_CONSUMED"), TODAY, OTHER_FAILURE),
        (result(CASE, Verdict.WRONG_REASON, "refused with REPLAY_NONCE_CONSUMED"), TODAY, OTHER_FAILURE),
    ],
)
def test_what_is_not_as_expected_is_a_problem(found: CaseResult, today: date, due: str) -> None:
    (problem,) = problems_of(ENTRY, found, today=today)
    assert problem.startswith(f"{CASE}: ")
    assert due in problem


def test_without_a_reason_any_reason_is_excused() -> None:
    entry = Expectation(CASE, Verdict.WRONG_REASON, None, "shelf team", "issue 17", TODAY)
    assert apply([entry], [FAILING], TODAY).excused == {CASE: entry}


def test_a_case_that_was_left_out_by_choice_is_no_problem_until_the_entry_expires() -> None:
    assert apply([ENTRY], [], TODAY, not_run={CASE}).problems == ()
    assert EXPIRED in apply([ENTRY], [], date(2027, 1, 1), not_run={CASE}).problems[0]


def test_an_excuse_may_last_90_days_and_no_longer() -> None:
    last = replace(ENTRY, expires=TODAY + timedelta(days=90))
    assert apply([last], [FAILING], TODAY).excused == {CASE: last}
    beyond = replace(ENTRY, expires=TODAY + timedelta(days=91))
    (problem,) = problems_of(beyond, FAILING)
    assert TOO_LONG in problem
    assert excuse_of([beyond], FAILING, TODAY) is None


def test_the_reason_may_stand_in_what_was_received() -> None:
    assert excuse_of([ENTRY], result(CASE, Verdict.WRONG_REASON, "", "refused, NONCE_CONSUMED"), TODAY) == "issue 17"


def test_an_expired_entry_excuses_nothing() -> None:
    assert excuse_of([ENTRY], FAILING, date(2026, 1, 16)) is None


def test_a_report_lists_the_gravest_excuse_first() -> None:
    opened = Expectation("toy/once/open", Verdict.FAIL_OPEN, None, "shelf team", "issue 18", TODAY)
    gone = Expectation("toy/once/gone", Verdict.FAIL_OPEN, None, "shelf team", "issue 19", TODAY)
    applied = apply([ENTRY, gone, opened], [FAILING, result("toy/once/open", Verdict.FAIL_OPEN, "")], TODAY)
    assert applied.listed == (opened, ENTRY)


def test_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "xfail.toml"
    path.write_text(TEXT)
    assert read_xfail(path) == (ENTRY,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[expected", "expected TOML"),
        ("", '"expected" is a required property'),
        (TEXT.replace("owner", "boss"), "'boss' was unexpected|\"owner\" is a required property"),
        (TEXT.replace("wrong_reason", "kit_fault"), '"kit_fault" is not one of'),
        (TEXT.replace("wrong_reason", "conforms"), '"conforms" is not one of'),
        (TEXT.replace("2026-01-15", "2026-01-15T00:00:00Z"), "does not match"),
        (TEXT.replace("2026-01-15", '"2026-02-31"'), "a day that exists"),
        (TEXT + TEXT, "several for"),
    ],
)
def test_a_malformed_file_is_a_clear_error(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "xfail.toml"
    path.write_text(text)
    with pytest.raises(XfailError, match=complaint) as caught:
        read_xfail(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(XfailError, match="No such file"):
        read_xfail(tmp_path / "xfail.toml")
