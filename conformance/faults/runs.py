"""Recorded runs of an implementation, and what has to hold of them before any layer proves something."""

from __future__ import annotations

import shutil
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import methodcaller
from pathlib import Path
from typing import Self, TypeAlias, TypeVar

from holdfast.conformance.faults import fidelity
from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.naming import listed, short, some
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, compare
from holdfast.conformance.faults.recording import Event, Recording, RecordingError, read
from holdfast.conformance.faults.report import BrokenPromise, Deadline, RunError, Tally
from holdfast.conformance.faults.subject import History, Outcome, Subject, SubjectError, Workload, perform
from holdfast.conformance.faults.tracer import Injection

# The folders of a sweep: work directories for each run, and the states of the disk that broke a promise


class Workspace:
    """Numbered folders under one of its own, which is gone after `close`. Every run begins on a copy of `base`."""

    def __init__(self, base: Path | None, parent: Path | None, keep: Path | None) -> None:
        """`keep` is where broken states go, if anywhere."""
        self.base, self.keep = base, keep
        # Short where the parent folder says whose it is: the path of a socket has little more than a hundred bytes.
        self.home = Path(tempfile.mkdtemp(prefix="holdfast-crash-" if parent is None else "", dir=parent))
        # A store may run under an account of its own, as PostgreSQL does for root: it has to come through.
        self.home.chmod(0o711)
        self._count = 0

    def close(self) -> None:
        """Remove all folders. Idempotent."""
        shutil.rmtree(self.home, ignore_errors=True)

    def place(self) -> tuple[Path, Path]:
        """An empty work directory, and where its recording goes."""
        self._count += 1
        folder = self.home / f"work-{self._count}"
        folder.mkdir()
        return folder, self.home / f"recording-{self._count}"

    def begun(self) -> tuple[Path, Path]:
        """A work directory for a run, and where its recording goes."""
        folder, out = self.place()
        if self.base is not None:
            copy(self.base, folder)
        return folder, out

    def begun_folder(self) -> AbstractContextManager[Path]:
        """A work directory for a run, for as long as it is needed."""
        return self.folder(self.base)

    @contextmanager
    def folder(self, like: Path | None = None) -> Iterator[Path]:
        """An empty work directory, or a copy of this one, for as long as it is needed."""
        folder, _ = self.place()
        try:
            if like is not None:
                copy(like, folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def kept(
        self, tally: Tally, verdict: CrashOutcome, fill: Callable[[Path], object], recording: Path | None = None
    ) -> tuple[Path | None, str]:
        """The tar file of what `fill` puts into a folder, if it is the first of its class in this layer.

        And what is to be said beside the finding where it could not be kept: that takes nothing from the finding.
        """
        if self.keep is None or any(one.verdict.kind is verdict.kind for one in tally.findings):
            return None, ""
        place = self.keep / f"{tally.layer.name.lower().replace('_', '-')}-{verdict.kind.value}"
        try:
            self.keep.mkdir(parents=True, exist_ok=True)
            if recording is not None:
                shutil.copyfile(recording, place.with_suffix(".jsonl"))
            with self.folder() as folder:
                fill(folder)
                return Path(shutil.make_archive(str(place), "tar", folder)), ""
        except OSError as error:
            return None, f" The state could not be kept: {error}."

    def note(
        self, tally: Tally, number: int, verdict: CrashOutcome, story: str, fill: Callable[[Path], object]
    ) -> None:
        """Take down what one way of depriving it came to; `fill` makes the state that it began on."""
        if verdict.kind is not CrashClass.CLEAN:
            kept, lost = self.kept(tally, verdict, fill)
            tally.findings.append(BrokenPromise(number, verdict, story + lost, kept, "variant"))


# Where in a recording operations begin and are answered, which says what a crash at each place must leave


@dataclass(frozen=True, slots=True)
class Promises:
    """Where in a recording operations begin and are acknowledged: numbers of recorded operations, by operation.

    `answered` are the places of all answers, refusals and errors included.
    """

    sent: Mapping[int, int]
    acknowledged: Mapping[int, int]
    answered: Mapping[int, int] = field(default_factory=dict)

    def must(self, *points: int) -> frozenset[int]:
        """What must be there after a crash after this recorded operation (0: before the first), or any of these.

        What the same state of the disk must keep if a crash may leave it at several points.
        """
        return frozenset(op for op, number in self.acknowledged.items() if number <= max(points))

    def may(self, *points: int) -> frozenset[int]:
        """The operations that may be there after a crash after any of these: sent, and not refused later."""
        return frozenset(op for op, number in self.sent.items() if number <= min(points))

    @property
    def idle(self) -> frozenset[int]:
        """Where operations begin while no other is under way: the client may have waited before them."""
        spans = {op: range(number, self.acknowledged.get(op, sys.maxsize)) for op, number in self.sent.items()}
        return frozenset(
            number
            for op, number in self.sent.items()
            if not any(number in span for other, span in spans.items() if other != op)
        )


def acknowledgements(recording: Recording, history: History) -> Promises:
    """Each answer is the last thing that left before the client knew it. Its bytes are not read.

    An operation that nothing was recorded after has no place and can have left nothing. Raises RunError for a
    success without a place: the recording proves nothing.
    """
    sent: dict[int, int] = {}
    acknowledged: dict[int, int] = {}
    answered: dict[int, int] = {}
    # Read once, because they come from a file.
    times, left = array("q"), array("Q")
    for each in recording.operations:
        times.append(each.at)
        if isinstance(each.action, Event):
            left.append(each.number)
    for one in history.asked:
        number, answer = one.op.number, one.answer
        begun = next((place for place, at in enumerate(times, start=1) if at >= answer.sent_at), None)
        if begun is not None and answer.outcome is not Outcome.REFUSED:
            sent[number] = begun
        if answer.came_at is None:
            continue
        # In front of the sending there is the answer to something else.
        last = max((each for each in left if answer.sent_at <= times[each - 1] <= answer.came_at), default=None)
        if last is not None:
            answered[number] = last
        if answer.outcome is not Outcome.OK:
            continue
        if last is None:
            raise RunError(
                f"operation {number} ({short(one.op.text)}) was acknowledged, and nothing that left between its "
                "sending and its success was recorded: the answer came by a way that cannot be seen"
            )
        acknowledged[number] = last
    return Promises(sent, acknowledged, answered)


# Fewer points than this show nothing: this number is tried however long it takes, or all points if there are fewer.
LEAST_TRIED = 8
# Of the files outside of the work directory, the last 500 are watched.
_MOST_WATCHED = 500


_Done = TypeVar("_Done")
# How a subject is asked for a workload.
Send: TypeAlias = Callable[[Subject, Workload], History]


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run of the workload: the work directory as it was left, the recording and its file, what was asked."""

    folder: Path
    out: Path
    recording: Recording
    history: History

    def remove(self, *more: Path | None) -> None:
        """Remove its folder, its recording, and these folders."""
        for folder in filter(None, (self.folder, *more)):
            shutil.rmtree(folder, ignore_errors=True)
        self.out.unlink(missing_ok=True)

    @property
    def promises(self) -> Promises:
        """Where in the recording what was promised. Raises RunError."""
        return acknowledgements(self.recording, self.history)

    @property
    def windows(self) -> Mapping[int, range]:
        """The numbers at which each operation was under way that was acknowledged; empty if that is unknown."""
        with suppress(RunError):
            promises = self.promises
            return {op: range(promises.sent[op], number + 1) for op, number in promises.acknowledged.items()}
        return {}


class Runs:
    """Runs of one implementation, and what is known from one in which nothing goes wrong.

    Use as a context manager: its folders are gone afterwards. `subject` makes the implementation's subject for a
    restart, `traced` for a run under the tracer, which takes three to seven times as long (the same by default). Every
    run begins on a copy of `base`, or on an empty folder. `scratch` names files of the work directory that no promise
    is about. The first of each class that a layer finds is kept in `keep`: the state as LAYER-CLASS.tar, the recording
    beside it.
    A layer owes `least` tries, or all that there are; of a power loss that is each acknowledgement. It owes one try of
    each kind of the other points or states as well, up to `further`. After `deadline` nothing is begun.
    `played` are TCP addresses where the caller itself plays the other side, and keeps nothing for the implementation.
    `longer` begins like `workload` and has more operations: where the usual ones leave no file of a new name after the
    first acknowledgement, a power loss is tried in a session with as many of these as it takes.
    """

    def __init__(
        self,
        subject: Callable[[], Subject],
        workload: Workload,
        *,
        traced: Callable[[], Subject] | None = None,
        base: Path | None = None,
        seed: int = 0,
        least: int = LEAST_TRIED,
        further: int = 0,
        scratch: Iterable[str] = (),
        parent: Path | None = None,
        keep: Path | None = None,
        deadline: Deadline | None = None,
        played: Iterable[str] = (),
        longer: Workload | None = None,
    ) -> None:
        self.subject, self.workload, self.seed, self.scratch = subject, workload, seed, tuple(scratch)
        self.workspace = Workspace(base, parent, keep)
        self.deadline = deadline or Deadline()
        self.traced, self._least, self.further = traced or subject, least, further
        self._played = tuple(played)
        self.longer = longer
        self._baseline: Run | None = None
        self._later: Self | None = None
        self._others: list[Self] = []
        # Why the run shows nothing, as it keeps things elsewhere; empty if it does not, None before it was asked.
        self._elsewhere: str | None = None
        self._is_confined = False
        self._control: CrashOutcome | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all folders. Idempotent."""
        for other in self._others:
            other.close()
        self.workspace.close()

    @property
    def recorded(self) -> bool:
        """Whether the run in which nothing goes wrong has been made."""
        return self._baseline is not None

    def baseline(self) -> Run:
        """A run in which nothing goes wrong; the same for all layers. Raises RunError."""
        if self._baseline is None:
            run = self.run(Injection())
            accepted(run.history)
            self._faithful(run)
            self.confined()
            self.control()
            self._baseline = run
        if self._elsewhere is None:
            self._elsewhere = self._kept_elsewhere(self._baseline)
        if self._elsewhere:
            raise RunError(self._elsewhere)
        return self._baseline

    def later(self) -> Self | None:
        """The same implementation in its second session; None for a workload of one operation. Raises RunError.

        A first session, in which nothing goes wrong, has done the first half of the workload, or all before its
        `later` operations but those that are spared, and has ended in order. What a store arranges only when it makes
        its files is not arranged for the second one.
        """
        first, rest = self.workload.sessions
        if self._later is None and first:
            folder, _ = self.workspace.begun()
            subject = self.subject()
            with in_order(subject, "in a first session"):
                subject.start(folder)
                following = (*self.workload.ops, *rest)[len(first)]
                accepted(perform(subject, replace(self.workload, ops=first, later=(), probe=following)))
                subject.stop()
                # An observation may leave traces, so a copy is observed.
                with self.workspace.folder(folder) as beside:
                    subject.start(beside)
                    before = subject.dump()
                    subject.stop()
            # Where it has operations of its own, each of them owes what each of the first has owed.
            further = self.further if self.workload.later else self.further // 2
            workload = replace(self.workload, ops=rest, later=(), before=before)
            self._later = self.another(workload, folder, "second-session", further)
        return self._later

    def another(self, workload: Workload, base: Path | None, name: str, further: int) -> Self:
        """The same implementation with another workload, on a copy of `base`; what it keeps goes into folder `name`."""
        other = type(self)(
            self.subject,
            workload,
            traced=self.traced,
            base=base,
            seed=self.seed,
            least=self._least,
            further=further,
            scratch=self.scratch,
            parent=self.workspace.home,
            keep=None if self.workspace.keep is None else self.workspace.keep / name,
            deadline=self.deadline,
            played=self._played,
        )
        self._others.append(other)
        return other

    def control(self) -> CrashOutcome:
        """What it shows after it was ended in order and started again, where nothing was done to it; made once.

        Raises RunError if it does not come so far, or shows something else before that: no fault can be judged then.
        """
        if self._control is None:
            every = frozenset(op.number for op in self.workload.ops)
            subject, verdict = self.subject(), CrashOutcome(CrashClass.CLEAN)
            with self.workspace.begun_folder() as folder, in_order(subject, "while nothing was done to it"):
                for when in ("", ", after it was ended in order and started again,"):
                    subject.start(folder)
                    if not when:
                        # A subject may show at first what it asked for at its start.
                        subject.dump()
                        accepted(perform(subject, self.workload))
                    found = subject.dump()
                    subject.close()
                    verdict = compare(self.workload, found, every, every)
                    if verdict.kind is not CrashClass.CLEAN:
                        asked = listed(f"`{short(op.text)}`" for op in self.workload.ops)
                        came = f"asked was {asked}, and{when} it shows {short(repr(dict(found)), 200)}: {verdict.came}"
                        verdict = replace(verdict, came=f"nothing was done to it; {came}")
                        if not when:
                            # What others have left elsewhere shows as well.
                            self.confined()
                            raise RunError(verdict.came)
            self._control = verdict
        return self._control

    def beside(self) -> int:
        """How many processes it had beside itself, in the run in which nothing goes wrong, when it acknowledged.

        Raises RunError.
        """
        run = self.baseline()
        times = [one.answer.acked_at for one in run.history.asked if one.answer.acked_at is not None]
        return sum(any(life.born <= at < life.died for at in times) for life in run.recording.ending.beside)

    def _kept_elsewhere(self, run: Run) -> str:
        """Where it keeps what no power loss of its work directory reaches, in words; empty if nowhere. Raises RunError.

        Of the files that it wrote elsewhere only those that a later start opens so that they can be read: a log that is
        only ever appended to is no store.
        """
        ending = run.recording.ending
        played = {f"the TCP address {address}" for address in self._played}
        places = [name for name in ending.strangers if name not in played]
        # Each operation may have made a file of its own; a start needs the last.
        written = ending.written[-_MOST_WATCHED:]
        if written:
            folder, out = self.workspace.place()
            copy(run.folder, folder)
            watch = tuple((one.device, one.inode) for one in written)
            # One that did not come so far may have read nothing yet.
            expected = "start again, for what it reads elsewhere to be seen"
            again, _ = self.recorded_in(folder, out, Injection(watch=watch), methodcaller("dump"), expected)
            read_again = {(one.device, one.inode) for one in again.ending.read}
            places += [f"the file {one.path}" for one in written if (one.device, one.inode) in read_again]
            shutil.rmtree(folder, ignore_errors=True)
        if not places:
            return ""
        return (
            "what it keeps may lie outside of its work directory, where nothing that is lost is seen: "
            f"{some(places)}; have it keep everything in its work directory, and start by "
            "itself each process that it talks to"
        )

    def confined(self) -> None:
        """That what it does lies in its work directory: in a folder in which nothing was done it must show nothing.

        To be asked once something was done. Raises RunError.
        """
        if self._is_confined:
            return
        folder, _ = self.workspace.begun()
        subject = self.subject()
        try:
            subject.start(folder)
            found = subject.dump()
        except SubjectError as error:
            raise RunError(f"expected it to start where nothing was done yet, got: {error}") from error
        finally:
            with suppress(SubjectError):
                subject.stop()
            shutil.rmtree(folder, ignore_errors=True)
        if found != self.workload.before:
            raise RunError(
                "what it keeps does not lie in its work directory: in a folder in which no operation was done it shows "
                f"{sorted(found.items() - self.workload.before.items())[:1] or 'less than there was'}; have it keep "
                "everything there, its database as well"
            )
        self._is_confined = True

    def run(self, fault: Injection, *, whole: bool = True, send: Send = perform) -> Run:
        """The workload, recorded. Raises RunError; a start that fails is one only if nothing was to go wrong.

        `send` asks for it in another way than is usual.
        """
        folder, out = self.workspace.begun()
        expected = "start while it is recorded" if whole else ""
        recording, history = self.recorded_in(folder, out, fault, lambda it: send(it, self.workload), expected)
        return Run(folder, out, recording, history or History(()))

    def recorded_in(
        self, folder: Path, out: Path, fault: Injection, then: Callable[[Subject], _Done], expected: str = ""
    ) -> tuple[Recording, _Done | None]:
        """The recording of a start in this folder, and what comes of `then` right after it. Raises RunError.

        Where nothing is `expected` of it, it may fail; struck, it may end as it likes.
        """
        subject, done = self.traced(), None
        try:
            subject.start(folder, fault.argv(out, folder))
            done = then(subject)
        except SubjectError as error:
            if expected:
                raise RunError(f"expected it to {expected}, got: {error}") from error
        finally:
            with suppress(SubjectError):
                subject.stop()
        return read_whole(out, self.deadline), done

    def copied(self, folder: Path) -> Path | None:
        """A copy of a work directory, if anything is to be kept."""
        if self.workspace.keep is None:
            return None
        into, _ = self.workspace.place()
        copy(folder, into)
        return into

    def _faithful(self, run: Run) -> None:
        differing = fidelity.differences(run.recording, run.folder, self.scratch)
        if differing:
            raise RunError(f"the recording does not explain these files: {', '.join(differing[:5])}")


@contextmanager
def in_order(subject: Subject, when: str) -> Iterator[None]:
    """A session in which nothing goes wrong; the subject is stopped after it. Raises RunError for one that fails."""
    try:
        yield
    except SubjectError as error:
        raise RunError(f"expected it to start, work and stop {when}, got: {error}") from error
    finally:
        with suppress(SubjectError):
            subject.stop()


def accepted(history: History) -> None:
    """Raises RunError for an operation that was not accepted although nothing went wrong."""
    for one in history.asked:
        if one.answer.outcome is not Outcome.OK:
            raise RunError(
                f"operation {one.op.number} was answered with {one.answer.outcome} ({one.answer.text}) while "
                "nothing went wrong; expected every operation of the workload to be accepted"
            )


def read_whole(out: Path, deadline: Deadline) -> Recording:
    """The recording in a file. Raises RunError for one that is not complete, OutOfTimeError."""
    try:
        recording = read(out, deadline.check)
    except RecordingError as error:
        raise RunError(f"there is no whole recording: {error}") from error
    if recording.ending.untraced:
        raise RunError(f"not all of it could be seen: {'; '.join(recording.ending.untraced)}")
    return recording
