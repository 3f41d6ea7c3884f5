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
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import Layer, Tally
from holdfast.conformance.faults.runs import Workspace
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
    space.note(tally, 1, oracle.CrashOutcome(CrashClass.LOST, "this", "that"), "So.", lambda _: None)
    space.close()
    (finding,) = tally.findings
    assert (finding.verdict.kind, finding.kept) == (CrashClass.LOST, None)
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


# What a program does in the place of a store: it keeps its facts in `kept`, and shows `shown` of them.
_STORE = """
import json, os, sys
kept = os.path.join(sys.argv[1], "facts.json")
facts = json.load(open(kept)) if os.path.exists(kept) else {{}}
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ["DUMP"]:
        print(json.dumps(facts), flush=True)
        continue
    facts |= {shown}
    {keep}
    print("OK", flush=True)
"""
_RIGHT = "{words[1] + '.left': words[2], words[1] + '.right': words[2]}"
_KEEP = "json.dump(facts, open(kept, 'w'))"
# It shows what it keeps, nothing, and refuses all else.
_REFUSES = """print('READY', flush=True)
while word := input(): print('{}' if word == 'DUMP' else 'REFUSED no', flush=True)"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "exited with status 0"),
        ("print('hello', flush=True); input()", "expected READY, got 'hello'"),
        ("print('READY', flush=True)\nwhile input(): print('what?', flush=True)", "got 'what?'"),
        (_REFUSES, "refused (no)"),
        ("import time; time.sleep(60)", "no answer within 0.75 s"),
        ("print('READY', flush=True)\nimport time; time.sleep(60)", "no answer within 0.5 s"),
        (_STORE.format(shown="{words[1]: words[2]}", keep=_KEEP), "`PUT k1 v1-d82c07cd`"),
        (_STORE.format(shown="{words[1]: words[2]}", keep=_KEEP), "{'k1': 'v1-d82c07cd', "),
        (_STORE.format(shown="{}", keep=_KEEP), "it shows {}"),
        (_STORE.format(shown=_RIGHT, keep="pass"), "ended in order and started again, it shows {}"),
    ],
)
def test_what_does_not_speak_the_protocol_is_one_line_and_no_finding(program: str, said: str, tmp_path: Path) -> None:
    count = tmp_path / "count"
    counted = f"open({str(count)!r}, 'a').write('x')\n{program}"
    done = crash("--slow", "0.05" if "sleep" in program else "4", "--", sys.executable, "-c", counted)
    assert done.exit_code == 13, done.stdout
    (line,) = done.stderr.splitlines()
    assert "does not speak the protocol" in line
    assert said in line
    assert done.stdout == ""
    # It is not waited for twice; one that is wrong only then is started again, in order.
    assert count.read_text(encoding="utf-8") in ("x", "xx")


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
