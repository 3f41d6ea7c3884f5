"""A guard that is no HTTP service: an adapter with `submit` and `seen`, and a profile that says only what differs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.reports.evidence import read_evidence
from holdfast.specs import load_contract
from tests import warm
from tests.pace import busy

ADAPTER = Path(__file__).with_name("function_guard.py")
_SUITE = "idempotency-key/suite/"
_PAYLOAD = f"{_SUITE}a-key-with-another-payload-is-refused-and-the-first-result-stays"
_UNKNOWN = f"{_SUITE}an-outcome-that-nobody-knows-is-not-executed-again"
_RETRY = f"{_SUITE}the-first-request-is-executed-and-each-retry-gets-its-answer"
# What a guard of a function conforms to.
KEPT = (_PAYLOAD, _UNKNOWN, _RETRY)
_DEATH = f"{_SUITE}a-success-survives-the-death-of-the-instance"


def verified(folder: Path, bug: str, *cases: str) -> tuple[dict[str, str], str]:
    words = ["verify", "--contract", "idempotency-key", "--verbose", *(w for case in cases for w in ("--case", case))]
    done = warm.cold(warm.KIT, *words, "--", sys.executable, str(ADAPTER), bug, timeout=busy(120), cwd=folder)
    evidence = read_evidence(folder / "holdfast-out" / "run.jsonl.zst")
    return {each.case: each.verdict for each in evidence.verdicts}, done.stdout


def test_a_sound_guard_of_a_function_conforms_where_it_can_be_asked(tmp_path: Path) -> None:
    found, said = verified(tmp_path, "", *KEPT, _DEATH)
    assert found == {**dict.fromkeys(KEPT, "conforms"), _DEATH: "unsupported"}
    assert "a function has no processes" in said
    assert "mends" not in said


# Each bug, the case that finds it, and the advice that mends it.
BUGS = [("payload", _PAYLOAD, "compare-a-fingerprint"), ("failed", _UNKNOWN, "keep-the-key-on-a-throw")]


@pytest.mark.parametrize(("bug", "case", "remedy"), BUGS)
def test_a_broken_guard_of_a_function_fails_open_and_reads_what_mends_it(
    tmp_path: Path, bug: str, case: str, remedy: str
) -> None:
    found, said = verified(tmp_path, bug, case)
    assert found == {case: "fail_open"}
    # The sound guard is this program with the advice applied.
    assert load_contract("idempotency-key").remedies[remedy].mends in " ".join(said.split())
