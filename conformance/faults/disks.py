"""Full disks: the work runs on memory disks that are too small for it, and is judged on one that is large enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from holdfast.conformance.faults import mounts
from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.mounts import Disk
from holdfast.conformance.faults.oracle import Kind, Verdict, judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.probe import mounting
from holdfast.conformance.faults.report import RunError, Tally
from holdfast.conformance.faults.runs import accepted
from holdfast.conformance.faults.stored import PAGE, pages
from holdfast.conformance.faults.subject import History, Outcome, SubjectError, SubjectHangError, perform
from holdfast.conformance.faults.sweep import Sweep

# A roomy disk has 4 times the pages of its content, and 16,384 pages more: 64 MiB.
_ROOMY, _ROOMY_MORE = 4, 16384
# How many sizes of disks become full. The smallest holds what is there before the work. The largest holds what is there
# after it and more, for temporary files: a quarter of what was added, or at least `_MORE_PAGES` pages.
_SIZES = 24
_MORE, _MORE_PAGES = 4, 8


def mountable() -> None:
    """Raises RunError where nothing can be mounted."""
    unable = mounting().reason
    if unable:
        raise RunError(f"NOT TESTED: {unable}")


def full(sweep: Sweep, tally: Tally) -> Iterator[None]:
    """The workload on disks of all these sizes, in the order of the seed. Raises RunError."""
    mountable()
    tally.noun = "sizes became full"
    base = sweep.workspace.base
    least = 0 if base is None else pages(base)
    needed = _roomy(sweep, _ROOMY * least + _ROOMY_MORE)
    sweep.confined()
    most = needed + max((needed - least) // _MORE, _MORE_PAGES)
    sizes = range(least + 1, most + 1, -(-(most - least) // _SIZES))
    tally.total = len(sizes)
    for number in spread(range(len(sizes)), sweep.seed):
        yield
        with sweep.workspace.begun_folder() as folder:
            history, hang = _work(sweep, folder, sizes[number])
            if history is None:
                # It has no room even for what was there before.
                continue
            whole = history.numbers(Outcome.OK) == {op.number for op in sweep.workload.ops}
            with sweep.workspace.folder(folder) as left:
                verdict = hang or judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
                story = f"Its disk had {sizes[number] * PAGE} bytes; it went on where there was room."
                sweep.workspace.note(tally, number + 1, verdict, story, partial(copy, left))
            # A disk that has room for everything at the end may never have been full. A smaller one was full, with or
            # without an answer.
            tally.tried += sizes[number] < needed or not whole or verdict.kind is not Kind.CLEAN
    if not tally.tried:
        raise RunError(
            f"no disk became full: what is there needs {least} pages of {PAGE} bytes before the work and {needed} "
            "after it; have the workload write more"
        )


def _roomy(sweep: Sweep, room: int) -> int:
    """The twin: a disk of the same kind that does not become full. Returns the pages it needs. Raises RunError."""
    with sweep.workspace.begun_folder() as folder:
        history, hang = _work(sweep, folder, room)
        if history is None or not history.asked:
            raise RunError(f"NOT TESTED: expected it to start on a disk of memory with {room * PAGE} bytes to spare")
        accepted(history)
        needed = pages(folder)
        verdict = hang or judge(sweep.subject(), folder, sweep.workload, history.must, history.may)
        if verdict.kind is not Kind.CLEAN:
            raise RunError(f"although its disk had room to spare: {verdict}")
    return needed


def _work(sweep: Sweep, folder: Path, size: int) -> tuple[History | None, Verdict | None]:
    """The workload on a disk of `size` pages with the content of this folder, which has the result afterwards.

    There is no history if the command never began. There is a verdict only on a hang.
    """
    _, mark = sweep.workspace.place()
    subject = sweep.subject()
    history, hang = History(()), ""
    try:
        subject.start(folder, mounts.argv(Disk.SMALL, folder, mark, size * PAGE))
        history = perform(subject, sweep.workload)
        hang = next((one.answer.text for one in history.asked if one.answer.hung), "")
    except SubjectHangError as error:
        hang = str(error)
    except SubjectError:
        # It does not start on a full disk, and says so loudly.
        pass
    finally:
        with suppress(SubjectError):
            subject.stop()
    if not mark.exists():
        return None, None
    expected = "an answer, or a loud failure, while its disk is full, in its time"
    return history, Verdict(Kind.UNRECOVERABLE, expected, f"it hangs: {hang}") if hang else None
