"""A contract of another distribution: its package is all of it, and an installation is all that holdfast needs.

`shelf` is the project of shelf-once, with a store, faults, a suite, derivations and mutants. `counter` is what
`holdfast new-contract` writes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.packaging.test_docs import followed

ROOT = Path(__file__).resolve().parents[2]
SHELF = Path(__file__).with_name("shelf")
CONTRACT = "shelf-once"
COUNTER = "counter"
# What `verify reference --contract NAME` has to leave alone.
OTHER = ("--contract", "jcs", "--clause", "JCS-NUM-01")
RUN = "run.jsonl"


@dataclass(frozen=True)
class Kit:
    """An interpreter that imports the kit, and in which contracts are installed. Commands run in a folder beside it."""

    root: Path

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        (found,) = (self.root / ".venv").glob("lib/python*/site-packages")
        return found

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command of it."""
        python = [str(self.root / ".venv" / "bin" / "python"), "-P", "-m"]
        return subprocess.run([*python, *words], cwd=self.root / "out", capture_output=True, text=True, check=False)

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command of its command line."""
        return self.run("holdfast", *words)

    def install(self, project: Path) -> None:
        """As a stranger does, without the network. What a build leaves is not left in the project."""
        copy = self.root / "built" / project.name
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns("__pycache__"))
        options = ["-q", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(self.packages), str(copy)]
        subprocess.run(command, check=True, capture_output=True)

    def claim(self, distribution: str, contract: str, package: str, files: Mapping[str, str] | None = None) -> None:
        """A distribution that brings a contract, with these files of its package."""
        folder = self.packages / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        text = f"[holdfast.contracts]\n{contract} = {package}\n"
        (folder / "entry_points.txt").write_text(text, encoding="utf-8")
        (folder / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.0\n", encoding="utf-8")
        for name, content in (files or {}).items():
            (self.packages / package / name).parent.mkdir(exist_ok=True)
            (self.packages / package / name).write_text(content, encoding="utf-8")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The kit with both contracts."""
    kit = Kit(tmp_path_factory.mktemp("kit"))
    (kit.root / "out").mkdir()
    venv.create(kit.root / ".venv", with_pip=False, symlinks=True)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (kit.packages / "kit.pth").write_text("\n".join([str(ROOT), *others]) + "\n", encoding="utf-8")
    made = kit.holdfast("new-contract", COUNTER, str(kit.root / COUNTER))
    assert made.returncode == 0, made.stderr
    kit.install(kit.root / COUNTER)
    kit.install(SHELF)
    return kit


@pytest.fixture
def own(kit: Kit, tmp_path: Path) -> Kit:
    """A copy of it, to be changed."""
    shutil.copytree(kit.root, tmp_path / "kit", symlinks=True)
    return replace(kit, root=tmp_path / "kit")


def test_the_contract_is_nothing_outside_its_package(kit: Kit) -> None:
    (record,) = kit.packages.glob("shelf_once-*.dist-info/RECORD")
    names = {line.partition("/")[0] for line in record.read_text(encoding="utf-8").splitlines()}
    assert names == {"shelf_once", record.parent.name}
    at_home = {path.name for path in SHELF.iterdir()} - {"__pycache__"}
    assert at_home == {"README.md", "pyproject.toml", "src", "tests"}


def test_a_new_contract_is_ten_files_that_pass_as_they_are(kit: Kit) -> None:
    files = [path for path in (kit.root / COUNTER).rglob("*") if path.is_file()]
    assert len(files) == 10
    before = {path: path.read_bytes() for path in (kit.packages / "counter_contract").glob("*.json")}
    for command in (("lint", "specs", "--update"), ("selfcheck", "--baselines"), ("selfcheck",)):
        done = kit.holdfast(*command, "--contract", COUNTER)
        assert done.returncode == 0, done.stdout + done.stderr
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize("contract", [CONTRACT, COUNTER])
def test_the_contract_is_linted(contract: str, kit: Kit) -> None:
    done = kit.holdfast("lint", "specs", "--contract", contract)
    assert done.returncode == 0, done.stdout


