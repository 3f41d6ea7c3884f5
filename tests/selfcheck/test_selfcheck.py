"""The kill matrix: a slice of it runs here, the whole of it in `tox -e mutants`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.conformance.run.baselines import Policy, load_baseline
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.selfcheck.kills import Extent, Planted, judge_kill, unmet_cases
from holdfast.conformance.selfcheck.tasks import Shown, Sites, Traced, Trial
from holdfast.specs import contract_names, load_contract, schema
from holdfast.specs.mutants import Caught, Mutant, load_mutants
from tests import warm


def mutant(must: dict[str, Caught]) -> Mutant:
    """A mutant with that declaration."""
    return Mutant("some-bug", "Some bug", must)


def selfcheck(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return warm.cold(warm.KIT, "selfcheck", *words, cwd=folder)


def test_one_mutant_of_each_contract_is_killed_as_declared(tmp_path: Path) -> None:
    chosen = [one_of(name) for name in contract_names()]
    words = [word for name in chosen for word in ("--mutant", name)]
    done = selfcheck(*words, "--format", "json", folder=tmp_path)
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("selfcheck"), data) is None
    assert [kill["mutant"] for kill in data["kills"]] == chosen
    assert data["good"], done.stderr
    assert done.returncode == 0


def test_what_a_clause_permits_is_accused_of_nothing(tmp_path: Path) -> None:
    """Of one contract, of another one after a change of any; `tox -e mutants` tries all of them."""
    permitting = [name for name in contract_names() if load_mutants(name).choices]
    name = permitting[sum(digest_number(each) for each in permitting) % len(permitting)]
    done = selfcheck("--mutant", chosen := one_of(name, sound=True), "--format", "json", folder=tmp_path)
    data = json.loads(done.stdout)
    assert [kill["mutant"] for kill in data["kills"]] == [chosen]
    assert data["good"], done.stderr


# What is about the ids themselves, about rows under them, or about an id that was never given.
OF_IDS = """
cf-5/meta-says-what-the-store-is cf-9/ids-increase-in-numbers-and-in-bytes ckp-2/an-unknown-checkpoint-is-no-empty-state
ckp-7/a-checkpoint-in-the-place-of-another ckp-7/a-changed-bit-of-a-checkpoint-is-noticed
ckp-7/a-damaged-checkpoint-is-refused cli-2/replays-print-one-state cli-5/an-unknown-checkpoint-prints-no-state
open-2/another-schema-version-is-refused suite/no-near-miss-of-the-id-of-a-checkpoint-is-its-id
""".split()


def test_a_store_whose_ids_of_checkpoints_leave_some_out_conforms(tmp_path: Path) -> None:
    cases = [word for name in OF_IDS for word in ("--case", f"m5-log/{name}")]
    adapter = ("-P", "-m", warm.REFERENCE, "adapter", "--mutant", "choice-checkpoint-ids-apart")
    words = ("verify", "--contract", "m5-log", *cases, "--slow", "4", "--", sys.executable, *adapter)
    done = warm.cold(warm.KIT, *words, cwd=tmp_path)
    assert f"{len(OF_IDS)} conforms" in done.stdout, done.stdout


def test_a_sound_variant_meets_the_whole_contract_where_every_bug_may_fail_too() -> None:
    contract, declared = load_contract("calyx-replay"), load_mutants("calyx-replay")
    variant, whole = declared.choices[0].variant, [case.id for case in plan_of(contract) if case.whole]
    own = Planted(contract, declared, [variant], Extent.CLAUSES, plan_of(contract)).task(variant).cases
    everything = Planted(contract, declared, [variant], Extent.CASES, plan_of(contract)).task(variant).cases
    assert any("/mig-8/" in case for case in own)
    assert set(own) < set(everything)
    assert whole
    assert set(whole) <= set(everything)


def test_a_sound_variant_that_a_case_accuses_is_reported() -> None:
    shown = [Shown("toy/one", ("TOY-01",), "conforms"), Shown("toy/two", ("TOY-02",), "state_leak", "a row too many")]
    kill = judge_kill(Mutant("some-choice", "it may", {}), shown, due=("toy/one", "toy/two"))
    assert not kill.as_declared
    assert "toy/two: state_leak" in kill.missed[0]


def one_of(contract: str, *, sound: bool = False) -> str:
    """A bug or a sound variant without a server, by the digest of the contract: another after each change of it."""
    declared = load_mutants(contract)
    planted = [choice.variant for choice in declared.choices] if sound else declared.mutants
    names = [each.name for each in planted if declared.store_of(each) in ("sqlite", "none")]
    return names[digest_number(contract) % len(names)]


def digest_number(contract: str) -> int:
    """The digest of a contract as a number."""
    return int(load_contract(contract).digest.removeprefix("sha256:"), 16)


def test_a_bug_meets_the_whole_contract_with_a_store_that_all_of_it_can_be_run_with() -> None:
    contract, declared = load_contract("mesh-delivery"), load_mutants("mesh-delivery")
    bug = next(each for each in declared.mutants if declared.store_of(each) == "none")
    stores = {
        extent: Planted(contract, declared, [bug], extent, plan_of(contract)).task(bug).store
        for extent in (Extent.CLAUSES, Extent.CASES)
    }
    assert stores == {Extent.CLAUSES: "none", Extent.CASES: "postgres"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mutant", "no-such-bug"), "no-such-bug"),
        # A planted bug among those of a program, and a place that has none.
        (("--automatic", "--mutant", "utf8-ignored"), "--only"),
        (("--automatic", "--contract", "jcs", "--only", "jcs/reader.py:1:constant:9"), "jcs/reader.py:1:constant:9"),
    ],
)
def test_a_mutant_that_is_not_there_is_a_usage_error(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = selfcheck(*words, folder=tmp_path)
    assert done.returncode == 64
    assert said in done.stderr


@pytest.mark.parametrize("run", [(), (Shown("a", ("C-1",), "conforms"),), (Shown("a", ("C-1",), "no_verdict"),)])
def test_a_mutant_that_is_not_caught_as_declared_is_reported(run: tuple[Shown, ...]) -> None:
    kill = judge_kill(mutant({"C-1": "fail_open"}), run)
    assert not kill.as_declared
    assert "C-1" in kill.missed[0]


def test_a_bug_that_is_found_graver_than_declared_is_killed() -> None:
    bug, run = mutant({"C-1": "wrong_reason"}), (Shown("a", ("C-1",), "fail_open"),)
    assert judge_kill(bug, run).as_declared
    assert not judge_kill(mutant({"C-1": "fail_open"}), (Shown("a", ("C-1",), "wrong_reason"),)).as_declared
    assert not judge_kill(bug, (Shown("a", ("C-1",), "over_refusal"),)).as_declared


def test_a_failure_that_is_not_declared_is_shown_and_is_no_fault_of_the_bug() -> None:
    run = (Shown("a", ("C-1",), "fail_open"), Shown("b", ("C-2",), "wrong_reason"))
    kill = judge_kill(mutant({"C-1": "fail_open"}), run)
    assert kill.as_declared
    assert kill.also_failing == ("C-2",)


def test_a_fault_that_has_to_strike_must_be_there_with_its_verdict() -> None:
    bug = Mutant("some-bug", "Some bug", {"C-1": "fail_open"}, faults={"a/faults/kill": "lost_durability"})
    script = Shown("a", ("C-1",), "fail_open")
    missing = judge_kill(bug, (script,))
    assert missing.missed == ("a/faults/kill: expected lost_durability, got no result",)
    survived = judge_kill(bug, (script, Shown("a/faults/kill", ("C-2",), "conforms")))
    assert survived.missed == ("a/faults/kill: expected lost_durability, got 1 x conforms",)
    struck = judge_kill(bug, (script, Shown("a/faults/kill", ("C-2",), "lost_durability")))
    assert struck.as_declared


def test_each_case_that_is_due_and_missing_is_reported() -> None:
    run = (Shown("a", ("C-1",), "fail_open"),)
    assert judge_kill(mutant({"C-1": "fail_open"}), run, due=("a",)).as_declared
    assert judge_kill(mutant({"C-1": "fail_open"}), run, due=("a", "b", "c")).missed == ("b: no result", "c: no result")


def test_the_baseline_adapters_have_been_measured_on_the_cases_as_they_are() -> None:
    contract = load_contract("rs4a-replay")
    baseline = load_baseline(contract)
    assert baseline is not None
    planned = {case.id for case in plan_of(contract)}
    for policy in Policy:
        assert set(baseline.verdicts[policy]) == planned
        assert not any(baseline.conforms(policy, case) for case in planned), "a baseline adapter must not conform"


def traced(case: str, *lines: int, store: str = "sqlite", conforms: bool = True) -> Traced:
    """A case that executed these lines of one file."""
    return Traced(Trial(store, case), conforms, 0.1, {"store.py": lines})


SITES = Sites("acme", {"store.py": 9}, {"some-bug": {"store.py": (3, 4)}, "another": {"command_line.py": (1,)}})


def test_a_bug_is_not_run_in_a_case_that_executes_nothing_of_what_it_replaces() -> None:
    trace = [traced("met", 4, 5), traced("not met", 5, 6), traced("busy", 5, conforms=False)]
    assert unmet_cases(SITES, trace, {"some-bug": "sqlite"}) == {"some-bug": {"not met"}}


def test_a_case_that_was_traced_with_another_store_is_not_left_out() -> None:
    assert unmet_cases(SITES, [traced("a", 5, store="postgres")], {"some-bug": "sqlite"}) == {"some-bug": set()}


def test_a_bug_in_what_is_not_traced_or_in_what_the_launcher_runs_meets_every_case() -> None:
    trace = [traced("", 3), traced("not met", 5)]
    assert unmet_cases(SITES, trace, {"some-bug": "sqlite", "another": "sqlite", "unknown": "sqlite"}) == {}
