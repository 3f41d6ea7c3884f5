"""What `holdfast crash` says of places, commands and layers, and that it waits for nothing in vain."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.places import unusable
from holdfast.conformance.faults import oracle
from holdfast.conformance.faults.oracle import Kind
from holdfast.conformance.faults.report import Layer, Tally
from holdfast.conformance.faults.workspace import Workspace
from tests.faults.stores.catalogue import ENVIRONMENT, STORES

STORE = {store.name: store for store in STORES}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])


def crash(*words: str) -> Result:
    return CliRunner().invoke(app, ["crash", "--least", "--ops", "2", *words])


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file", "--out: file is a file"),
        ("file/below", "--out: a part of file/below is a file"),
        ("/proc/nope", "--out: /proc/nope cannot be written to (No such file or directory)"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_any_work(place: str, said: str, tmp_path: Path) -> None:
    Path("file").touch()
    done = crash("--out", place, "--", sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert done.exit_code == 64
    assert said in done.stderr
    assert os.listdir(tmp_path) == ["file"]


def test_asking_for_a_place_leaves_nothing_behind(tmp_path: Path) -> None:
    assert unusable(tmp_path / "new" / "below") == ""
    assert unusable(Path("new")) == ""
    assert os.listdir(tmp_path) == []


def test_a_finding_stays_although_its_state_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "keep").touch()
    space = Workspace(None, tmp_path, tmp_path / "keep")
    tally = Tally(Layer.MISSING, seed=0, floor=1, most=5)
    space.note(tally, 1, oracle.Verdict(Kind.LOST, "this", "that"), "So.", lambda _: None)
    space.close()
    (finding,) = tally.findings
    assert (finding.verdict.kind, finding.kept) == (Kind.LOST, None)
    assert finding.story.startswith("So. The state could not be kept: ")


def test_the_line_for_again_has_every_option_that_matters(tmp_path: Path) -> None:
    words = ["--layer", "missing", "--scratch", "*.tmp", "--scratch", "a b", "--detects", "--slow", "2", "--out", "o"]
    command = STORE["log-right"].command()
    done = crash(*words, "--seed", "3", "--", *command)
    line = next(line for line in done.stdout.splitlines() if line.startswith("again: "))
    told = shlex.split(line.removeprefix("again: "))
    at = words.index("--slow")
    expected = ["holdfast", "crash", *words[:at], "--least", *words[at:]]
    expected += ["--ops", "2", "--seed", "3", "--seconds", "120", "--", *command]
    assert told == expected


def test_that_not_all_layers_were_asked_for_is_said() -> None:
    done = crash("--layer", "missing", "--layer", "locked", "--", *STORE["log-right"].command())
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "conforms in layers missing, locked; the other layers were not asked for: power, kill, torn," in said
    assert "store missing: at work" in done.stderr


def test_what_cannot_begin_is_waited_for_once(tmp_path: Path, tracer: object) -> None:
    del tracer
    count = tmp_path / "count"
    layers = ("power", "kill", "sync", "missing", "truncated", "locked")
    words = [word for layer in layers for word in ("--layer", layer)]
    done = crash(*words, "--", sys.executable, "-c", f"open({str(count)!r}, 'a').write('x')")
    assert done.exit_code == 12, done.stdout
    # Once under the tracer, and once without.
    assert count.read_text(encoding="utf-8") == "xx"
    said = [line for line in done.stdout.splitlines() if "NOT PROVEN" in line]
    reasons = [line.partition(": NOT PROVEN: ")[2] for line in said]
    assert len(reasons) == len(layers)
    assert (len(set(reasons[:3])), len(set(reasons[3:]))) == (1, 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "'./it' is a folder; give the path of a program in it"),
        (Path.touch, "'./it' is there and may not be executed; allow that (chmod +x ./it), or name what runs it"),
        (lambda _: None, "'./it' is no program here"),
    ],
)
def test_why_a_command_cannot_be_run_is_said(make: Callable[[Path], None], said: str) -> None:
    make(Path("it"))
    done = crash("--", "./it")
    assert done.exit_code == 13
    assert said in done.stderr
