"""The layers that take away what an implementation works on: its files, its disk, the processes it depends on.

Each begins with the state that a fault-free run has left. While a part is away, the implementation may refuse and fail
loudly, but what it shows has to be true. After the part is back, everything that was acknowledged is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from enum import Enum, unique
from functools import partial
from pathlib import Path

from holdfast.conformance.faults import mounts, stored
from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.deprived import Deprived, during, judge_deprived, judge_overtaken, older
from holdfast.conformance.faults.helpers import killed, stopped, undisturbed
from holdfast.conformance.faults.locks import Hold, locked
from holdfast.conformance.faults.mounts import Disk
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.probe import mounting, probe
from holdfast.conformance.faults.processes import Marked
from holdfast.conformance.faults.report import Layer, RunError, Tally, Trial, Work
from holdfast.conformance.faults.runs import accepted, in_order, read_whole
from holdfast.conformance.faults.stored import PAGE, SQLITE, Stored, Variant, pages
from holdfast.conformance.faults.subject import History, Op, Outcome, SubjectError, SubjectHangError, Workload, perform
from holdfast.conformance.faults.sweep import Sweep
from holdfast.conformance.faults.tracer import Injection

# The start state of the layers


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the workload without what is kept for the time while a part is away: its last operation, or `later`.

    `workload` is `Workload.begun`.

    `served`: processes that it started keep the files, as a database server does. A single file is then that server's
    business, which may have no checksum for it; so only all of them at once are taken away.
    """

    folder: Path
    workload: Workload
    acknowledged: frozenset[int]
    late: tuple[Op, ...]
    stored: Stored
    served: bool


# Locks of another process: on all files of the store, on one database alone, and between two transactions. An
# implementation may wait for a lock as long as its limits allow, and may refuse. What it answers OK is durable: in the
# ways that lock one database it ends before the lock is gone, so nothing can be written after the answer. In the others
# the same process is asked again for what it has refused, and does it.


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
            if verdict.kind is CrashClass.CLEAN:
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
    for op in begun.late if not probe().tracer else ():
        for name in databases:
            text = f"was about to write to {name} right after the first transaction of {op.text.split(' ', 1)[0]}"
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

    under = Injection(overtake=(str(folder / name), str(armed))).argv(out, folder)
    workload, known = begun.workload, begun.acknowledged
    seen = judge_overtaken(sweep.traced(), folder, workload, known, op, under=under, taking=taking)
    try:
        return read_whole(out, sweep.deadline).ending.fired, seen
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        out.unlink(missing_ok=True)


# Full disks: the work runs on memory disks that are too small for it, and is judged on one that is large enough

# A roomy disk has 4 times the pages of its content, and 16,384 pages more: 64 MiB.
_ROOMY, _ROOMY_MORE = 4, 16384
# How many sizes of disks become full. The smallest holds what is there before the work. The largest holds what is there
# after it and more, for temporary files: a quarter of what was added, or at least `_MORE_PAGES` pages.
_SIZES = 24
_MORE, _MORE_PAGES = 4, 8


def mountable() -> None:
    """Raises RunError where nothing can be mounted."""
    unable = mounting()
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
            tally.tried += sizes[number] < needed or not whole or verdict.kind is not CrashClass.CLEAN
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
        if verdict.kind is not CrashClass.CLEAN:
            raise RunError(f"although its disk had room to spare: {verdict}")
    return needed


def _work(sweep: Sweep, folder: Path, size: int) -> tuple[History | None, CrashOutcome | None]:
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
    return history, CrashOutcome(CrashClass.UNRECOVERABLE, expected, f"it hangs: {hang}") if hang else None


@unique
class Promise(Enum):
    """What a store promises about bytes that were damaged behind its back.

    Detects: it fails loudly. Never wrong: it may come back to an older state, as a log does whose damaged tail looks
    torn, but shows no wrong value and nothing by half.
    """

    DETECTS = "damage is detected"
    NEVER_WRONG = "never a wrong value"


@unique
class Made(Enum):
    """Who makes the store. What is gone altogether cannot be told from a first start by one that makes its own."""

    BY_OTHERS = "by others"
    BY_ITSELF = "by itself"


