"""Kills or stops the processes that an implementation starts and depends on, such as its database, while it works.

Or kills all of it, at moments that the protocol knows, where a process may not trace its own children. That is a weaker
layer: it needs nothing but signals, and can only say no. Between two of its moments lie hundreds of operations that
were not observed, and what was never synced survives it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.deprived import judge_running
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.processes import Marked
from holdfast.conformance.faults.report import Layer, RunError, SweepReport, Tally
from holdfast.conformance.faults.runs import accepted
from holdfast.conformance.faults.subject import Asked, History, Outcome, Subject, SubjectError
from holdfast.conformance.faults.sweep import Sweep

# While they are stopped, every answer may take its whole limit. So only few are asked for, and few runs are tried.
_ASKED_STOPPED, _LEAST_STOPPED = 2, 1
# Into how many parts the time of an operation is cut: at each cut it is killed once.
_PARTS = 4
_NONE = "does not apply: it starts no process of its own"
# Where nothing could be recorded, a hidden process may have been missed.
_NONE_FOUND = (
    "does not apply: no process of its own was found, by its environment, its parent and its open files alone, as "
    "nothing can be recorded here"
)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The moment of the strike: `delay` seconds after an operation was sent, or next to it, as `where` says."""

    op: int
    delay: float | None
    where: str = "before"

    def __str__(self) -> str:
        where = f"operation {self.op}"
        return f"{self.where} {where}" if self.delay is None else f"{self.delay * 1000:.1f} ms into {where}"


def killed(sweep: Sweep, took: Callable[[], Mapping[int, float]], tally: Tally) -> Iterator[None]:
    """SIGKILL to all of them; `took` is what `undisturbed` found. Raises RunError, OSError."""
    return _strike(sweep, tally, took, Marked.kill)


def stopped(sweep: Sweep, took: Callable[[], Mapping[int, float]], tally: Tally) -> Iterator[None]:
    """SIGSTOP to all of them, and SIGCONT after some operations. Raises RunError, OSError."""
    tally.floor = min(tally.floor, _LEAST_STOPPED)
    return _strike(sweep, tally, took, Marked.stop)


def kills_by_signal(sweep: Sweep, seconds: float) -> SweepReport:
    """SIGKILL to all of its processes, after each operation and in the middle of them, for `seconds`."""
    return sweep.trial(Layer.SIGNALS, partial(_by_signal, sweep)).report(seconds)


def _by_signal(sweep: Sweep, tally: Tally) -> Iterator[None]:
    moments: list[_Moment] = []
    with sweep.workspace.begun_folder() as folder:
        took, _, _ = _times(sweep, folder)
    for op, spent in took.items():
        moments += [_Moment(op, spent * part / _PARTS) for part in range(_PARTS)]
        moments.append(_Moment(op, None, "right after"))
    sweep.confined()
    sweep.control()
    tally.total, tally.noun = len(moments), "moments"
    for number in spread(range(len(moments)), sweep.seed):
        yield
        with sweep.workspace.begun_folder() as folder:
            with _run(sweep, folder, moments[number], Marked.kill_all, 1) as run:
                history = run.history
            tally.tried += 1
            _judged(sweep, tally, number, folder, history, f"It was killed by a signal {moments[number]}.")


def _judged(
    sweep: Sweep,
    tally: Tally,
    number: int,
    folder: Path,
    history: History,
    story: str,
    verdict: CrashOutcome | None = None,
) -> None:
    """Judge what was left, unless it was already, and note it. The judge uses the folder up."""
    with sweep.workspace.folder(folder) as left:
        verdict = verdict or judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
        sweep.workspace.note(tally, number + 1, verdict, story, partial(copy, left))


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
            most = _ASKED_STOPPED if how is Marked.stop else len(took)
            with _run(sweep, folder, moments[number], how, most) as run:
                verdict, history = _while_struck(sweep, run) if run.count else None, run.history
            if run.count:
                tally.tried += 1
                struck = "process that it had started was" if run.count == 1 else "processes that it had started were"
                _judged(
                    sweep, tally, number, folder, history, f"{run.count} {struck} {word} {moments[number]}.", verdict
                )
    if not tally.tried:
        raise RunError("the processes that it starts were gone at every moment at which they were to be struck")


