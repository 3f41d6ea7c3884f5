"""Kills by signals at moments that the protocol knows, where a process may not trace its own children.

A weaker layer: it needs nothing but signals, and can only say no. Between two of its moments lie hundreds of operations
that was not observed, and what was never synced survives it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.oracle import judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.processes import Marked
from holdfast.conformance.faults.report import Layer, RunError, SweepReport, Tally
from holdfast.conformance.faults.runs import accepted
from holdfast.conformance.faults.subject import Asked, History, Outcome, SubjectError
from holdfast.conformance.faults.sweep import Sweep

# Into how many parts the time of an operation is cut: at each cut it is killed once.
_PARTS = 4


@dataclass(frozen=True, slots=True)
class _Moment:
    """Right after the operation was answered, or `delay` seconds after it was sent."""

    op: int
    delay: float | None

    def __str__(self) -> str:
        where = f"operation {self.op}"
        return f"right after {where}" if self.delay is None else f"{self.delay * 1000:.1f} ms into {where}"


def kills_by_signal(sweep: Sweep, seconds: float) -> SweepReport:
    """SIGKILL to all of its processes, after each operation and in the middle of them, for `seconds`."""
    return sweep.trial(Layer.SIGNALS, partial(_strike, sweep)).report(seconds)


def _strike(sweep: Sweep, tally: Tally) -> Iterator[None]:
    moments: list[_Moment] = []
    for op, took in _undisturbed(sweep).items():
        moments += [_Moment(op, took * part / _PARTS) for part in range(_PARTS)]
        moments.append(_Moment(op, None))
    sweep.confined()
    sweep.control()
    tally.total, tally.noun = len(moments), "moments"
    for number in spread(range(len(moments)), sweep.seed):
        yield
        with sweep.workspace.begun_folder() as folder:
            history = _killed(sweep, folder, moments[number])
            # The judge uses the folder up.
            with sweep.workspace.folder(folder) as left:
                verdict = judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
                tally.tried += 1
                story = f"It was killed by a signal {moments[number]}."
                sweep.workspace.note(tally, number + 1, verdict, story, partial(copy, left))


def _undisturbed(sweep: Sweep) -> dict[int, float]:
    """How many seconds each operation takes while nothing goes wrong. Raises RunError."""
    took: dict[int, float] = {}
    asked: list[Asked] = []
    with sweep.workspace.begun_folder() as folder:
        subject = sweep.subject()
        try:
            subject.start(folder)
            for op in sweep.workload.ops:
                began = time.monotonic()
                asked.append(Asked(op, subject.submit(op)))
                took[op.number] = time.monotonic() - began
            accepted(History(tuple(asked)))
        except SubjectError as error:
            raise RunError(f"expected it to start while nothing goes wrong, got: {error}") from error
        finally:
            with suppress(SubjectError):
                subject.stop()
    return took


def _killed(sweep: Sweep, folder: Path, moment: _Moment) -> History:
    """What was asked until it was killed, and the answers. Raises RunError, OSError."""
    marked, subject = Marked(folder), sweep.subject()
    asked: list[Asked] = []
    failed: list[OSError] = []

    def kill() -> None:
        try:
            marked.kill_all()
        except OSError as error:
            failed.append(error)

    try:
        subject.start(folder, marked.under())
        # Known while all of it runs: found anew, it would take longer than an operation does.
        marked.dependencies()
        for op in sweep.workload.ops:
            timer = None
            if op.number == moment.op and moment.delay is not None:
                timer = threading.Timer(moment.delay, kill)
                timer.start()
            asked.append(Asked(op, subject.submit(op)))
            if timer is not None:
                timer.join()
            if op.number == moment.op or asked[-1].answer.outcome is Outcome.SILENT:
                break
        if moment.delay is None:
            kill()
        if failed:
            raise failed[0]
    except SubjectError as error:
        raise RunError(f"expected it to start as it did before, got: {error}") from error
    finally:
        with suppress(SubjectError):
            subject.stop()
        marked.kill()
    return History(tuple(asked))
