"""Where the machine lacks what a process takes, nothing is said of the adapter."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.conformance.cli.verify import options
from holdfast.conformance.cli.verify.options import CASES_EACH, default_jobs
from holdfast.conformance.run import artefacts
from holdfast.conformance.run.artefacts import ArtefactError
from holdfast.servers.processors import processors
from tests.hostile.verify import HERE, environment

PROGRAM = """
import subprocess, sys
from holdfast.conformance.cli import main
start = subprocess.Popen.__init__
def without_room(self, command, *more, **options):
    if {program!r} in command:
        raise OSError({number}, "no room")
    start(self, command, *more, **options)
subprocess.Popen.__init__ = without_room
sys.argv = ["holdfast", *{words!r}]
main()
"""
HONEST = str(HERE / "adapters" / "honest.py")


@pytest.mark.parametrize(
    ("number", "status"), [(errno.EMFILE, 20), (errno.EAGAIN, 20), (errno.ENOMEM, 20), (errno.ENOEXEC, 13)]
)
def test_an_adapter_that_the_kit_has_no_room_for_is_no_failure_of_the_adapter(
    number: int, status: int, tmp_path: Path
) -> None:
    words = ["verify", "--contract", "toy", "--", sys.executable, HONEST]
    code = PROGRAM.format(number=number, program=HONEST, words=words)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environment(tmp_path),
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_an_adapter_is_counted_before_anything_of_it_is_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "_sha256", lambda path: pytest.fail(f"{path} was hashed"))
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "image").open("wb") as image:
        image.truncate(artefacts.MAX_BYTES + 1)
    with pytest.raises(ArtefactError, match="GiB"):
        artefacts.Identity(["./none"], started=datetime.now(UTC), named=[tmp_path / "large"])


# How many processes run cases where nothing is said: what the machine grants, and what the cases are worth.


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("own", "above", "due"),
    [
        (None, None, 8),
        ("max 100000", None, 8),
        ("250000 100000", None, 2),
        ("max 100000", "300000 100000", 3),
        ("50000 100000", None, 1),
        ("nonsense", None, 8),
    ],
)
def test_the_quota_of_every_control_group_counts(own: str | None, above: str | None, due: int, tmp_path: Path) -> None:
    process, groups = tmp_path / "proc", tmp_path / "groups"
    (groups / "user" / "own").mkdir(parents=True)
    process.mkdir()
    (process / "cgroup").write_text("0::/user/own\n", encoding="utf-8")
    for folder, text in ((groups / "user" / "own", own), (groups / "user", above)):
        if text is not None:
            (folder / "cpu.max").write_text(text + "\n", encoding="utf-8")
    assert processors(process=process, groups=groups) == due


@pytest.mark.usefixtures("eight")
def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert processors(process=tmp_path / "none", groups=tmp_path) == 8


@pytest.mark.parametrize(("cases", "due"), [(0, 1), (CASES_EACH, 1), (3 * CASES_EACH, 3), (1000 * CASES_EACH, 9)])
def test_a_process_is_started_for_so_many_cases(cases: int, due: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "processors", lambda: 8)
    assert default_jobs(cases) == due
