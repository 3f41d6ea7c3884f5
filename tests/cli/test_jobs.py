"""How many processes run cases where nothing is said: what the machine grants, and what the cases are worth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.conformance.cli.verify import options
from holdfast.conformance.cli.verify.options import CASES_EACH, default_jobs
from holdfast.servers.processors import processors


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
