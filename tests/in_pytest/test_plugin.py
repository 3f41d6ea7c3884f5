"""The pytest plug-in in a project of a user: items beside his own tests, evidence, and the decision at the end."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.run.plugin import shared_out
from tests.conftest import missing
from tests.forger import lines_of
from tests.hostile.verify import LIMIT_S, adapter, assert_nothing_remains, environment, holdfast, mine, temp_folder
from tests.pace import busy

MALFORMED = "toy/once/an-empty-key-is-malformed"
# Honest but for one clause: it takes an empty key.
BROKEN = """
class Takes(Adapter):
    def refuse(self, reason):
        if reason != "REQUEST_MALFORMED":
            return super().refuse(reason)
        self.sql("COMMIT")
        return {"outcome": "accepted", "effect": "new", "value": {"entry": {"key": "any", "nonce": "any"}}}

Takes().run()
"""


class Project:
    """A project with a test of its own, and an adapter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
        (folder / "test_own.py").write_text("def test_own():\n    pass\n")
        self.evidence = folder / "holdfast-out" / "run.jsonl.zst"

    def pytest(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A session of pytest. Nothing of it may remain."""
        with temp_folder() as temp:
            ended = subprocess.run(
                [sys.executable, "-m", "pytest", "--basetemp", str(self.folder / "temp"), *words],
                cwd=self.folder,
                env=environment(temp),
                capture_output=True,
                text=True,
                timeout=busy(LIMIT_S),
                check=False,
            )
            assert_nothing_remains(temp)
        return ended

    def toy(self, command: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
        """A session with the cases of the toy contract."""
        return self.pytest("--holdfast-contract", "toy", "--holdfast-adapter", " ".join(command), *words)

    def decision(self, *words: str) -> str:
        """What `holdfast gate` says of the evidence."""
        with temp_folder() as temp:
            said = holdfast("gate", str(self.evidence), "--require", "toy", *words, temp=temp, cwd=self.folder)
        return said.stdout.splitlines()[0]

    def lines(self, kind: str) -> list[Mapping[str, Any]]:
        """Lines of the evidence."""
        found = map(json.loads, lines_of(self.evidence))
        return [line for line in found if line["type"] == kind]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if not any(each.value == "holdfast.pytest_plugin" for each in entry_points(group="pytest11")):
        missing("the entry point of the plug-in: `pip install -e .` again")
    return Project(tmp_path)


def test_a_sound_adapter_passes_beside_the_tests_of_the_project(project: Project) -> None:
    ended = project.toy(adapter("honest"), "-n", "2", "--junitxml", "j.xml", "--holdfast-gate", "--holdfast-nonce=x1")
    assert ended.returncode == 0, ended.stdout
    assert "CAN_PROCEED = YES" in ended.stdout
    names = [case.get("name", "") for case in ET.parse(project.folder / "j.xml").iter("testcase")]
    plan = project.lines("header")[0]["plan"]
    assert sorted(name.partition("[")[0] for name in names) == sorted(["test_own", *plan])
    assert f"{MALFORMED}[A put of an empty key is refused as malformed]" in names
    assert project.decision("--nonce", "x1") == "CAN_PROCEED = YES"


def test_a_broken_adapter_fails_the_case_and_allure_shows_it(project: Project) -> None:
    command = mine(BROKEN, project.folder)
    ended = project.toy(command, "--alluredir", "allure", "-v")
    assert ended.returncode == 1
    assert f"fail_open {MALFORMED}: accepted where it must be refused" in ended.stdout
    assert "1 failed, 7 passed" in ended.stdout
    again = f"holdfast verify --contract toy --case {MALFORMED} --seed {project.lines('header')[0]['seed']} --evidence "
    assert again in ended.stdout
    assert f" -- {' '.join(command)}" in ended.stdout
    assert project.decision() == "CAN_PROCEED = NO"

    results = [json.loads(file.read_text()) for file in (project.folder / "allure").glob("*-result.json")]
    (found,) = (each for each in results if each["status"] == "failed")
    assert len(results) == 8
    assert found["name"] == "A put of an empty key is refused as malformed"
    assert found["fullName"] == f"holdfast.toy#{MALFORMED}"
    assert found["titlePath"] == ["toy", "TOY-03"]
    assert found["statusDetails"]["message"] == "Failed: fail_open: accepted where it must be refused"
    assert again in found["statusDetails"]["trace"]
    labels = {(label["name"], label["value"]) for label in found["labels"]}
    assert labels > {("contract", "toy"), ("clause", "TOY-03"), ("severity", "critical"), ("verdict", "fail_open")}
    assert "The twin, which must be accepted: bad: args.key" in found["description"]
    (main,) = (step for step in found["steps"] if step["name"] == "main side")
    assert [step["status"] for step in main["steps"]] == ["passed"] * 4 + ["failed"]
    parameters = {each["name"]: json.loads(each["value"]) for each in main["steps"][-1]["parameters"]}
    assert parameters["request"]["method"] == "put"
    assert parameters["answer"]["outcome"] == "accepted"
    attached = {each["name"]: project.folder / "allure" / each["source"] for each in found["attachments"]}
    assert attached["again"].read_text().startswith(again)
    assert '"judged":true' in attached["transcript"].read_text()
    both = next(each for each in results if each["fullName"].endswith("/a-second-put-of-a-key-is-refused"))
    assert {step["name"] for step in both["steps"]} == {"main side", "twin side"}

    again_failed = project.toy(command, "--lf", "-x")
    assert "1 failed, 7 deselected" in again_failed.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("-k", "TOY-03"),
        ("-m", "TOY-03"),
        ("--holdfast-no-faults", "-m", "TOY-03"),
        # As pytest prints it, and as the evidence has it.
        (f"holdfast/toy::{MALFORMED}[A put of an empty key is refused as malformed]", "-n", "2"),
        (f"holdfast/toy::{MALFORMED}",),
        ("holdfast/toy", "-k", "empty-key"),
    ],
)
def test_a_session_that_was_narrowed_is_never_a_yes(project: Project, words: tuple[str, ...]) -> None:
    ended = project.toy(adapter("honest"), "--holdfast-gate", *words)
    assert "1 passed" in ended.stdout
    assert ended.returncode == 1
    assert [line["case"] for line in project.lines("verdict")] == [MALFORMED]
    assert project.decision() == "CAN_PROCEED = NO"


def test_a_test_of_the_project_that_is_named_runs_alone(project: Project) -> None:
    ended = project.toy(adapter("honest"), "test_own.py::test_own")
    assert "collected 1 item" in ended.stdout
    assert project.decision() == "CAN_PROCEED = NO"


def test_with_x_the_session_ends_at_the_first_failure(project: Project) -> None:
    ended = project.toy(mine("print('no protocol')", project.folder), "-x", "--holdfast-gate")
    assert "1 failed, 1 passed" in ended.stdout
    assert project.decision() == "CAN_PROCEED = NO"


# What a plug-in or a test of the project may do to a session.
SKIP = "import pytest\n\ndef pytest_collection_modifyitems(items):\n    items[-1].add_marker(pytest.mark.skip)\n"
TWICE = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    runtestprotocol(item, nextitem=nextitem)
"""
PASSES = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
GREEN = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    done = yield
    session.exitstatus = 0
    return done
"""
OTHER = f"""
from dataclasses import replace
from functools import cache
from holdfast.conformance.run.engine import Engine

@cache
def engine(session):
    return Engine(replace(session.options.settings, adapter={adapter("honest")!r})).__enter__()

def pytest_sessionstart(session):
    session.config.pluginmanager.register(Hooks(session.config.pluginmanager.get_plugin("holdfast-session")))

class Hooks:
    def __init__(self, session):
        self.session = session

    def pytest_holdfast_engine(self):
        return engine(self.session)
"""
ENDS = "import pytest\n\ndef pytest_runtest_setup(item):\n    if 'empty-key' in item.name:\n        raise "


@pytest.mark.parametrize(
    ("conftest", "program"),
    [
        (SKIP, ""),
        (TWICE, ""),
        (PASSES, BROKEN),
        (GREEN, BROKEN),
        (OTHER, BROKEN),
        (ENDS + "pytest.exit.Exception('')", ""),
        (ENDS + "KeyboardInterrupt", ""),
    ],
    ids=["skipped", "ran twice", "reported as passed", "another status", "another adapter", "exit", "interrupted"],
)
def test_a_case_that_did_not_run_or_was_hidden_is_never_a_yes(project: Project, conftest: str, program: str) -> None:
    (project.folder / "conftest.py").write_text(conftest)
    command = mine(program, project.folder) if program else adapter("honest")
    ended = project.toy(command, "--holdfast-gate")
    assert ended.returncode != 0, ended.stdout
    assert "CAN_PROCEED = NO" in ended.stdout
    assert not project.evidence.exists() or project.decision() == "CAN_PROCEED = NO"


def test_an_adapter_that_is_silent_fails_every_case(project: Project) -> None:
    ended = project.toy(("true",), "-n", "2")
    assert "7 failed, 1 passed" in ended.stdout
    assert {line["verdict"] for line in project.lines("verdict")} == {"no_verdict"}
    assert project.decision() == "CAN_PROCEED = NO"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--holdfast-gate",), "expected --holdfast-contract and --holdfast-adapter too"),
        (("--holdfast-contract", "toy"), "expected --holdfast-adapter too"),
        (("--holdfast-contract", "toy", "--holdfast-adapter", "true", "holdfast/toy::x"), "the id of a case of toy"),
        (("--holdfast-contract", "tooy", "--holdfast-adapter", "true"), "unknown contract 'tooy' (did you mean toy?)"),
        (("--holdfast-contract", "toy", "--holdfast-adapter", "./none"), "'./none' is no program here"),
        (("--holdfast-contract", "toy", "--holdfast-adapter", "true", "--holdfast-config", "K"), "--holdfast-config"),
        (("--holdfast-contract", "toy", "--holdfast-adapter", "true", "-p", "no:holdfast-session"), "expected no -p"),
        (("--holdfast-contract", "toy", "--holdfast-adapter", "true", "--no-such-option"), "usage: "),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_runs(project: Project, words: tuple[str, ...], said: str) -> None:
    project.evidence.parent.mkdir()
    project.evidence.write_text('{"adapter":')
    ended = project.pytest(*words)
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    (line,) = (ended.stdout + ended.stderr).split("\n", maxsplit=1)[:1]
    assert line.startswith("ERROR: ")
    assert said in line
    assert not project.evidence.exists()


def test_the_faults_of_a_workload_go_to_one_process_as_load_deals_them_out() -> None:
    cases = ["case"] * 36 + ["a"] * 5 + ["b"] * 3
    found = shared_out(cases, 2, workload=lambda each: None if each == "case" else each, share=5)
    assert found == [*"aaaaa", *"bbb", *["case"] * 36]


def test_without_its_options_the_plugin_imports_pytest_alone() -> None:
    program = (
        "import sys, holdfast.pytest_plugin\nprint(*(name for name in sys.modules if name.startswith('holdfast')))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["holdfast", "holdfast.pytest_plugin"]
