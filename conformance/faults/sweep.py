"""The layers that need a recording: kills, power loss, failing calls; each time judged by restarts and nothing else.

Every layer ends in a `Report`. `Dependencies` has the layers that take away what the implementation works on.
"""

from __future__ import annotations

import errno
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from conformance.faults import fidelity, metadata, story
from conformance.faults.copying import copy
from conformance.faults.lines import Lines, puts
from conformance.faults.metadata import Given
from conformance.faults.model import Candidate, Stage
from conformance.faults.model import Kind as StateKind
from conformance.faults.model import Plan as States
from conformance.faults.oracle import Kind, Promises, UnplacedError, Verdict, acknowledgements, judge
from conformance.faults.order import halves_first, in_place_first, spread
from conformance.faults.recording import Recording, RecordingError, Sync, read
from conformance.faults.report import Finding, Layer, Report, RunError, Tally
from conformance.faults.subject import History, Outcome, Subject, SubjectError, Workload, perform
from conformance.faults.timeline import Marks
from conformance.faults.tracer import Fault
from conformance.faults.workspace import Workspace

__all__ = ["LEAST_TRIED", "MOST_FINDINGS", "Finding", "Layer", "Report", "Run", "RunError", "Sweep", "self_test"]

# A layer stops at so many failures: one is enough to say no, some more help to see what they have in common.
MOST_FINDINGS = 5
# Fewer points than this show nothing: so many are tried whatever time they take, or all there are.
LEAST_TRIED = 8
# Of the files outside of the work directory, so many of the last are watched, and so many are named.
_MOST_WATCHED, _MOST_SHOWN = 500, 3
# What is refused so that a program falls back to calls that can be seen, and how a report calls it.
_REFUSED = {"io_uring_setup": "io_uring", "io_setup": "Linux AIO"}
# Of the states that a crash leaves, so many are the beginning of a recovery that is interrupted itself.
NESTED_STATES = 6


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run of the workload: the work directory as it was left, the recording and its file, what was asked."""

    folder: Path
    out: Path
    recording: Recording
    history: History

    @property
    def promises(self) -> Promises:
        """Where in the recording what was promised. Raises RunError."""
        try:
            return acknowledgements(self.recording, self.history)
        except UnplacedError as error:
            raise RunError(str(error)) from error

    @property
    def windows(self) -> Mapping[int, range]:
        """The numbers at which each operation was under way that was acknowledged; empty if that cannot be told."""
        with suppress(RunError):
            promises = self.promises
            return {op: range(promises.sent[op], number + 1) for op, number in promises.acknowledged.items()}
        return {}


class Sweep:
    """All layers against one implementation. Use as a context manager: its folders are gone afterwards.

    `subject` makes the implementation's subject for a restart, `traced` for a run under the tracer, which takes three
    to seven times as long (the same by default). Every run begins on a copy of `base`, or on an empty folder. `scratch`
    names files of the work directory that no promise is about. A layer tries `least` points whatever time they take.
    The first of each class that a layer finds is kept in `keep`: the state as LAYER-CLASS.tar, the recording beside it.
    `send` asks the traced subject for the workload: one operation after the other, or several at once.
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
        scratch: Iterable[str] = (),
        parent: Path | None = None,
        keep: Path | None = None,
        send: Callable[[Subject, Workload], History] = perform,
    ) -> None:
        self.subject, self.workload, self.seed, self.scratch = subject, workload, seed, tuple(scratch)
        self.workspace = Workspace(base, parent, keep)
        self._traced, self._least, self._send = traced or subject, least, send
        self._baseline: Run | None = None
        # Why the run shows nothing, as it keeps things elsewhere; empty if it does not, None before it was asked.
        self._elsewhere: str | None = None
        self._is_confined = False

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all folders. Again is nothing."""
        self.workspace.close()

    def tally(self, layer: Layer) -> Tally:
        """For a layer to count in."""
        return Tally(layer, seed=self.seed, least=self._least, most=MOST_FINDINGS)

    @property
    def recorded(self) -> bool:
        """Whether the run in which nothing goes wrong has been made."""
        return self._baseline is not None

    def baseline(self) -> Run:
        """A run in which nothing goes wrong; the same for all layers. Raises RunError."""
        if self._baseline is None:
            run = self._run(Fault())
            accepted(run.history)
            self._faithful(run)
            self.confined()
            self._baseline = run
        if self._elsewhere is None:
            self._elsewhere = self._kept_elsewhere(self._baseline)
        if self._elsewhere:
            raise RunError(self._elsewhere)
        return self._baseline

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
        places = list(ending.strangers)
        # Each operation may have made a file of its own; a start needs the last.
        written = ending.written[-_MOST_WATCHED:]
        if written:
            folder, out = self.workspace.place()
            copy(run.folder, folder)
            subject = self._traced()
            watch = tuple((one.device, one.inode) for one in written)
            try:
                subject.start(folder, Fault(watch=watch).argv(out, folder))
                subject.dump()
            except SubjectError as error:
                # One that did not come so far may have read nothing yet.
                raise RunError(
                    f"expected it to start again, for what it reads elsewhere to be seen, got: {error}"
                ) from error
            finally:
                with suppress(SubjectError):
                    subject.stop()
            again = _read(out)
            _seen_whole(again)
            read_again = {(one.device, one.inode) for one in again.ending.read}
            places += [f"the file {one.path}" for one in written if (one.device, one.inode) in read_again]
            shutil.rmtree(folder, ignore_errors=True)
        if not places:
            return ""
        more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
        return (
            "what it keeps may lie outside of its work directory, where nothing that is lost is seen: "
            f"{', '.join(places[:_MOST_SHOWN])}{more}; have it keep everything in its work directory, and start by "
            "itself whatever it talks to"
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

    def power_loss(self, seconds: float) -> Report:
        """Every state that a power loss may leave, the likeliest to show something first, for so many seconds.

        What is left at each acknowledgement of all that was not synced is always tried, whatever time it takes.
        """
        return self._told(self.tally(Layer.POWER).reported(lambda report: self._power_loss(report, seconds)))

    def recovery(self, seconds: float) -> Report:
        """Power losses while it recovers from a power loss."""
        return self._told(self.tally(Layer.RECOVERY).reported(lambda report: self._nested(report, seconds)))

    def kills(self, seconds: float, *, torn: bool = False) -> Report:
        """SIGKILL before operations of the run, first where half of an operation may have been made final.

        With `torn` in the middle of writes, spread over all of the run.
        """
        layer = Layer.TORN_KILL if torn else Layer.KILL
        report = self.tally(layer).reported(
            lambda report: self._struck(report, seconds, lambda number: Fault(kill=number, torn=torn), "killed before"),
        )
        return self._told(report)

    def errors(self, seconds: float, error: int = errno.EIO) -> Report:
        """Calls on files that fail with `error` from an operation on. What is answered OK even so must be there."""
        name = errno.errorcode[error]
        report = self.tally(Layer.ERRORS).reported(
            lambda report: self._struck(
                report, seconds, lambda number: Fault(error=error, at=number), f"{name} from then on at"
            ),
        )
        return self._told(report)

    def short_writes(self, seconds: float) -> Report:
        """Writes that do half of what they were asked, as on a disk that is about to be full."""
        report = self.tally(Layer.SHORT).reported(
            lambda report: self._struck(report, seconds, lambda number: Fault(short=number), "half a write at"),
        )
        return self._told(report)

    def sync_errors(self, seconds: float) -> Report:
        """Syncs that fail once, and a power loss at the end: what a failed sync had to save is not saved by another."""
        return self._told(self.tally(Layer.SYNC_ERRORS).reported(lambda report: self._sync_errors(report, seconds)))

    def _told(self, report: Report) -> Report:
        """The report of a layer that rests on the recording, with what was refused while it was made."""
        refused = self._baseline.recording.refused if self._baseline is not None else ()
        names = [words for call, words in _REFUSED.items() if call in refused]
        if not names:
            return report
        words = f"{' and '.join(names)} was refused: what it does with it was not seen"
        return replace(report, tally=f"{report.tally}; {words}")

    def _power_loss(self, tally: Tally, seconds: float) -> None:
        run = self.baseline()
        promises = run.promises
        states = self._states(run.recording, promises)
        until = time.monotonic() + seconds
        for candidate in states:
            # Without these nothing is proven, so they have all the time that they take.
            owed = candidate.stage is Stage.ACKNOWLEDGED
            if tally.enough() or (time.monotonic() > until and not owed):
                break
            tally.tried += not candidate.again
            self._restarted(tally, candidate, promises, (run.recording, run.out))
        if not tally.findings:
            self._by_times(tally, run, states, promises)
        tally.total, tally.words = states.count(), states.tally(tally.tried)

    def _states(self, recording: Recording, promises: Promises) -> States:
        acknowledged = promises.acknowledged.values()
        return States(recording, seed=self.seed, acknowledgements=acknowledged, idle=promises.idle)

    def _restarted(
        self,
        tally: Tally,
        candidate: Candidate,
        promises: Promises,
        recorded: tuple[Recording, Path],
        prefix: str = "",
    ) -> None:
        """Restart on one state, and judge it by the promises at all points at which it is legal."""
        recording, out = recorded
        numbers = candidate.numbers
        verdict = self._judged(candidate, promises, recording, Given.MADE)
        if verdict.kind is Kind.CLEAN or self._by_metadata(tally, candidate, promises, recording, verdict):
            return
        fill = partial(metadata.write, candidate, recording)
        kept, lost = self.workspace.kept(tally, verdict, fill, out)
        words = prefix + story.of_power_loss(self.workload, promises, candidate, verdict) + lost
        marks = story.marks(promises, candidate)
        tally.findings.append(Finding(numbers[-1], verdict, words, kept, marks=marks))

    def _judged(self, candidate: Candidate, promises: Promises, recording: Recording, given: Given) -> Verdict:
        numbers = candidate.numbers
        with self.workspace.folder() as folder:
            metadata.write(candidate, recording, folder, given)
            return judge(self.subject(), folder, self.workload, promises.must(*numbers), promises.may(*numbers))

    def _by_metadata(
        self, tally: Tally, candidate: Candidate, promises: Promises, recording: Recording, verdict: Verdict
    ) -> bool:
        """Whether it breaks its promise only without the modes, owners and times that it has set: then nobody knows.

        What comes and goes by itself is no such thing, so it has to break it once more without them.
        """
        calls = metadata.was_set(recording)
        both = (Given.SET, Given.BEFORE)
        if not calls or not any(self._judged(candidate, promises, recording, one).kind is Kind.CLEAN for one in both):
            return False
        if self._judged(candidate, promises, recording, Given.MADE).kind is Kind.CLEAN:
            return False
        tally.cannot_tell(
            "it depends on modes, owners or times that it has set, and what of those a power loss leaves is not "
            f"modelled: {metadata.some(calls)}; without them: {verdict}"
        )
        return True

    def _by_times(self, tally: Tally, run: Run, states: States, promises: Promises) -> None:
        """Whether it shows something else on the same bytes, last written in another order."""
        last = states.everything()
        verdicts = [
            self._judged(last, promises, run.recording, given) for given in (Given.TURNED, Given.SET, Given.TURNED)
        ]
        if [one.kind is Kind.CLEAN for one in verdicts] == [False, True, False]:
            tally.cannot_tell(
                "it depends on the times of its files, and what of those a power loss leaves is not modelled: with the "
                f"same bytes, last written in the opposite order: {verdicts[0]}"
            )

    def _nested(self, tally: Tally, seconds: float) -> None:
        run = self.baseline()
        until = time.monotonic() + seconds
        outermost = run.promises
        outer = self._states(run.recording, outermost)
        firsts = [one for one in _until(outer, Stage.PARTED) if not one.again]
        # Spread over the run: recoveries differ by what there is to recover.
        step = max(1, len(firsts) // NESTED_STATES)
        for first in firsts[::step]:
            if tally.over(until):
                break
            must, may = outermost.must(*first.numbers), outermost.may(*first.numbers)
            with self.workspace.folder() as folder:
                metadata.write(first, run.recording, folder)
                # A state that breaks a promise by itself says nothing of what recovers from it.
                if judge(self.subject(), folder, self.workload, must, may).kind is not Kind.CLEAN:
                    continue
            again, out = self._recovery(run.recording, first)
            inner = States(again, seed=self.seed, acknowledgements=())
            # All of them were made before the recovery began.
            promises = Promises(dict.fromkeys(may, 0), dict.fromkeys(must, 0))
            last = first.numbers[-1]
            where = f"After a power loss at operation {last} ({first.at(last).text}), while it recovered: "
            for candidate in _until(inner, Stage.PARTED):
                if tally.over(until):
                    break
                tally.tried += not candidate.again
                self._restarted(tally, candidate, promises, (again, out), where)
            tally.total += sum(not one.again for one in _until(inner, Stage.PARTED))

    def _recovery(self, recorded: Recording, first: Candidate) -> tuple[Recording, Path]:
        """The recording of a start on this state, and its file. Raises RunError."""
        folder, out = self.workspace.place()
        metadata.write(first, recorded, folder)
        subject = self._traced()
        with suppress(SubjectError):
            # A recovery that fails by itself is a matter of the layer before this one.
            subject.start(folder, Fault().argv(out, folder))
        with suppress(SubjectError):
            subject.stop()
        recording = _read(out)
        _seen_whole(recording)
        shutil.rmtree(folder, ignore_errors=True)
        return recording, out

    def _struck(self, tally: Tally, seconds: float, fault: Callable[[int], Fault], words: str) -> None:
        """Runs with one fault each, at numbers spread over the baseline's."""
        run = self.baseline()
        numbers = [one.number for one in run.recording.operations]
        until = time.monotonic() + seconds
        tally.total = len(numbers)
        ordered = spread(numbers, self.seed)
        if tally.layer is Layer.KILL:
            ordered = halves_first(run.recording, run.windows, ordered, self.seed)
        ordered = in_place_first(run.recording, ordered)
        for number in ordered:
            if tally.over(until):
                break
            struck = self._run(fault(number), whole=False)
            if not struck.recording.ending.fired:
                # The run was shorter this time: nothing was tried.
                continue
            tally.tried += 1
            # The judge uses the folder up.
            before = self._copied(struck.folder)
            verdict = judge(self.subject(), struck.folder, self.workload, struck.history.must, struck.history.may)
            if verdict.kind is not Kind.CLEAN:
                kept, lost = None, ""
                if before is not None:
                    kept, lost = self.workspace.kept(tally, verdict, partial(copy, before), struck.out)
                said = f"It was {words} operation {number}.{lost}"
                tally.findings.append(Finding(number, verdict, said, kept, marks=_struck_marks(struck, fault(number))))
            for folder in filter(None, (before, struck.folder)):
                shutil.rmtree(folder, ignore_errors=True)
        tally.words = f"{tally.tried} of {tally.total} points, seed {self.seed}"

    def _sync_errors(self, tally: Tally, seconds: float) -> None:
        run = self.baseline()
        until = time.monotonic() + seconds
        syncs = [one.number for one in run.recording.operations if isinstance(one.action, Sync)]
        tally.total = len(syncs)
        for number in spread(syncs, self.seed):
            if tally.over(until):
                break
            struck = self._run(Fault(error=errno.EIO, at=number, once=True), whole=False)
            if not struck.recording.ending.fired:
                continue
            tally.tried += 1
            promises = struck.promises
            states = self._states(struck.recording, promises)
            for candidate in _until(states, Stage.ORDERED):
                if candidate.state.kind is StateKind.MINIMUM:
                    before = len(tally.findings)
                    what = f"The sync of operation {number} had failed. "
                    self._restarted(tally, candidate, promises, (struck.recording, struck.out), what)
                    if len(tally.findings) > before:
                        break
            shutil.rmtree(struck.folder, ignore_errors=True)
        tally.words = f"{tally.tried} of {tally.total} syncs, seed {self.seed}"

    def _run(self, fault: Fault, *, whole: bool = True) -> Run:
        """The workload, recorded. Raises RunError; a start that fails is one only if nothing was to go wrong."""
        folder, out = self.workspace.begun()
        subject = self._traced()
        history = History(())
        try:
            subject.start(folder, fault.argv(out, folder))
            history = self._send(subject, self.workload)
        except SubjectError as error:
            if whole:
                raise RunError(f"expected it to start while it is recorded, got: {error}") from error
        finally:
            # Struck, it may end as it likes.
            with suppress(SubjectError):
                subject.stop()
        recording = _read(out)
        _seen_whole(recording)
        return Run(folder, out, recording, history)

    def _copied(self, folder: Path) -> Path | None:
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