def test_the_reference_keeps_the_contract_with_its_suite_and_its_faults(kit: Kit) -> None:
    done = kit.holdfast("verify", "--contract", CONTRACT, "--evidence", RUN, "--format", "json", "reference")
    assert done.returncode == 0, done.stdout + done.stderr
    counted = kit.holdfast("explain", CONTRACT, "--matrix", "--evidence", RUN, "--format", "json")
    matrix = json.loads(counted.stdout)["matrix"]
    assert all(one["filled"] for one in matrix if one["by"])
    header = json.loads((kit.root / "out" / RUN).read_text(encoding="utf-8").splitlines()[0])
    assert [pin["distribution"] for pin in header["contracts"]] == ["shelf-once 0.3.0"]


def test_explain_names_cases_suite_tests_faults_and_mutants(kit: Kit) -> None:
    done = kit.holdfast("explain", "SHELF-1", "--format", "json")
    data = json.loads(done.stdout)
    kinds = {case["case"].split("/")[1] for case in data["cases"]}
    assert kinds == {"once", "suite", "faults"}
    assert [mutant["mutant"] for mutant in data["mutants"]] == ["shelf-duplicate-accepted"]


def test_what_a_mutant_also_breaks_is_measured_against_the_whole_contract(kit: Kit) -> None:
    words = ("--full", "--contract", CONTRACT, "--mutant", "shelf-duplicate-accepted", "--format", "json")
    done = kit.holdfast("selfcheck", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    (kill,) = json.loads(done.stdout)["kills"]
    assert kill["also_failing"] == ["SHELF-3"]


@pytest.mark.sweep
def test_the_cases_have_teeth(kit: Kit) -> None:
    done = kit.holdfast("selfcheck", "--contract", CONTRACT, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)["kills"]) == 3


def test_its_own_tests_pass(kit: Kit) -> None:
    words = ("-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--import-mode=importlib")
    done = kit.run("pytest", *words, str(SHELF / "tests"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_bugs_that_a_program_plants_are_killed_where_they_stand(kit: Kit) -> None:
    words = ("--automatic", "--contract", COUNTER, "--only", "reference.py:27:statement:1", "--format", "json")
    done = kit.holdfast("selfcheck", *words)
    (one,) = json.loads(done.stdout)["contracts"][0]["mutants"]
    assert (one["end"], one["function"]) == ("killed", "Counter.add"), done.stdout


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("cases/counting.yaml", "amount: 3", "amount: 4"), ("__init__.py", "contract", "Contract")],
)
def test_evidence_of_another_state_of_the_package_is_refused(file: str, old: str, new: str, own: Kit) -> None:
    done = own.holdfast("verify", "--contract", COUNTER, "--evidence", RUN, "reference")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.holdfast("gate", RUN, "--require", COUNTER).returncode == 0
    path = own.packages / "counter_contract" / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    refused = own.holdfast("gate", RUN, "--require", COUNTER)
    assert refused.returncode == 12
    assert "other_kit: the run was made by other code that calls itself holdfast" in refused.stdout
    assert "counter-contract 0.1.0" in refused.stdout
    for name in ("counter_contract", "counter_contract-0.1.0.dist-info"):
        shutil.rmtree(own.packages / name)
    gone = own.holdfast("gate", RUN, "--require", COUNTER)
    assert (gone.returncode, "unknown contract 'counter'" in gone.stderr) == (64, True)


def test_pytest_and_doctor_know_the_contract(kit: Kit) -> None:
    adapter = f"{kit.root}/.venv/bin/python -P -m holdfast.reference_impl adapter"
    words = ("--holdfast-contract", COUNTER, "--holdfast-adapter", adapter, "-p", "no:cacheprovider", "-q")
    done = kit.run("pytest", *words)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "CAN_PROCEED = YES" in done.stdout
    assert kit.holdfast("doctor", "--contract", COUNTER, "reference").returncode == 0


