"""Outputs that cannot be written are noticed before the run, and nothing of the user's is touched for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand

from holdfast.conformance.cli.verify.command import unusable_outputs
from holdfast.conformance.cli.verify.options import Options


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """What a plain command line asks for, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Options(
        context=typer.Context(TyperCommand("verify")),
        evidence=Path("out/run.jsonl"),
        junitxml=Path("reports/junit.xml"),
        html=Path("reports/page.html"),
        alluredir=Path("reports/allure"),
        start="./adapter",
    )


def asking(options: Options, option: str, place: Path) -> Options:
    changed: dict[str, Any] = {option: place}
    return replace(options, **changed)


def entries() -> set[str]:
    """Everything in the current folder."""
    return {str(path) for path in Path().rglob("*")}


def test_places_of_their_own_are_usable_and_not_made(options: Options) -> None:
    assert unusable_outputs(options) == ""
    assert entries() == set()
    beside = replace(options, junitxml=Path("out/junit.xml"), alluredir=Path("out"))
    assert unusable_outputs(beside) == ""


WRONG: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a pipe": os.mkfifo,
    "a file of others": lambda path: path.write_text("mine"),
}


def as_it_is(path: Path) -> tuple[int, ...]:
    """What a change of this file would change. The access time is not: who follows a link sets it."""
    found = path.lstat()
    kept = (found.st_mode, found.st_ino, found.st_dev, found.st_nlink, found.st_uid, found.st_gid, found.st_size)
    return (*kept, found.st_mtime_ns, found.st_ctime_ns)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_there_already_is_no_place_for_a_report_and_stays_as_it_is(what: str, options: Options) -> None:
    path = Path("there")
    WRONG[what](path)
    before = as_it_is(path)
    wrong = {"junitxml": [path], "html": [path], "alluredir": [path, path / "below"]}
    if what == "a folder":
        wrong["alluredir"] = []
    else:
        wrong["junitxml"].append(path / "below")
        wrong["html"].append(path / "below")
    for option, places in wrong.items():
        for place in places:
            assert f"--{option}" in unusable_outputs(asking(options, option, place))
    assert as_it_is(path) == before


@pytest.mark.parametrize(
    ("option", "name"),
    [
        # Root writes anywhere but into the kernel's own tree.
        ("junitxml", "/proc/junit.xml"),
        ("alluredir", "/proc/allure"),
        *(("junitxml", name) for name in ("/dev/null", "there.previous", "there.partial", "-x")),
    ],
)
def test_a_name_that_cannot_hold_a_report_is_refused(option: str, name: str, options: Options) -> None:
    assert f"--{option}" in unusable_outputs(asking(options, option, Path(name)))


@pytest.mark.parametrize(
    ("evidence", "junit", "allure"),
    [
        ("same", "same", "other"),
        ("out/run.jsonl", "out/../out/run.jsonl", "other"),
        ("out/run.jsonl", "link/run.jsonl", "other"),
        ("same", "other", "same"),
        ("one", "same", "same"),
        ("same", "other", "same/below"),
        ("same/below", "same", "other"),
        ("one", "same", "same/below"),
        ("out/run.jsonl", "out/faults", "other"),
        ("out/run.jsonl", "other", "out/faults"),
    ],
)
def test_outputs_do_not_share_a_place(evidence: str, junit: str, allure: str, options: Options) -> None:
    Path("out").mkdir()
    Path("link").symlink_to("out")
    asked = replace(options, evidence=Path(evidence), junitxml=Path(junit), alluredir=Path(allure))
    assert "places of their own" in unusable_outputs(asked)
