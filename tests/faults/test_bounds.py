"""What `holdfast crash` takes itself: it ends in its time, and its memory does not grow with what a store writes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.recording import (
    Ending,
    Event,
    Operation,
    ending_line,
    header_line,
    operation_line,
    read,
)
from holdfast.conformance.faults.report import (
    BrokenPromise,
    Deadline,
    Layer,
    OutOfTimeError,
    RunError,
    SweepReport,
    Tally,
    Trial,
    Work,
)
from holdfast.conformance.faults.sweep import Sweep
from tests.hostile.verify import processes_of
from tests.pace import busy

MANY = str(Path(__file__).parent / "stores" / "many.py")
# Runs a command as its only child, and says what that took: a process counts what it was forked from as well.
_MEASURE = """
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stdout.write(done.stdout)
"""


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize("mode", ["sync", "nosync"])
@pytest.mark.parametrize(("count", "seconds"), [(200, 3), pytest.param(5700, 15, marks=pytest.mark.sweep)])
def test_a_store_of_many_writes_takes_neither_the_memory_nor_the_day(
    count: int, seconds: int, mode: str, tmp_path: Path
) -> None:
    crash = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "crash", "--layer", "power", "--format", "json"]
    command = [*crash, "--seconds", str(seconds), "--", sys.executable, MANY, str(count), mode]
    began = time.monotonic()
    measured = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURE, *command], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False
    )
    kilobytes, said = measured.stdout.split("\n", 1)
    took = time.monotonic() - began
    raw = json.loads(said)
    (power,) = raw["layers"]
    # A tenth, and the start and the end of two interpreters on a busy machine.
    assert took < 1.1 * seconds + busy(10)
    # With what it was forked from; a list of all states took gigabytes.
    assert int(kilobytes) < 256 * 1024
    assert power["tried"] <= power["total"]
    assert raw["exit"] == (12 if not power["clean"] and not power["findings"] else 10 * bool(power["findings"]))


def _trial(work: Work, *, floor: int = 3, seconds: float | None = None) -> Trial:
    return Trial(Tally(Layer.KILL, seed=0, floor=floor, most=5), work, Deadline(seconds))


def _counting(total: int, *, tries: int | None = None, finds: bool = False, ends: Exception | None = None) -> Work:
    """So many tries of all that there are; then it finds something, and ends with an error."""

    def work(tally: Tally) -> Iterator[None]:
        tally.total = total
        for _ in range(total if tries is None else tries):
            yield
            tally.tried += 1
        yield
        if finds:
            tally.findings.append(BrokenPromise(1, CrashOutcome(CrashClass.LOST, "this", "that"), "So."))
            tally.tried += 1
            yield
        if ends is not None:
            raise ends

    return work


def test_a_floor_is_reached_whatever_time_it_takes_and_no_more_is_tried() -> None:
    trial = _trial(_counting(10))
    trial.go_on(0)
    assert (trial.tally.tried, trial.is_over) == (3, False)
    trial.go_on(5)
    assert (trial.tally.tried, trial.is_over) == (10, True)
    assert trial.report().clean


OVER = OutOfTimeError()


@pytest.mark.parametrize(
    ("work", "seconds", "tried", "floor", "short", "why"),
    [
        # All that there are is enough.
        (_counting(2), None, 2, 2, 0, None),
        # Behind the end of the time nothing is tried, and the floor is missed.
        (_counting(10), 0, 0, 3, 3, "a pass needs 3"),
        # A try that is cut off is none.
        (_counting(5, tries=1, ends=OVER), None, 1, 3, 2, "a pass needs 3"),
        # All tries without the check after them are no pass, and no shortage of tries.
        (_counting(1, ends=OVER), None, 1, 1, 0, "the checks after the last one were not made"),
        # What proves nothing says its own reason alone.
        (_counting(1, tries=0, ends=RunError("it does not start")), None, 0, 1, 0, "it does not start"),
    ],
)
def test_a_pass_is_all_that_is_owed_and_what_lacks_is_said(
    work: Work, seconds: float | None, tried: int, floor: int, short: int, why: str | None
) -> None:
    report = _trial(work, seconds=seconds).report(5)
    assert (report.tried, report.floor, report.short, report.clean) == (tried, floor, short, why is None)
    assert [words[-len(why or "") :] for words in report.unproven] == ([] if why is None else [why])


def test_what_was_found_before_the_time_ended_stays() -> None:
    report = _trial(_counting(5, tries=1, finds=True, ends=OVER)).report()
    assert [one.verdict.kind for one in report.findings] == [CrashClass.LOST]
    assert not report.clean


def test_a_store_that_is_waited_for_is_ended_with_the_time_and_not_accused(tmp_path: Path) -> None:
    program = "import time; print('READY', flush=True); time.sleep(300)"
    subject = Lines((sys.executable, "-c", program), deadline=Deadline(1.5))
    subject.start(tmp_path)
    began = time.monotonic()
    with pytest.raises(OutOfTimeError):
        subject.submit(puts(1).ops[0])
    with pytest.raises(OutOfTimeError):
        subject.stop()
    assert time.monotonic() - began < busy(5)
    assert processes_of(tmp_path) == []
    with pytest.raises(OutOfTimeError):
        subject.start(tmp_path)


@pytest.mark.usefixtures("tracer")
def test_a_layer_that_the_time_cuts_off_leaves_no_folder(tmp_path: Path) -> None:
    deadline = Deadline(1)
    command = (sys.executable, "-c", "import time; time.sleep(300)")
    with Sweep(lambda: Lines(command, deadline=deadline), puts(2), parent=tmp_path, deadline=deadline) as sweep:
        report: SweepReport = sweep.trial(Layer.POWER).report(60)
    assert (report.tried, report.clean) == (0, False)
    assert list(tmp_path.iterdir()) == []


def test_the_operations_of_a_recording_stay_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    every = [Operation(number, 10 * number, 1, "write", Event("pipe:1", number)) for number in range(1, 6)]
    path.write_text("".join([header_line(["x"], ()), *map(operation_line, every), ending_line(Ending(0))]))
    asked: list[int] = []
    recording = read(path, lambda: asked.append(1))
    path.unlink()
    assert list(recording.operations) == every
    assert recording.operations[1:3] == every[1:3]
    assert recording.operations[-1] == every[-1]
    assert len(asked) >= 5