def test_a_package_that_cannot_be_used_stops_no_other_contract(own: Kit) -> None:
    good = {path.name: path.read_text(encoding="utf-8") for path in (own.packages / "counter_contract").glob("*.yaml")}
    good = {name: text.replace("contract: counter", "contract: lame") for name, text in good.items()}
    own.claim("again", COUNTER, "counter_contract")
    own.claim("nowhere", "gone", "no_such_package")
    own.claim("bare", "bare", "bare_package", {"__init__.py": ""})
    own.claim("taking", "jcs", "taking_package", {"contract.yaml": ""})
    own.claim("shouting", "Loud", "loud_package", {"contract.yaml": ""})
    own.claim("broken", "broken", "broken_package", {"contract.yaml": "a: [", "__init__.py": "raise SystemError"})
    own.claim("lame", "lame", "lame_package", {**good, "suite.py": "import no_such_module"})
    ending = {name: text.replace("contract: lame", "contract: ending") for name, text in good.items()}
    own.claim("ending", "ending", "ending_package", {**ending, "suite.py": "print('mine')\nraise SystemExit(0)"})
    torn = {name: text.replace("contract: lame", "contract: torn") for name, text in good.items()}
    own.claim("torn", "torn", "torn_package", {**torn, "reference.py": "", "cases/one.yaml": "a: ["})
    due = {
        COUNTER: "again 1.0 and counter-contract 0.1.0 both bring it; uninstall one of them",
        "gone": "nowhere 1.0: the package no_such_package is not there",
        "bare": "bare 1.0: the package bare_package is not there, or has no contract.yaml",
        "jcs": "taking 1.0 brings it, and holdfast has a contract of that name",
        "Loud": "shouting 1.0: expected a name in lower case",
        "broken": "broken 1.0: ",
        "lame": "lame 1.0: lame_package cannot be imported: ModuleNotFoundError",
        "ending": "ending 1.0: ending_package cannot be imported: SystemExit: 0",
        "torn": "torn 1.0: ",
    }
    listed = json.loads(own.holdfast("list", "contracts", "--format", "json").stdout)
    assert {row["contract"] for row in listed["rows"]} >= {CONTRACT, "jcs"}
    assert listed["unusable"].keys() == due.keys()
    assert all(text in listed["unusable"][name] for name, text in due.items()), listed["unusable"]
    assert "lame_package" in own.holdfast("list", "contracts").stderr
    examined = json.loads(own.holdfast("doctor", "--contract", CONTRACT, "--format", "json", "reference").stdout)
    skipped = [one["name"] for one in examined["examinations"] if one["health"] == "skipped"]
    assert {f"contract {name}" for name in due} <= {*skipped}
    for name in due.keys() - {"jcs"}:
        done = own.holdfast("verify", "--contract", name, "reference")
        assert (done.returncode, "1.0" in done.stderr) == (64, True), done.stderr
    assert own.holdfast("explain", "SHELF-1").returncode == 0
    # The run is narrowed, and all that was asked for conforms.
    done = own.holdfast("verify", *OTHER, "--format", "json", "reference")
    cases = json.loads(done.stdout)["cases"]
    assert {case["verdict"] for case in cases if "JCS-NUM-01" in case["clauses"]} == {"conforms"}


def test_a_contract_is_written_as_the_how_to_page_says(own: Kit) -> None:
    folder, name = own.root / ".venv" / "bin", "acme_counter_contract"
    # `pip install -e PROJECT` would fetch what it builds with.
    own.claim(name, "acme-counter", name)
    (own.packages / "editable.pth").write_text(f"{own.root}/out/acme-counter/src\n", encoding="utf-8")
    made = (own.packages / f"{name}-1.0.dist-info").rename(own.root / f"{name}-1.0.dist-info")
    for program, does in (("pip", f"mv {made} {own.packages}"), ("holdfast", f'{folder}/python -P -m holdfast "$@"')):
        (folder / program).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (folder / program).chmod(0o755)
    said = followed("write-a-contract.md", own.root / "out", PATH=f"{folder}:{os.environ['PATH']}")
    assert "CAN_PROCEED = YES" in said
    assert "4 of 4 mutants killed as declared, 0 problems" in said


@pytest.mark.parametrize("name", ["Counter", "1st", "a_b", "jcs", "-x", ""])
def test_a_new_contract_needs_a_name_of_its_own(name: str, kit: Kit) -> None:
    done = kit.holdfast("new-contract", "--", name, "new")
    assert (done.returncode, "expected" in done.stderr, (kit.root / "out" / "new").exists()) == (64, True, False)


def test_a_new_contract_overwrites_nothing(kit: Kit) -> None:
    done = kit.holdfast("new-contract", "other", str(kit.root / COUNTER))
    assert (done.returncode, "nothing was written" in done.stderr) == (64, True)
