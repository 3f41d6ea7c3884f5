"""Power loss: what a store makes of each state that it may leave; within its recovery, and after a failed sync."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from conformance.faults import naming, story
from conformance.faults.model import Candidate, Plan, Stage
from conformance.faults.model import Kind as StateKind
from conformance.faults.oracle import Kind, Promises, judge
from conformance.faults.order import spread
from conformance.faults.recording import Recording, Sync
from conformance.faults.report import Finding, Tally
from conformance.faults.runs import Runs, read_whole
from conformance.faults.subject import SubjectError
from conformance.faults.tracer import Fault

# Of the states that a crash leaves, so many are the beginning of a recovery that is interrupted itself.
NESTED_STATES = 6


def losses(runs: Runs, tally: Tally) -> Iterator[None]:
    """Restarts on every state that a power loss may leave.

    Owed are those at each acknowledgement and `runs.further` ones: without the first nothing is proven.
    """
    run = runs.baseline()
    promises = run.promises
    states = _plan(runs, run.recording, promises)
    is_first = True
    tally.noun = "states"
    tally.floor = len({*promises.acknowledged.values()}) + runs.further
    for candidate in states:
        if is_first and candidate.stage is not Stage.ACKNOWLEDGED:
            # Several acknowledgements may have left the same.
            is_first, tally.floor = False, tally.tried + runs.further
        tally.total = states.count()
        tally.noun = "states at most" if states.is_estimated else "states"
        yield
        _restarted(runs, tally, candidate, promises, run.out)
        tally.tried += not candidate.again
    tally.total, tally.noun = states.count(), "states"


def nested(runs: Runs, tally: Tally) -> Iterator[None]:
    """Power losses within the recovery from some of these states, spread over the run."""
    run = runs.baseline()
    outermost = run.promises
    firsts = _plan(runs, run.recording, outermost).beginnings()
    # Recoveries differ by what there is to recover.
    step = max(1, len(firsts) // NESTED_STATES)
    done = 0
    for first in firsts[::step]:
        yield
        must, may = outermost.must(*first.numbers), outermost.may(*first.numbers)
        with runs.workspace.folder() as folder:
            first.state.write(folder)
            # A state that breaks a promise by itself says nothing of what recovers from it.
            if judge(runs.subject(), folder, runs.workload, must, may).kind is not Kind.CLEAN:
                continue
        again, out = _recovery(runs, first)
        # All of them were made before the recovery began.
        promises = Promises(dict.fromkeys(may, 0), dict.fromkeys(must, 0))
        inner = Plan(again, seed=runs.seed, acknowledgements=(), check=runs.deadline.check)
        last = first.numbers[-1]
        where = f"After a power loss at operation {last} ({first.at(last).text}), while it recovered: "
        for candidate in inner.before(Stage.PARTED):
            tally.total = done + inner.count(Stage.PARTED)
            yield
            _restarted(runs, tally, candidate, promises, out, where)
            tally.tried += not candidate.again
        done += inner.count(Stage.PARTED)
        tally.total = done
        out.unlink(missing_ok=True)


def sync_errors(runs: Runs, tally: Tally) -> Iterator[None]:
    """Runs in which one sync fails, each with a power loss behind it."""
    run = runs.baseline()
    syncs = [one.number for one in run.recording.operations if isinstance(one.action, Sync)]
    tally.total, tally.noun = len(syncs), "syncs"
    for number in spread(syncs, runs.seed):
        yield
        struck = runs.run(Fault(error=errno.EIO, at=number, once=True), whole=False)
        if struck.recording.ending.fired:
            promises = struck.promises
            what = f"Operation {number} of the recording ({naming.call(run.recording, number)}) had failed. "
            before = len(tally.findings)
            for candidate in _plan(runs, struck.recording, promises).before(Stage.ORDERED):
                if candidate.state.kind is StateKind.MINIMUM:
                    _restarted(runs, tally, candidate, promises, struck.out, what)
                    if len(tally.findings) > before:
                        break
            tally.tried += 1
        struck.remove()


def _plan(runs: Runs, recording: Recording, promises: Promises) -> Plan:
    acknowledged = promises.acknowledged.values()
    return Plan(recording, seed=runs.seed, acknowledgements=acknowledged, check=runs.deadline.check)


def _restarted(runs: Runs, tally: Tally, candidate: Candidate, promises: Promises, out: Path, prefix: str = "") -> None:
    """Restart on one state, and judge it by the promises at all points at which it is legal."""
    numbers = candidate.numbers
    with runs.workspace.folder() as folder:
        candidate.state.write(folder)
        verdict = judge(runs.subject(), folder, runs.workload, promises.must(*numbers), promises.may(*numbers))
    if verdict.kind is not Kind.CLEAN:
        kept, lost = runs.workspace.kept(tally, verdict, candidate.state.write, out)
        words = prefix + story.of_power_loss(runs.workload, promises, candidate, verdict) + lost
        marks = story.marks(promises, candidate)
        tally.findings.append(Finding(numbers[-1], verdict, words, kept, marks=marks))


def _recovery(runs: Runs, first: Candidate) -> tuple[Recording, Path]:
    """The recording of a start on this state, and its file. Raises RunError."""
    folder, out = runs.workspace.place()
    first.state.write(folder)
    subject = runs.traced()
    with suppress(SubjectError):
        # A recovery that fails by itself is a matter of the layer before this one.
        subject.start(folder, Fault().argv(out, folder))
    with suppress(SubjectError):
        subject.stop()
    recording = read_whole(out, runs.deadline)
    shutil.rmtree(folder, ignore_errors=True)
    return recording, out