def self_test() -> str:
    """Why verdicts of these layers mean nothing on this machine; empty if both known writers are told apart."""
    wanted = {"right": True, "wrong": False}
    for kind, clean in wanted.items():
        command = (sys.executable, "-I", "-S", str(Path(__file__).with_name("writers.py")), kind)
        with Sweep(lambda command=command: Lines(command), puts(2)) as sweep:  # type: ignore[misc]
            report = sweep.power_loss(0)
        found = {finding.verdict.kind for finding in report.findings}
        if report.unproven or not report.tried or (not report.findings) is not clean or found - {Kind.LOST}:
            said = [*report.unproven, *map(str, report.findings)] or [report.tally]
            return f"the self-test's {kind} writer was not known for what it is: {said[0]}"
    return ""


def accepted(history: History) -> None:
    """Raises RunError for an operation that was not accepted although nothing went wrong."""
    for one in history.asked:
        if one.answer.outcome is not Outcome.OK:
            raise RunError(
                f"operation {one.op.number} was answered with {one.answer.outcome} ({one.answer.text}) while "
                "nothing went wrong; expected every operation of the workload to be accepted"
            )


def _read(out: Path) -> Recording:
    try:
        return read(out)
    except RecordingError as error:
        raise RunError(f"there is no whole recording: {error}") from error


def _seen_whole(recording: Recording) -> None:
    if recording.ending.untraced:
        raise RunError(f"not all of it could be seen: {'; '.join(recording.ending.untraced)}")


def _until(states: States, last: Stage) -> Iterator[Candidate]:
    """The candidates of all stages before `last`."""
    for candidate in states:
        if candidate.stage is last:
            return
        yield candidate


def _struck_marks(struck: Run, fault: Fault) -> Marks:
    """What the picture of a run with a fault shows: it may have ended there, but nothing is lost that was written."""
    acknowledged: Mapping[int, int] = {}
    with suppress(RunError):
        acknowledged = struck.promises.acknowledged
    last = max((one.number for one in struck.recording.operations), default=0)
    return Marks(acknowledged, None if fault.kill is None else last)