class Dependencies:
    """The layers against one implementation, in the folders of its sweep. They need no tracer."""

    def __init__(self, sweep: Sweep, *, promise: Promise = Promise.NEVER_WRONG, made: Made = Made.BY_ITSELF) -> None:
        self._sweep, self._promise, self._made = sweep, promise, made
        # What a second session can be the first to do is kept for the time while something is away.
        self._workspace, self._workload, self._seed = sweep.workspace, sweep.workload.begun, sweep.seed
        self._finished: Finished | None = None
        self._took: dict[int, float] | None = None

    def trial(self, layer: Layer) -> Trial:
        """A layer, which gets its time from the caller."""
        works: Mapping[Layer, Work] = {
            Layer.MISSING: partial(self._take, stored.missing),
            Layer.TRUNCATED: partial(self._take, stored.truncated),
            Layer.CORRUPT: partial(self._take, partial(stored.corrupt, seed=self._seed)),
            Layer.FOREIGN: partial(self._take, stored.foreign),
            Layer.DAMAGE: partial(self._take, partial(stored.damages, seed=self._seed)),
            Layer.LOST_RUNNING: self._lost_running,
            Layer.LOCKED: partial(locked_out, self._sweep, self.finished),
            Layer.READ_ONLY: self._read_only,
            Layer.FULL: partial(full, self._sweep),
            Layer.DOWN: partial(killed, self._sweep, self._undisturbed),
            Layer.SLOW: partial(stopped, self._sweep, self._undisturbed),
        }
        return self._sweep.trial(layer, works[layer])

    @property
    def begun(self) -> bool:
        """Whether the start state of all layers but the last three exists."""
        return self._finished is not None

    def finished(self) -> Finished:
        """The start state of all layers but the last three; made once. Raises RunError."""
        if self._finished is None:
            workload = self._workload
            ops, later = workload.ops, workload.later
            first, late = (ops, later) if later else (ops[:-1], ops[-1:])
            if not first:
                raise RunError("expected a workload of two operations or more: one before something is away, one while")
            folder, _ = self._workspace.begun()
            subject, marked = self._sweep.subject(), Marked(folder)
            with in_order(subject, "while nothing is away"):
                subject.start(folder, marked.under())
                served = marked.keep_files()
                history = perform(subject, Workload(first, late[0], workload.before))
                accepted(history)
                subject.stop()
            self._sweep.confined()
            found = stored.stored(folder, self._workspace.base, self._sweep.scratch, self._seed)
            if not found.chosen:
                raise RunError("it keeps nothing in its work directory; have it keep everything there")
            if served:
                found = replace(found, chosen=())
            done = Finished(folder, workload, history.must, late, found, served)
            # The twin of every refusal: the same folder with nothing taken away.
            with self._workspace.folder(folder) as whole:
                verdict = self._judged(whole, done.acknowledged, done.acknowledged)
            if verdict.kind is not CrashClass.CLEAN:
                raise RunError(f"although nothing was away: {verdict}")
            self._finished = done
        return self._finished

    def _undisturbed(self) -> dict[int, float]:
        if self._took is None:
            self._took = undisturbed(self._sweep)
        return self._took

    def _judged(self, folder: Path, must: Set[int], may: Set[int]) -> CrashOutcome:
        return judge(self._sweep.subject(), folder, self._workload, must, may)

    def _take(self, variants: Callable[[Stored], Iterable[Variant]], tally: Tally) -> Iterator[None]:
        """Take files away in all these ways."""
        begun = self.finished()
        every = [one for one in variants(begun.stored) if one.changes(begun.folder)]
        tally.total, tally.noun = len(every), "variants"
        if begun.served:
            tally.notes = "; all files at once, as processes that it started keep them"
        if begun.served and not every:
            tally.beside = "does not apply: processes that it started keep its files"
        notes = tally.notes
        mild = 0
        for number in self._ordered(every):
            yield
            variant = every[number]
            owed = self._owed(tally.layer, variant, begun)
            with self._workspace.folder(begun.folder) as folder:
                variant.apply(folder)
                verdict = self._without(tally.layer, folder, variant, owed)
            story = f"While it did not run, {variant.text}."

            def state(into: Path, variant: Variant = variant) -> None:
                copy(begun.folder, into)
                variant.apply(into)

            tally.tried += 1
            mild += not owed
            if mild:
                tally.notes = f"{notes}; in {mild} of them an older state counts as right"
            self._workspace.note(tally, number + 1, verdict, story, state)

    def _ordered(self, every: Sequence[Variant]) -> list[int]:
        """First the ways that take all files, then the others in the order of the seed."""
        return sorted(spread(range(len(every)), self._seed), key=lambda one: len(every[one].files) == 1)

    def _owed(self, layer: Layer, variant: Variant, begun: Finished) -> frozenset[int]:
        """What it has to show if it shows anything: everything, or nothing where an older state is right."""
        if begun.stored.empty_without(variant):
            # An implementation that makes its own store does so at the first start, and this state resembles it.
            strict = self._made is Made.BY_OTHERS
        else:
            strict = (
                self._promise is Promise.DETECTS
                or layer in (Layer.MISSING, Layer.FOREIGN)
                or (self._made is Made.BY_OTHERS and variant.empties(begun.folder, self._workspace.base))
            )
        return begun.acknowledged if strict else frozenset()

    def _without(self, layer: Layer, folder: Path, variant: Variant, owed: frozenset[int]) -> CrashOutcome:
        """Its behaviour without the files, and with the files again."""
        begun = self.finished()
        subject = self._sweep.subject()
        seen = judge_deprived(subject, folder, self._workload, owed, begun.acknowledged, begun.late)
        if seen.verdict.kind is not CrashClass.CLEAN:
            return seen.verdict
        if seen.done & {op.number for op in begun.late}:
            if seen.shown is not None:
                # It worked without the files, and continues to do so.
                left = older(self._workload, seen.shown, owed)
                must = owed | seen.reported
                return during("going on without them", judge(self._sweep.subject(), folder, left, must, must))
            if layer is not Layer.MISSING and not variant.is_as_left(folder, begun.folder):
                # It wrote on damaged files that it does not show: the restored files would lie beside that.
                return seen.verdict
        if seen.shown is not None and not owed:
            # It came back to an older state, and may have removed files that a newer one needs.
            return seen.verdict
        variant.undo(folder, begun.folder)
        verdict = self._judged(folder, begun.acknowledged | seen.done, begun.acknowledged | seen.may)
        return during("once they were put back as they had been", verdict)

    def _lost_running(self, tally: Tally) -> Iterator[None]:
        """Take files away under the running process, which may go on with what it has open, or refuse loudly.

        What it does later is not judged: it may have written to a file that has no name any more.
        """
        begun = self.finished()
        if begun.served:
            tally.beside = "does not apply: processes that it started keep its files"
            return
        every = [*stored.missing(begun.stored), *stored.foreign(begun.stored)]
        tally.total, tally.noun = len(every), "variants"
        for number in self._ordered(every):
            yield
            with self._workspace.folder(begun.folder) as folder:
                struck, seen = self._robbed(folder, every[number])
            tally.tried += struck
            story = f"While it ran, {every[number].text}."
            self._workspace.note(tally, number + 1, seen.verdict, story, partial(copy, begun.folder))
        tally.must_be_reached("files that are still there once it runs")

    def _robbed(self, folder: Path, variant: Variant) -> tuple[bool, Deprived]:
        """Whether files were taken away from the running process, and its behaviour after that."""
        subject, owed, late = self._sweep.subject(), self.finished().acknowledged, self.finished().late
        struck: list[Variant] = []

        @contextmanager
        def taking() -> Iterator[frozenset[int]]:
            done: frozenset[int] = frozenset()
            with suppress(SubjectError):
                # Now it has its store open, if it ever has, and has written to it.
                subject.dump()
                done = frozenset(op.number for op in late[:1] if subject.submit(op).outcome is Outcome.OK)
            if variant.is_there(folder):
                variant.apply(folder)
                struck.append(variant)
            yield done

        seen = judge_deprived(subject, folder, self._workload, owed, owed, late, taking=taking)
        return bool(struck), seen

    def _read_only(self, tally: Tally) -> Iterator[None]:
        begun = self.finished()
        tally.total = 1
        mountable()
        yield
        with self._workspace.folder(begun.folder) as folder:
            # The twin: in a namespace of its own, and with the right to write.
            seen = self._under(Disk.AS_IT_IS, folder, begun, begun.acknowledged)
            if {op.number for op in begun.late} - seen.done or seen.shown is None:
                raise RunError("NOT TESTED: although it could write, it did not in a mount namespace of its own")
            verdict = self._judged(folder, begun.acknowledged | seen.done, begun.acknowledged | seen.done)
            if verdict.kind is not CrashClass.CLEAN:
                raise RunError(f"although it could write, in a mount namespace of its own: {verdict}")
        with self._workspace.folder(begun.folder) as folder:
            seen = self._under(Disk.READ_ONLY, folder, begun, begun.acknowledged)
            verdict = seen.verdict
            if verdict.kind is CrashClass.CLEAN:
                verdict = self._judged(folder, begun.acknowledged | seen.done, begun.acknowledged | seen.may)
        tally.tried = 1
        state = partial(copy, begun.folder)
        self._workspace.note(tally, 1, verdict, "The work directory was mounted read-only.", state)

    def _under(self, disk: Disk, folder: Path, begun: Finished, owed: frozenset[int]) -> Deprived:
        """Its behaviour on such a disk. Raises RunError if there is no such disk."""
        _, mark = self._workspace.place()
        under = mounts.argv(disk, folder, mark)
        subject = self._sweep.subject()
        seen = judge_deprived(subject, folder, self._workload, owed, begun.acknowledged, begun.late, under=under)
        if not mark.exists():
            raise RunError(f"NOT TESTED: a work directory that is {disk.value} could not be mounted")
        return seen
