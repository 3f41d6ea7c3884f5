"""The action for GitHub, the job for GitLab and the hook for pre-commit, done as their runners do them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hostile.verify import TOY
from tests.pace import busy
from tests.packaging.test_tree import ROOT

ACTION = ROOT / ".ci" / "action" / "action.yml"
ADAPTERS = ROOT / "tests" / "hostile" / "adapters"
SOUND, BROKEN = (f"{sys.executable} {ADAPTERS / name}" for name in ("honest.py", "flawed.py no_audit"))
LIMIT_S = 180.0
# The packages of this environment stand for those that pip would bring; the kit itself is built and installed.
OFFLINE = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_NO_INDEX": "1",
    "PYTHONPATH": sysconfig.get_paths()["purelib"],
    "HOLDFAST_SPECS": str(TOY),
}


def run(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A step as a runner runs it: in a bash that ends with the first failure."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, **OFFLINE, **more},
        capture_output=True,
        text=True,
        timeout=busy(LIMIT_S),
        check=False,
    )


def filled(text: str, inputs: Mapping[str, str]) -> str:
    """An expression of GitHub: inputs, the first that is not empty."""

    def value(found: re.Match[str]) -> str:
        names = [name.strip().removeprefix("inputs.") for name in found[1].split("||")]
        return next((inputs[name] for name in names if inputs.get(name)), "")

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first step of the action leaves in RUNNER_TEMP."""
    folder = tmp_path_factory.mktemp("runner")
    first = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"][0]
    done = run(first["run"], folder, RUNNER_TEMP=str(folder), GITHUB_ACTION_PATH=str(ACTION.parent), EXTRA="")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("adapter", "said", "status"),
    [(SOUND, "YES", 0), (BROKEN, "NO", 10), ("exit 3", "NO", None)],
    ids=["sound", "broken", "dead"],
)
def test_the_action_ends_as_the_gate_decides_and_shows_why(
    adapter: str, said: str, status: int | None, temp: Path, tmp_path: Path
) -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    inputs = {"contract": "toy", "adapter": adapter, "at": "adapter.py"}
    assert (
        {name for name, each in action["inputs"].items() if each.get("required")}
        <= inputs.keys()
        <= action["inputs"].keys()
    )
    summary, output = tmp_path / "summary", tmp_path / "output"
    more = {"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_SHA": "c0ffee", "RUNNER_TEMP": str(temp)}
    more |= {
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_ACTION_PATH": str(ACTION.parent),
    }
    verify, gate = action["runs"]["steps"][1:]
    for step in (verify, gate):
        assert step["shell"] == "bash"
        done = run(step["run"], tmp_path, **more, **{name: filled(each, inputs) for name, each in step["env"].items()})
        assert step is gate or done.returncode == 0, done.stderr
    assert done.returncode == status if status is not None else done.returncode, done.stderr
    assert output.read_text(encoding="utf-8") == f"can-proceed={said}\n"
    assert f"CAN_PROCEED = {said}" in done.stdout
    assert summary.read_text(encoding="utf-8").startswith(f"## holdfast: CAN_PROCEED = {said}\n")
    found = json.loads((tmp_path / "holdfast-out" / "findings.sarif").read_text(encoding="utf-8"))["runs"][0]
    assert bool(found["results"]) == ("::error file=adapter.py," in done.stdout) == (said == "NO")
    assert (tmp_path / "holdfast-out" / "junit.xml").is_file()


def test_the_job_for_gitlab_ends_as_the_gate_decides(temp: Path, tmp_path: Path) -> None:
    text = (ROOT / ".ci" / "gitlab" / "holdfast.yml").read_text(encoding="utf-8")
    job: dict[str, Any] = yaml.safe_load(text)[".holdfast"]
    # The environment that it makes is the one that the action has made.
    (tmp_path / ".holdfast-venv").symlink_to(temp / "holdfast")
    script = "\n".join(
        line for line in job["script"] if "venv .holdfast-venv" not in line and "pip install" not in line
    )
    variables = {**job["variables"], "CONTRACT": "toy", "ADAPTER": BROKEN, "CI_JOB_ID": "7", "CI_COMMIT_SHA": "c0ffee"}
    done = run(script, tmp_path, **variables)
    assert done.returncode == 10, done.stderr
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).is_file()
    assert "CAN_PROCEED" in (tmp_path / "holdfast-out" / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("adapter", "status"), [(SOUND, 0), (BROKEN, 10)], ids=["sound", "broken"])
def test_the_hook_for_pre_commit_tries_the_adapter(adapter: str, status: int, temp: Path, tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("holdfast", "python", False)
    words = [*shlex.split(hook["entry"]), "--contract", "toy", "--", *shlex.split(adapter)]
    done = run(shlex.join([str(temp / "holdfast" / "bin" / words[0]), *words[1:]]), tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
