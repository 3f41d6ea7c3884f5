"""Locks of another process: on all files of the store, on one database alone, and between two transactions.

An implementation may wait for a lock as long as its limits allow, and may refuse. What it answers OK is durable: in the
ways that lock one database it ends before the lock is gone, so nothing can be written behind the answer. In the others
the same process is asked again for what it has refused, and does it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.deprived import Deprived, judge_deprived, judge_overtaken
from holdfast.conformance.faults.finished import Finished
from holdfast.conformance.faults.locks import Hold, locked
from holdfast.conformance.faults.oracle import Kind, judge
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.processes import Marked
from holdfast.conformance.faults.report import RunError, Tally
from holdfast.conformance.faults.runs import read_whole
from holdfast.conformance.faults.stored import SQLITE
from holdfast.conformance.faults.subject import Op
from holdfast.conformance.faults.sweep import Sweep
from holdfast.conformance.faults.tracer import Fault


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to lock. `files` are all that there are, or one database; `op` is the operation that is overtaken."""

    text: str
    hold: Hold
    files: tuple[str, ...]
    op: Op | None = None
    is_first: bool = False
    is_killed: bool = False


def locked_out(sweep: Sweep, finished: Callable[[], Finished], tally: Tally) -> Iterator[None]:
    """Take the locks in all ways. A way counts only if a lock was taken on at least one file."""
    begun = finished()
    ways = list(_ways(begun))
    tally.total, tally.noun = len(ways), "ways"
    for number, way in enumerate(ways, start=1):
        yield
        with sweep.workspace.folder(begun.folder) as folder:
            taken, seen = _deprived(sweep, folder, begun, way)
            if not taken:
                # It did not start, holds all locks itself, or makes no second transaction.
                continue
            verdict = seen.verdict
            if verdict.kind is Kind.CLEAN:
                must, may = begun.acknowledged | seen.done, begun.acknowledged | seen.may
                verdict = judge(sweep.subject(), folder, begun.workload, must, may)
            tally.tried += 1
        ended = way.op is not None or way.is_killed
        end = "It ended before the lock was gone." if ended else "The locks were gone later."
        story = f"Another process {way.text}. {end}"
        sweep.workspace.note(tally, number, verdict, story, partial(copy, begun.folder))
    if not tally.tried:
        raise RunError("no lock could be had on any file of the store")


def _ways(begun: Finished) -> Iterator[_Way]:
    # Only files that the run has left: a file that it makes while it runs is not locked.
    every = tuple(begun.stored.sizes)
    databases = [name for name in every if _is_database(begun.folder / name)]
    # The likeliest comes first, for a layer that owes few ways.
    if databases:
        yield _Way("was about to write to the databases of the store while it ran", Hold.WRITER, every)
    yield _Way("took locks on all files of the store while it ran", Hold.ALL, every)
    yield _Way("took locks on all files of the store before it started", Hold.ALL, every, is_first=True)
    for name in databases:
        yield _Way(f"was about to write to {name} alone while it ran", Hold.WRITER, (name,), is_killed=True)
    # Only a tracer can say when one transaction ends, and keep the next one from its lock.
    for op in begun.late if not probe().tracer.reason else ():
        for name in databases:
            text = f"was about to write to {name} right behind the first transaction of {op.text.split(' ', 1)[0]}"
            yield _Way(text, Hold.WRITER, (name,), op)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _deprived(sweep: Sweep, folder: Path, begun: Finished, way: _Way) -> tuple[bool, Deprived]:
    """Whether another process held a lock, and the subject's behaviour meanwhile."""
    if way.op is not None:
        return _overtaken(sweep, folder, begun, way.op, way.files[0])
    marked, counts = Marked(folder), list[int]()

    @contextmanager
    def taking() -> Iterator[None]:
        with locked((folder / name for name in way.files if (folder / name).is_file()), way.hold) as count:
            counts.append(count)
            try:
                yield
            finally:
                if way.is_killed:
                    marked.kill_all()

    under, known = marked.under() if way.is_killed else (), begun.acknowledged
    before, after = (taking, nullcontext) if way.is_first else (nullcontext, taking)
    with before():
        seen = judge_deprived(
            sweep.subject(),
            folder,
            begun.workload,
            known,
            known,
            begun.late,
            under=under,
            taking=after,
            again=not (way.is_first or way.is_killed),
        )
    return sum(counts) > 0, seen


def _overtaken(sweep: Sweep, folder: Path, begun: Finished, op: Op, name: str) -> tuple[bool, Deprived]:
    """Whether the operation made a second transaction, and the subject's behaviour when it could not."""
    aside, out = sweep.workspace.place()
    armed = aside / "armed"

    @contextmanager
    def taking() -> Iterator[None]:
        armed.touch()
        yield

    under = Fault(overtake=(folder / name, armed)).argv(out, folder)
    workload, known = begun.workload, begun.acknowledged
    seen = judge_overtaken(sweep.traced(), folder, workload, known, op, under=under, taking=taking)
    try:
        return read_whole(out, sweep.deadline).ending.fired, seen
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        out.unlink(missing_ok=True)
