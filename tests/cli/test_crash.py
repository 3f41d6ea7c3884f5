"""`holdfast crash` as an implementer meets it, on a guard of thirty lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cli import crash
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.specs import schema
from tests.pace import busy

pytestmark = pytest.mark.usefixtures("tracer")

GUARD = str(Path(__file__).parents[1] / "faults" / "stores" / "guard.py")
HOLDFAST = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "crash"]


def _run(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOLDFAST, *words], capture_output=True, text=True, timeout=busy(300), cwd=cwd, **more)


def test_a_guard_that_does_not_sync_is_told_what_it_lost_and_why(tmp_path: Path) -> None:
    words = ["--layer", "power", "--seconds", "60", "--", sys.executable, GUARD, "OFF"]
    done = _run(*words, cwd=tmp_path)
    assert done.returncode == 10, done.stderr
    assert "power loss: lost" in done.stdout
    assert "of 5 acknowledged operations: gone is operation" in done.stdout
    told = (
        r"The acknowledgement of `PUT k1 v6-\w+` left at event \d+; at that time guard\.db-wal had [\d,]+ unsynced "
        r"bytes \(ops \d+\N{EN DASH}\d+, never synced\); .*; after power loss( on [\w ]+)? "
        r"\(unsynced dropped\) the store held \d of 5 acknowledged operations\."
    )
    assert re.search(told, " ".join(done.stdout.split()))
    picture = tmp_path / "holdfast-out" / "crash" / "power-lost.svg"
    assert f"timeline {picture}" in " ".join(done.stdout.split())
    assert picture.exists()
    assert "promises were broken" in done.stdout


@pytest.mark.parametrize("command", [[GUARD, "OFF"], [GUARD, "FULL"]])
def test_the_json_form_fits_its_schema(command: list[str], tmp_path: Path) -> None:
    words = ["--layer", "power", "--layer", "kill", "--least", "--ops", "2", "--format", "json"]
    done = _run(*words, "--", sys.executable, *command, cwd=tmp_path)
    said = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("crash"), said) is None
    assert said["exit"] == done.returncode
    kept = [found for layer in said["layers"] for found in layer["findings"] if found["state"]]
    assert bool(kept) == ("OFF" in command)
    for found in kept:
        assert (tmp_path / found["state"]).exists()
        assert (tmp_path / found["timeline"]).exists()


def test_the_schema_knows_every_class_of_a_finding() -> None:
    known = schema.published_schema("crash")["$defs"]["finding"]["properties"]["class"]["enum"]
    assert known == [kind.value for kind in CrashClass if kind is not CrashClass.CLEAN]


_LEAST = ["--least", "--slow", "4", "--ops", "3", "--", sys.executable, GUARD, "FULL"]


@pytest.mark.sweep
def test_one_that_syncs_keeps_every_promise(tmp_path: Path) -> None:
    done = _run(*_LEAST, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every promise was kept" in done.stdout


def test_one_layer_speaks_for_itself(tmp_path: Path) -> None:
    done = _run("--layer", "power", "--format", "json", *_LEAST, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    raw = json.loads(done.stdout)
    assert (raw["exit"], raw["needed"], raw["left_out"]) == (0, None, [*crash._LAYERS][1:])
    (power,) = raw["layers"]
    assert (power["layer"], power["clean"], power["findings"]) == ("power loss", True, [])
    # Each acknowledgement, and more.
    assert power["tried"] == power["floor"] > 3


def test_less_than_the_floor_is_not_proven_and_it_says_what_would_be(tmp_path: Path) -> None:
    """A store that takes long for each start: the time ends within its tries."""
    slow = (
        f"import time, sys, os; time.sleep(0.5); os.execv(sys.executable, [sys.executable, {GUARD!r}, *sys.argv[1:]])"
    )
    words = ["--layer", "power", "--ops", "2", "--format", "json", "--", sys.executable, "-c", slow, "FULL"]
    began = time.monotonic()
    done = _run("--seconds", "12", *words, cwd=tmp_path)
    took = time.monotonic() - began
    raw = json.loads(done.stdout)
    (power,) = raw["layers"]
    assert (done.returncode, raw["exit"], power["clean"]) == (12, 12, False)
    assert 0 < power["tried"] < power["floor"]
    assert "the time was over" in power["unproven"][0]
    assert raw["needed"] > raw["seconds"]
    # A tenth, and the start of an interpreter on a busy machine.
    assert took < 12 * 1.1 + busy(10)


@pytest.mark.parametrize("seconds", ["0", "1.5"])
def test_the_time_ends_whatever_the_store_does(seconds: str, tmp_path: Path) -> None:
    """Within its limits it would have 150 seconds for the recorded start alone."""
    began = time.monotonic()
    done = _run("--seconds", seconds, "--", sys.executable, "-c", "import time; time.sleep(300)", cwd=tmp_path)
    assert time.monotonic() - began < busy(20)
    assert done.returncode == 12
    assert "the time was over" in done.stdout
    assert "hangs" not in done.stdout
