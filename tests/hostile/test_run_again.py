"""A case that a limit of holdfast ended is run once more, alone, and the evidence has both."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.conformance.gate.decision import decide, parse_requirement
from holdfast.reports.evidence import Attempt, EvidenceWriter, read_evidence
from tests.hostile.verify import Outcome, verify
from tests.hostile.verify import adapter as named

SHELF = "toy/once/a-put-key-stands-on-the-shelf"


def outcome(how: str, folder: Path, *options: str) -> Outcome:
    """A run of one case, or as the options say, with short deadlines, at an adapter that fails in that way."""
    adapter = named("hangs_once", str(folder / "mark"), how)
    return verify(adapter, options=["--slow", "0.25", *(options or ("--case", SHELF))], cwd=folder)


def attempts(found: Outcome) -> list[tuple[str, str]]:
    """The first attempts of a run: case and failure mode."""
    return [(line["case"], line["silence"]) for line in found.lines if line["type"] == "attempt"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """The evidence of a run in which a case hung the first time, and the run."""
    folder = tmp_path_factory.mktemp("once")
    return folder / "run.jsonl", outcome("hang once", folder)


def test_a_case_that_hung_and_conforms_alone_conforms_and_the_run_says_that_it_ran_twice(
    once: tuple[Path, Outcome],
) -> None:
    evidence, found = once
    assert found.verdicts == {SHELF: "conforms"}
    ((case, silence),) = attempts(found)
    assert (case, silence in {"hang", "busy"}) == (SHELF, True)
    assert f"run again, alone, because a limit of holdfast had ended them: {SHELF}" in " ".join(found.stdout.split())
    run = read_evidence(evidence)
    assert not run.defects
    decision = decide(run, [parse_requirement("jcs")], now=datetime.now(UTC))
    assert decision.can_proceed == "NO"
    assert any(SHELF in note for note in decision.notes)


def test_an_adapter_that_hangs_alone_too_hangs(tmp_path: Path) -> None:
    found = outcome("hang always", tmp_path)
    assert found.verdicts[SHELF] in {"no_verdict:hang", "no_verdict:busy"}
    assert found.exit == 12
    assert [case for case, _ in attempts(found)] == [SHELF]


def test_what_was_not_started_is_run_where_the_limits_were_the_cause(tmp_path: Path) -> None:
    # One case has two puts at once, which may both be among the four; three workers in a row die either way.
    found = outcome("hang four times", tmp_path, "--quick", "--jobs", "1")
    assert len(attempts(found)) >= 2
    assert not [line for line in found.lines if line["type"] == "verdict" and "not started" in line["detail"]]


def test_a_crash_is_no_limit_and_stays(tmp_path: Path) -> None:
    found = outcome("crash once", tmp_path)
    assert found.verdicts == {SHELF: "no_verdict:crash"}
    assert attempts(found) == []


@pytest.mark.parametrize("place", ["twice", "behind its verdict", "without a verdict"])
def test_a_first_attempt_stands_once_and_before_the_verdict(
    place: str, once: tuple[Path, Outcome], tmp_path: Path
) -> None:
    whole = read_evidence(once[0])
    assert whole.header is not None
    assert whole.artefacts is not None
    (first,), (verdict,) = whole.attempts, whole.verdicts
    lines = {
        "twice": (first, first, verdict),
        "behind its verdict": (verdict, first),
        "without a verdict": (first,),
    }[place]
    with EvidenceWriter(tmp_path / "other.jsonl") as writer:
        writer.header(whole.header)
        for line in lines:
            writer.write(line)
        writer.write(whole.artefacts)
        writer.finish(verdict="conforms", exit_status=0)
    assert isinstance(first, Attempt)
    assert read_evidence(tmp_path / "other.jsonl").defects
