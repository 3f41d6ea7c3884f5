"""Kills or stops the processes that an implementation starts and depends on, such as its database, while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.deprived import judge_running
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.processes import Marked
from holdfast.conformance.faults.report import RunError, Tally
from holdfast.conformance.faults.runs import accepted
from holdfast.conformance.faults.subject import Asked, History, Op, Outcome, SubjectAnswer, SubjectError
from holdfast.conformance.faults.sweep import Sweep

# While they are stopped, every answer may take its whole limit. So only few are asked for, and few runs are tried.
_ASKED_STOPPED, _LEAST_STOPPED = 2, 1
_CLEAN = CrashOutcome(CrashClass.CLEAN)
_NONE = "does not apply: it starts no process of its own"
# Where nothing could be recorded, a hidden process may have been missed.
_NONE_FOUND = (
    "does not apply: no process of its own was found, by its environment, its parent and its open files alone, as "
    "nothing can be recorded here"
)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The moment of the strike: before an operation, or `delay` seconds after it was sent."""

    op: int
    delay: float | None

    def __str__(self) -> str:
        where = f"before operation {self.op}"
        return where if self.delay is None else f"{self.delay * 1000:.1f} ms into operation {self.op}"


@dataclass(slots=True)
class _Struck:
    """The outcome of a run. `count` processes were struck; `asked` is what was sent until the end."""

    count: int = 0
    asked: list[Asked] = field(default_factory=list)
    verdict: CrashOutcome = _CLEAN
    doubtful: bool = False


def killed(sweep: Sweep, took: Callable[[], Mapping[int, float]], tally: Tally) -> Iterator[None]:
    """SIGKILL to all of them; `took` is what `undisturbed` found. Raises RunError, OSError."""
    return _strike(sweep, tally, took, Marked.kill)


def stopped(sweep: Sweep, took: Callable[[], Mapping[int, float]], tally: Tally) -> Iterator[None]:
    """SIGSTOP to all of them, and SIGCONT after some operations. Raises RunError, OSError."""
    tally.floor = min(tally.floor, _LEAST_STOPPED)
    return _strike(sweep, tally, took, Marked.stop)


def _strike(
    sweep: Sweep, tally: Tally, undisturbed: Callable[[], Mapping[int, float]], how: Callable[[Marked], int]
) -> Iterator[None]:
    tally.noun = "moments"
    took = undisturbed()
    word = "stopped" if how is Marked.stop else "killed"
    if not took:
        tally.beside = _none(sweep)
        tally.notes = f": {tally.beside}"
        return
    moments = [_Moment(op, None) for op in took]
    # At a moment in the middle of it.
    moments += [_Moment(op, spent * (number + 1) / (len(took) + 1)) for number, (op, spent) in enumerate(took.items())]
    tally.total = len(moments)
    for number in spread(range(len(moments)), sweep.seed):
        yield
        with sweep.workspace.begun_folder() as folder:
            run = _run(sweep, folder, moments[number], how, _ASKED_STOPPED if how is Marked.stop else len(took))
            if not run.count:
                continue
            if run.doubtful:
                raise RunError(
                    "one of the processes that it started reads its requests, so that nothing shows which of them is "
                    "the implementation and which its help; have the command start it by exec"
                )
            with sweep.workspace.folder(folder) as left:
                history = History(tuple(run.asked))
                verdict = run.verdict
                if verdict.kind is CrashClass.CLEAN:
                    verdict = judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
                tally.tried += 1
                struck = "process that it had started was" if run.count == 1 else "processes that it had started were"
                story = f"{run.count} {struck} {word} {moments[number]}."
                sweep.workspace.note(tally, number + 1, verdict, story, partial(copy, left))
    if not tally.tried:
        raise RunError("the processes that it starts were gone at every moment at which they were to be struck")


def _none(sweep: Sweep) -> str:
    """A text that there is none, where none was found. Raises RunError where a recording shows one."""
    if not sweep.recorded and probe().tracer.reason:
        return _NONE_FOUND
    count = sweep.beside()
    if count:
        word = "process" if count == 1 else "processes"
        raise RunError(
            f"it had {count} {word} beside itself while it was recorded, and none of them was found when they were to "
            "be struck; have it leave them their environment or their parent"
        )
    return _NONE


def undisturbed(sweep: Sweep) -> dict[int, float]:
    """The seconds of each operation in a fault-free run; empty for a subject that starts no process.

    Raises RunError.
    """
    took: dict[int, float] = {}
    count = 0
    with sweep.workspace.begun_folder() as folder:
        marked, subject = Marked(folder), sweep.subject()
        asked: list[Asked] = []
        try:
            subject.start(folder, marked.under())
            count = len(marked.dependencies())
            for op in sweep.workload.ops:
                began = time.monotonic()
                asked.append(Asked(op, subject.submit(op)))
                took[op.number] = time.monotonic() - began
                count += len(marked.dependencies())
            accepted(History(tuple(asked)))
            subject.stop()
        except SubjectError as error:
            raise RunError(f"expected it to start, work and stop while nothing goes wrong, got: {error}") from error
        finally:
            _end(marked, subject.stop)
        history = History(tuple(asked))
        verdict = judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
        if verdict.kind is not CrashClass.CLEAN:
            raise RunError(f"although nothing went wrong: {verdict}")
    sweep.confined()
    return took if count else {}


def _run(sweep: Sweep, folder: Path, moment: _Moment, how: Callable[[Marked], int], most: int) -> _Struck:
    """The workload with the processes struck at this moment, and at most `most` later operations. Raises OSError."""
    run = _Struck()
    marked, subject = Marked(folder), sweep.subject()
    failed: list[OSError] = []

    def strike() -> None:
        try:
            run.count = how(marked)
        except OSError as error:
            failed.append(error)

    try:
        subject.start(folder, marked.under())
        for op in sweep.workload.ops:
            if op.number >= moment.op + most:
                break
            marked.dependencies()
            answer = _asked(subject.submit, op, strike if op.number == moment.op else None, moment.delay)
            run.asked.append(Asked(op, answer))
            if answer.outcome is Outcome.SILENT:
                break
        if failed:
            raise failed[0]
        history = History(tuple(run.asked))
        hang = next((one.answer.text for one in run.asked if one.answer.hung), "")
        if hang:
            expected = "an answer, a refusal or an error, in its time"
            run.verdict = CrashOutcome(CrashClass.UNRECOVERABLE, expected, f"it hangs: {hang}")
        else:
            run.verdict = judge_running(subject, sweep.workload, history.must, history.may)
        # It is stopped itself, so that its hang means nothing.
        run.doubtful = run.verdict.kind is CrashClass.UNRECOVERABLE and marked.one_reads_the_requests()
    except SubjectError as error:
        raise RunError(f"expected it to start as it did before, got: {error}") from error
    finally:
        _end(marked, subject.stop)
    return run


def _asked(
    submit: Callable[[Op], SubjectAnswer], op: Op, strike: Callable[[], None] | None, delay: float | None
) -> SubjectAnswer:
    if strike is None:
        return submit(op)
    if delay is None:
        strike()
        return submit(op)
    timer = threading.Timer(delay, strike)
    timer.start()
    try:
        return submit(op)
    finally:
        timer.join()


def _end(marked: Marked, stop: Callable[[], None]) -> None:
    """End all processes, even if a subject's helpers keep it from ending."""
    marked.go_on()
    try:
        with suppress(SubjectError):
            stop()
    finally:
        marked.kill()
