"""The probe says what this machine allows, with a reason for what it does not, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from holdfast.conformance.faults import probe
from holdfast.conformance.faults.probe import Probe


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    found = probe.probe()
    assert found.tracer == ""
    assert found.real_file_systems or os.geteuid() == 0
    assert list(tmp_path.iterdir()) == []
    assert Path("/proc/mounts").read_text(encoding="utf-8") == mounts


def test_another_machine_and_a_tracer_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert probe.probe().tracer == "tracing a program of one's own failed: it ended with 1"
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert "x86-64" in probe.probe().tracer


def test_lines() -> None:
    assert Probe("", "no namespaces", "it needs root").lines() == (
        "tracer: available",
        "full disk: not available, no namespaces",
        "real file systems: not available, it needs root",
    )