def _none(sweep: Sweep) -> str:
    """A text that there is none, where none was found. Raises RunError where a recording shows one."""
    if not sweep.recorded and probe().tracer:
        return _NONE_FOUND
    count = sweep.beside()
    if count:
        word = "process" if count == 1 else "processes"
        raise RunError(
            f"it had {count} {word} beside itself while it was recorded, and none of them was found when they were to "
            "be struck; have it leave them their environment or their parent"
        )
    return _NONE


def _times(sweep: Sweep, folder: Path) -> tuple[dict[int, float], int, History]:
    """The seconds of each operation in a fault-free run, and how many processes it had started. Raises RunError."""
    took: dict[int, float] = {}
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
        history = History(tuple(asked))
        accepted(history)
        subject.stop()
    except SubjectError as error:
        raise RunError(f"expected it to start, work and stop while nothing goes wrong, got: {error}") from error
    finally:
        _end(marked, subject)
    return took, count, history


def undisturbed(sweep: Sweep) -> dict[int, float]:
    """The seconds of each operation in a fault-free run; empty for a subject that starts no process.

    Raises RunError.
    """
    with sweep.workspace.begun_folder() as folder:
        took, count, history = _times(sweep, folder)
        verdict = judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
        if verdict.kind is not CrashClass.CLEAN:
            raise RunError(f"although nothing went wrong: {verdict}")
    sweep.confined()
    return took if count else {}


@dataclass(slots=True)
class _Run:
    """A run that was struck: `count` processes were; `history` is what was sent until the end."""

    subject: Subject
    marked: Marked
    history: History
    count: int = 0


@contextmanager
def _run(sweep: Sweep, folder: Path, moment: _Moment, how: Callable[[Marked], int], most: int) -> Iterator[_Run]:
    """The workload with the processes struck at this moment, and at most `most` operations from then on.

    It goes on for as long as the context lasts. Raises RunError, OSError.
    """
    marked, subject = Marked(folder), sweep.subject()
    run = _Run(subject, marked, History(()))
    asked: list[Asked] = []
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
            # Known while all of it runs: found anew, it would take longer than an operation does.
            marked.dependencies()
            timer = threading.Timer(moment.delay or 0.0, strike)
            is_struck = op.number == moment.op
            if is_struck and moment.delay is not None:
                timer.start()
            elif is_struck and moment.where == "before":
                strike()
            try:
                asked.append(Asked(op, subject.submit(op)))
            finally:
                if timer.ident is not None:
                    timer.join()
            if is_struck and moment.delay is None and moment.where != "before":
                strike()
            if asked[-1].answer.outcome is Outcome.SILENT:
                break
        if failed:
            raise failed[0]
        run.history = History(tuple(asked))
        yield run
    except SubjectError as error:
        raise RunError(f"expected it to start as it did before, got: {error}") from error
    finally:
        _end(marked, subject)


def _while_struck(sweep: Sweep, run: _Run) -> CrashOutcome | None:
    """What it does meanwhile, if that is wrong. Raises RunError where it may be struck itself."""
    hang = next((one.answer.text for one in run.history.asked if one.answer.hung), "")
    if hang:
        expected = "an answer, a refusal or an error, in its time"
        verdict = CrashOutcome(CrashClass.UNRECOVERABLE, expected, f"it hangs: {hang}")
    else:
        verdict = judge_running(run.subject, sweep.workload, run.history.must, run.history.may)
    # If it is stopped itself, its hang means nothing.
    if verdict.kind is CrashClass.UNRECOVERABLE and run.marked.one_reads_the_requests():
        raise RunError(
            "one of the processes that it started reads its requests, so that nothing shows which of them is the "
            "implementation and which its help; have the command start it by exec"
        )
    return None if verdict.kind is CrashClass.CLEAN else verdict


def _end(marked: Marked, subject: Subject) -> None:
    """End all processes, even if a subject's helpers keep it from ending."""
    marked.go_on()
    try:
        with suppress(SubjectError):
            subject.stop()
    finally:
        marked.kill()
