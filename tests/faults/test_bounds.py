"""What `holdfast crash` takes itself: it ends in its time, and its memory does not grow with what a store writes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.conformance.faults.deadline import Deadline, OutOfTimeError
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
from holdfast.conformance.faults.report import BrokenPromise, Layer, RunError, SweepReport, Tally, Trial, Work
from holdfast.conformance.faults.sweep import Sweep
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
    pipe = os.popen(
        " ".join([f"cd {tmp_path} && exec", *map(_quoted, [sys.executable, "-S", "-c", _MEASURE, *command])])
    )
    with pipe:
        kilobytes, said = pipe.read().split("\n", 1)
    took = time.monotonic() - began
    raw = json.loads(said)
    (power,) = raw["layers"]
    # A tenth, and the start and the end of two interpreters on a busy machine.
    assert took < 1.1 * seconds + busy(10)
    # With what it was forked from; a list of all states took gigabytes.
    assert int(kilobytes) < 256 * 1024
    assert power["tried"] <= power["total"]
    assert raw["exit"] == (12 if not power["clean"] and not power["findings"] else 10 * bool(power["findings"]))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _trial(work: Work, *, floor: int = 3, seconds: float | None = None) -> Trial:
    return Trial(Tally(Layer.KILL, seed=0, floor=floor, most=5), work, Deadline(seconds))


def _counting(total: int) -> Work:
    def work(tally: Tally) -> Iterator[None]:
        tally.total = total
        for _ in range(total):
            yield
            tally.tried += 1

    return work


def test_a_floor_is_reached_whatever_time_it_takes_and_no_more_is_tried() -> None:
    trial = _trial(_counting(10))
    trial.go_on(0)
    assert (trial.tally.tried, trial.is_over) == (3, False)
    trial.go_on(5)
    assert (trial.tally.tried, trial.is_over) == (10, True)
    assert trial.report().clean


def test_all_that_there_are_is_enough() -> None:
    report = _trial(_counting(2)).report()
    assert (report.tried, report.floor, report.short, report.clean) == (2, 2, 0, True)


def test_behind_the_end_of_the_time_nothing_is_tried_and_the_floor_is_missed() -> None:
    report = _trial(_counting(10), seconds=0).report(5)
    assert (report.tried, report.floor, report.short, report.clean) == (0, 3, 3, False)
    assert "a pass needs 3" in report.unproven[0]


def test_a_try_that_is_cut_off_is_none() -> None:
    def work(tally: Tally) -> Iterator[None]:
        tally.total = 5
        yield
        tally.tried += 1
        yield
        raise OutOfTimeError

    report = _trial(work).report()
    assert (report.tried, report.short, report.clean) == (1, 2, False)


def test_all_tries_without_the_check_after_them_are_no_pass_and_no_shortage_of_tries() -> None:
    def work(tally: Tally) -> Iterator[None]:
        tally.total = 1
        yield
        tally.tried += 1
        yield
        raise OutOfTimeError

    report = _trial(work).report()
    assert (report.tried, report.total, report.short, report.clean) == (1, 1, 0, False)
    assert "a pass needs" not in report.unproven[0]


def test_what_was_found_before_the_time_ended_stays() -> None:
    def work(tally: Tally) -> Iterator[None]:
        tally.total = 5
        yield
        tally.findings.append(BrokenPromise(1, CrashOutcome(CrashClass.LOST, "this", "that"), "So."))
        tally.tried += 1
        yield
        raise OutOfTimeError

    report = _trial(work).report()
    assert [one.verdict.kind for one in report.findings] == [CrashClass.LOST]
    assert not report.clean


def test_what_proves_nothing_says_its_own_reason_alone() -> None:
    def work(tally: Tally) -> Iterator[None]:
        yield
        raise RunError("it does not start")

    report = _trial(work).report()
    assert (report.unproven, report.short) == (("it does not start",), 0)


def test_a_store_that_is_waited_for_is_ended_with_the_time_and_not_accused(tmp_path: Path) -> None:
    mark = f"holdfast-{os.getpid()}-waits"
    program = f"import sys, time; sys.argv.append({mark!r}); print('READY', flush=True); time.sleep(300)"
    subject = Lines((sys.executable, "-c", program, mark), deadline=Deadline(1.5))
    subject.start(tmp_path)
    began = time.monotonic()
    with pytest.raises(OutOfTimeError):
        subject.submit(puts(1).ops[0])
    with pytest.raises(OutOfTimeError):
        subject.stop()
    assert time.monotonic() - began < busy(5)
    assert not [one for one in Path("/proc").glob("[0-9]*/cmdline") if mark in _text(one)]
    with pytest.raises(OutOfTimeError):
        subject.start(tmp_path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="latin-1")
    except OSError:
        return ""


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
