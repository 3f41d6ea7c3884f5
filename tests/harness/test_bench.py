"""The benchmark of the harness runs and prints what it promises. No test checks its speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.pace import busy

BENCH = Path(__file__).resolve().parent.parent.parent / "bench" / "harness.py"


def test_the_benchmark_prints_ratios_for_both_manners() -> None:
    words = [sys.executable, str(BENCH), "--ops", "8", "--rounds", "1", "--window", "4"]
    ended = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=busy(60), check=True)
    found = json.loads(ended.stdout)
    assert (found["ops"], found["rounds"], found["window"]) == (8, 1, 4)
    for manner in ("lock_step", "pipelined"):
        assert found["microseconds"][manner].keys() == {"echo", "answerer", "worker"}
        assert all(value > 0 for value in found["ratios"][manner].values())
    plain = subprocess.run(words, capture_output=True, text=True, timeout=busy(60), check=True)
    assert "worker/echo = " in plain.stdout
