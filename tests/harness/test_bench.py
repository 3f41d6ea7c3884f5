"""The benchmark of the harness runs and prints what it promises. No test checks its speed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pace import busy

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_prints_ratios_for_both_manners() -> None:
    words = [sys.executable, "-m", "bench.harness", "--batches", "2", "--batch", "1", "--window", "4"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=busy(60), check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == 2 * ["worker", "echo", "answerer", "in"]
    assert [line[-1] for line in lines[3::4]] == ["lock-step", "pipelined"]
    assert all(float(line[-1]) > 0 for line in lines if line[0] != "in")
