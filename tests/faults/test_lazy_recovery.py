"""A store that is opened only once it is needed: what it does then to bring itself in order is a recovery, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import Layer, SweepReport
from holdfast.conformance.faults.sweep import Sweep

# It appends and syncs. The first request of a process has it compact its file, synced or not before it takes the place.
_STORE = """
import json, os, sys
sync, folder = sys.argv[1], sys.argv[-1]
path, opened, facts = os.path.join(folder, "facts"), False, {}
def synced(name):
    handle = os.open(name, os.O_RDONLY); os.fsync(handle); os.close(handle)
def first():
    for line in open(path) if os.path.exists(path) else ():
        if line.endswith("\\n"): facts.update(json.loads(line))
    with open(path + "~", "w") as stream: stream.write(json.dumps(facts) + "\\n")
    if sync == "synced": synced(path + "~")
    os.rename(path + "~", path)
    synced(folder)
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    if not opened: first()
    opened = True
    if words == ["DUMP"]:
        print(json.dumps(facts), flush=True)
        continue
    new = {words[1] + ".left": words[2], words[1] + ".right": words[2]}
    facts |= new
    with open(path, "a") as stream:
        stream.write(json.dumps(new) + "\\n"); stream.flush(); os.fsync(stream.fileno())
    print("OK", flush=True)
"""


def _recovered(sync: str, parent: Path) -> SweepReport:
    command = (sys.executable, "-S", "-c", _STORE, sync)
    with Sweep(lambda: Lines(command, limits=Limits().scaled(20)), puts(3), parent=parent) as sweep:
        return sweep.trial(Layer.RECOVERY).report(0)


@pytest.mark.usefixtures("tracer")
def test_a_first_request_that_compacts_without_a_sync_loses_what_was_acknowledged(tmp_path: Path) -> None:
    report = _recovered("unsynced", tmp_path)
    assert {finding.verdict.kind for finding in report.findings} <= {CrashClass.LOST, CrashClass.TORN}
    assert report.findings


@pytest.mark.usefixtures("tracer")
def test_a_first_request_that_compacts_with_its_syncs_is_clean(tmp_path: Path) -> None:
    report = _recovered("synced", tmp_path)
    assert report.clean, report
    assert report.tried > 1
