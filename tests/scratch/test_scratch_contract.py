"""A new contract with a store, faults, a suite and mutants is its own folders and nothing else.

`tree` has the contract shelf-once as it would stand in the repository. Here it is added to a copy of the kit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = Path(__file__).with_name("tree")
CONTRACT = "shelf-once"
PACKAGES = ("conformance", "reference_impl", "reports", "servers", "specs", "vectors")
OWN = (
    "specs/shelf-once/",
    "reference_impl/shelf_once/",
    "vectors/shelf_once/",
    "conformance/suites/shelf_once/",
    "tests/shelf_once/",
    "docs/contracts/shelf-once.md",
)
MOST_OUTSIDE = 5
ADDED = [path for path in TREE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


@dataclass(frozen=True)
class Kit:
    """A copy of the kit with the contract, and an interpreter that imports it."""

    root: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command of the copy."""
        python = [str(self.root / ".venv" / "bin" / "python"), "-P", "-m"]
        return subprocess.run([*python, *words], cwd=self.root / "out", capture_output=True, text=True, check=False)

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command of its command line."""
        return self.run("holdfast", *words)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The kit with the scratch contract."""
    root = tmp_path_factory.mktemp("kit")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package)
    shutil.copytree(ROOT / "holdfast", root / "holdfast", symlinks=True)
    shutil.copytree(TREE, root, dirs_exist_ok=True)
    (root / "out").mkdir()
    venv.create(root / ".venv", with_pip=False, symlinks=True)
    (packages,) = (root / ".venv").glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "kit.pth").write_text("\n".join([str(root), *others]) + "\n", encoding="utf-8")
    return Kit(root)


def test_the_contract_touches_at_most_five_files_outside_its_own_folders() -> None:
    names = [path.relative_to(TREE).as_posix() for path in ADDED]
    assert all(any(name.startswith(own) for name in names) for own in OWN)
    assert len([name for name in names if not name.startswith(OWN)]) <= MOST_OUTSIDE


def test_the_contract_is_linted(kit: Kit) -> None:
    done = kit.holdfast("lint", "specs", "--contract", CONTRACT)
    assert done.returncode == 0, done.stdout


def test_the_reference_keeps_the_contract_with_its_suite_and_its_faults(kit: Kit) -> None:
    done = kit.holdfast("verify", "--contract", CONTRACT, "--evidence", "run.jsonl", "--format", "json", "reference")
    assert done.returncode == 0, done.stdout + done.stderr
    counted = kit.holdfast("explain", CONTRACT, "--matrix", "--evidence", "run.jsonl", "--format", "json")
    matrix = json.loads(counted.stdout)["matrix"]
    assert all(one["filled"] for one in matrix if one["by"])


def test_explain_names_cases_suite_tests_faults_and_mutants(kit: Kit) -> None:
    done = kit.holdfast("explain", "SHELF-1", "--format", "json")
    data = json.loads(done.stdout)
    kinds = {case["case"].split("/")[1] for case in data["cases"]}
    assert kinds == {"once", "suite", "faults"}
    assert [mutant["mutant"] for mutant in data["mutants"]] == ["shelf-duplicate-accepted"]


def test_what_a_mutant_also_breaks_is_measured_against_the_whole_contract(kit: Kit) -> None:
    done = kit.holdfast("selfcheck", "--full", "--mutant", "shelf-duplicate-accepted", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    (kill,) = json.loads(done.stdout)["kills"]
    assert kill["also_failing"] == ["SHELF-3"]


@pytest.mark.sweep
def test_the_cases_have_teeth(kit: Kit) -> None:
    done = kit.holdfast("selfcheck", "--contract", CONTRACT, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)["kills"]) == 3


def test_its_own_tests_pass(kit: Kit) -> None:
    done = kit.run("pytest", "-q", "-p", "no:cacheprovider", str(kit.root / "tests" / "shelf_once"))
    assert done.returncode == 0, done.stdout + done.stderr
