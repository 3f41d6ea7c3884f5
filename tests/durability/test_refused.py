"""Where a process may not trace its own children nothing that rests on it is judged, and the gate holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.test_faults import case_of, run, verdict_of

# Puts a filter on itself under which ptrace(2) fails as in a hardened container, and becomes the command.
REFUSING = """
import errno, os, struct, sys
from holdfast.conformance.faults.tracer import ptrace

def step(code, value, yes=0, no=0):
    return struct.pack("<HBBI", code, yes, no, value)

# The number of the call; ptrace(2) is 101 on x86-64.
load, equal, answer = 0x20, 0x15, 0x06
refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
ptrace.install([step(load, 0), step(equal, 101, 0, 1), step(answer, refuse), step(answer, allow)])
os.execvp(sys.argv[1], sys.argv[1:])
"""
BEFORE = (sys.executable, "-P", "-c", REFUSING)


@pytest.mark.usefixtures("tracer")
def test_where_tracing_is_refused_the_run_says_so_and_proves_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, "right", before=BEFORE)
    assert found.exit == 12, found.stdout + found.stderr
    assert found.verdicts[case_of("power-loss")] == "not_reached"
    assert "power-loss NOT TESTED: tracing a program of one's own failed" in verdict_of(found, "power-loss")["detail"]
    assert found.lines[0]["environment"]["power loss and kills"].startswith("NOT TESTED: tracing a program")
    gate = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "holdfast.conformance.cli",
            "gate",
            str(tmp_path / "run.jsonl"),
            "--require",
            "ledger",
        ],
        env={"PATH": "/usr/bin:/bin", "HOLDFAST_SPECS": str(Path(__file__).parent / "contracts")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert gate.returncode == 12
    assert "CAN_PROCEED = NO" in gate.stdout


@pytest.mark.usefixtures("tracer")
def test_a_weaker_layer_still_finds_what_a_kill_can_show(tmp_path: Path) -> None:
    found = run(tmp_path, "stale-lock", layer="kill", before=BEFORE)
    line = verdict_of(found, "kill")
    assert line["verdict"] == "lost_durability", found.stdout + found.stderr
    assert "by signals" in line["detail"]
    assert found.exit == 10


@pytest.mark.usefixtures("tracer")
def test_a_weaker_layer_that_finds_nothing_proves_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, "right", layer="kill", before=BEFORE)
    line = verdict_of(found, "kill")
    assert line["verdict"] == "not_reached"
    assert "kill NOT TESTED" in line["detail"]
    assert "by signals, a weaker layer, nothing was found in" in line["detail"]
