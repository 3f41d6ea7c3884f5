"""The kill matrix: a slice of it runs here, the whole of it in `tox -e mutants`."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from holdfast.conformance.cli.mutants import Mutant, planted
from holdfast.conformance.cli.selfcheck import judge_kill
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.selfcheck.baselines import Policy, load_baseline
from holdfast.conformance.verdict import Verdict
from holdfast.reports.evidence import Header, Run, VerdictLine
from holdfast.specs import load_contract, schema
from holdfast.specs.model import Basis, Proof

# One of each sort: a key with the attempt in it, a record that ends with its request, a state that leaks, a reason
# that is wrong, an audit that rolls back.
SLICE = 5


def verdict_line(case: str, clauses: tuple[str, ...], verdict: str) -> VerdictLine:
    """A line as a run of a mutant leaves it."""
    return VerdictLine(case, clauses, verdict, None, "", "", "", "", None, 0.1, None, None)


def run_of(*lines: VerdictLine) -> Run:
    """A run with these verdicts and nothing else."""
    return Run(None, (), (), (), lines, None, (), "sha256:" + "0" * 64)


def mutant(must: dict[str, Verdict], may: dict[str, str] | None = None) -> Mutant:
    """A mutant with that declaration."""
    return Mutant("some-bug", "rs4a-replay", "Some bug", must, may or {}, "sqlite")


def selfcheck(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.conformance.cli", "selfcheck", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


def test_a_slice_of_the_mutants_is_killed_as_declared(tmp_path: Path) -> None:
    names = [found.name for found in planted() if found.store in ("sqlite", "none")]
    # Spread over the list, another part of it every day, so that in time all of them come by here.
    start = datetime.now(UTC).timetuple().tm_yday
    chosen = [names[(start + index * len(names) // SLICE) % len(names)] for index in range(SLICE)]
    words = [word for name in chosen for word in ("--mutant", name)]
    done = selfcheck(*words, "--format", "json", folder=tmp_path)
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("selfcheck"), data) is None
    assert [kill["mutant"] for kill in data["kills"]] == sorted(set(chosen), key=names.index)
    assert data["good"], done.stderr
    assert done.returncode == 0


def test_an_unknown_mutant_is_a_usage_error(tmp_path: Path) -> None:
    done = selfcheck("--mutant", "no-such-bug", folder=tmp_path)
    assert done.returncode == 64
    assert "no-such-bug" in done.stderr


def test_a_mutant_that_survives_its_clause_is_reported() -> None:
    kill = judge_kill(mutant({"C-1": Verdict.FAIL_OPEN}), run_of(verdict_line("a", ("C-1",), "conforms")), whole=False)
    assert not kill.as_declared
    assert "C-1" in kill.missed[0]


def test_a_mutant_that_is_caught_with_another_verdict_is_reported() -> None:
    kill = judge_kill(
        mutant({"C-1": Verdict.FAIL_OPEN}), run_of(verdict_line("a", ("C-1",), "no_verdict")), whole=False
    )
    assert not kill.as_declared


def test_a_mutant_without_any_result_is_reported() -> None:
    assert not judge_kill(mutant({"C-1": Verdict.FAIL_OPEN}), run_of(), whole=False).as_declared


def test_a_failure_that_is_not_declared_is_reported() -> None:
    lines = (verdict_line("a", ("C-1",), "fail_open"), verdict_line("b", ("C-2",), "wrong_reason"))
    stray = judge_kill(mutant({"C-1": Verdict.FAIL_OPEN}), run_of(*lines), whole=True)
    assert not stray.as_declared
    assert "b" in stray.stray[0]
    declared = judge_kill(mutant({"C-1": Verdict.FAIL_OPEN}, {"C-2": "follows"}), run_of(*lines), whole=True)
    assert declared.as_declared


def test_a_fault_that_has_to_strike_must_be_there_with_its_verdict_and_is_no_stray() -> None:
    bug = replace(mutant({"C-1": Verdict.FAIL_OPEN}), faults={"a/faults/kill": Verdict.LOST_DURABILITY})
    script = verdict_line("a", ("C-1",), "fail_open")
    missing = judge_kill(bug, run_of(script), whole=False)
    assert missing.missed == ("a/faults/kill: expected lost_durability, got no result",)
    survived = judge_kill(bug, run_of(script, verdict_line("a/faults/kill", ("C-2",), "conforms")), whole=False)
    assert survived.missed == ("a/faults/kill: expected lost_durability, got 1 x conforms",)
    struck = judge_kill(bug, run_of(script, verdict_line("a/faults/kill", ("C-2",), "lost_durability")), whole=False)
    assert struck.as_declared


def test_where_every_fault_is_to_strike_each_that_is_missing_is_reported() -> None:
    contract = load_contract("rs4a-replay")
    plan = plan_of(contract)
    faults = {fault.id for fault in contract.faults}
    lines = [verdict_line(case.id, case.clauses, "conforms") for case in plan if case.id not in faults]
    # Of a header nothing but the plan is asked for here.
    header = cast(Header, SimpleNamespace(plan=tuple(case.id for case in plan)))
    run = replace(run_of(*lines), header=header)
    assert judge_kill(mutant({}), run, whole=True).stray == ()
    stray = judge_kill(mutant({}), run, whole=True, everything=True).stray
    assert set(stray) == {f"{fault}: no result" for fault in faults}


@pytest.mark.parametrize(
    "clause", [c.id for c in load_contract("rs4a-replay").clauses.values() if c.proof is Proof.RUN]
)
def test_every_explicit_clause_has_a_mutant_or_says_why_none_can_break_it(clause: str) -> None:
    found = load_contract("rs4a-replay").clauses[clause]
    if found.basis is Basis.EXPLICIT:
        assert any(clause in bug.must_fail for bug in planted()) or found.unbreakable


def test_the_mindless_adapters_have_been_measured_on_the_cases_as_they_are() -> None:
    contract = load_contract("rs4a-replay")
    baseline = load_baseline(contract)
    assert baseline is not None
    planned = {case.id for case in plan_of(contract)}
    for policy in Policy:
        assert set(baseline.verdicts[policy]) == planned
        assert not any(baseline.conforms(policy, case) for case in planned), "mindlessness must not conform"
