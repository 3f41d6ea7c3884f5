"""What `holdfast crash` takes away, what it says of places, commands and layers, and that it waits for nothing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdfast.conformance.cli import crash as command
from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.places import unusable
from holdfast.conformance.faults import dependencies, oracle
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.probe import Probe, mounting
from holdfast.conformance.faults.report import Layer, Tally
from holdfast.conformance.faults.runs import Workspace
from holdfast.specs import schema
from tests.conftest import missing
from tests.faults.stores.catalogue import ENVIRONMENT, STORES, Store

REFUSED = "Operation not permitted"

STORE = {store.name: store for store in STORES}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])


def crash(*words: str) -> Result:
    return CliRunner().invoke(app, ["crash", "--least", "--ops", "2", *words])


def judged(store: str, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and what is said as JSON."""
    options = ["--least", *([] if "--ops" in words else ["--ops", "4"]), "--format", "json"]
    family, _, variant = store.partition("-")
    done = CliRunner().invoke(app, ["crash", *options, *words, "--", *Store(family, variant).command()])
    said = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("crash"), said) is None
    return done.exit_code, said


def layers(*names: str) -> Sequence[str]:
    return [word for name in names for word in ("--layer", name)]


def test_every_layer_of_a_store_has_a_name() -> None:
    # A contract alone has a clock. It alone kills by signals, where processes cannot be traced.
    of_contracts = {Layer.SIGNALS, Layer.CLOCK_BACK, Layer.CLOCK_FORWARD}
    assert {*command._LAYERS.values()} == {*Layer} - of_contracts


def test_what_is_taken_away_needs_no_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "probe", lambda: Probe(REFUSED, "", REFUSED))
    status, said = judged("log-right", *layers("power", "missing", "locked", "down"))
    power, missing, locked, down = said["layers"]
    assert power["unproven"] == ["NOT TESTED: Operation not permitted"]
    assert (power["clean"], power["tried"]) == (False, 0)
    assert [one["clean"] for one in (missing, locked, down)] == [True] * 3
    assert [one["tried"] for one in (missing, locked, down)] == [1, 2, 0]
    assert down["beside"] == "does not apply: it starts no process of its own"
    assert status == 12


def test_a_layer_that_does_not_apply_proves_nothing_alone() -> None:
    status, said = judged("log-right", *layers("down"))
    assert said["layers"][0]["beside"] == "does not apply: it starts no process of its own"
    assert status == 12
    status, said = judged("log-right", *layers("down", "missing"))
    assert status == 0


TRACED = ("power", "torn", "short", "sync")


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize("names", [TRACED, pytest.param(tuple(command._LAYERS), marks=pytest.mark.sweep)])
def test_a_store_that_never_calls_write_passes_without_the_layers_of_writes(names: Sequence[str]) -> None:
    if "full" in names and (reason := mounting()):
        missing(reason)
    status, said = judged("mapped-right", "--ops", "2", "--slow", "2", *layers(*names))
    found = dict(zip(names, said["layers"], strict=True))
    assert not any(one["findings"] for one in said["layers"])
    for layer in ("torn", "short"):
        assert (found[layer]["tried"], found[layer]["total"]) == (0, 0)
        assert found[layer]["beside"].startswith("does not apply: none of its")
    assert found["power"]["tried"]
    assert status == 0


def test_without_namespaces_two_layers_are_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "mounting", lambda: REFUSED)
    status, said = judged("log-right", *layers("readonly", "full"))
    assert [one["unproven"] for one in said["layers"]] == [["NOT TESTED: Operation not permitted"]] * 2
    assert status == 12


def test_a_store_may_promise_to_notice_damage() -> None:
    status, said = judged("log-right", *layers("truncated"))
    assert (status, said["layers"][0]["clean"]) == (0, True)
    status, said = judged("log-right", "--detects", *layers("truncated"))
    assert status == 10
    assert {found["class"] for found in said["layers"][0]["findings"]} == {"lost"}
    state = said["layers"][0]["findings"][0]["state"]
    assert Path(state).exists()


def test_values_are_large_enough_to_fill_a_disk() -> None:
    if reason := mounting():
        missing(reason)
    status, said = judged("log-swallow", *layers("full"))
    assert status == 10
    assert said["layers"][0]["layer"] == "disk full"


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
    ("words", "said"),
    [([], "expected `-- COMMAND…`"), (["--layer", "flood", "--", "true"], "unknown layer 'flood'; known: power, kill")],
)
def test_words_that_try_nothing_are_a_matter_of_usage(words: list[str], said: str) -> None:
    done = crash(*words)
    assert done.exit_code == 64
    assert said in done.stderr


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
