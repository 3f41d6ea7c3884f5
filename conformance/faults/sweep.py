"""The layers: what is done to an implementation while it works, each time judged by restarts and nothing else.

Every layer ends in a `Report`. Only `clean` is a pass: a layer that could not see all, did not come to the states that
matter in its time, or tried nothing, is not.
"""

from __future__ import annotations

import errno
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import partial
from pathlib import Path

from conformance.faults import fidelity
from conformance.faults.lines import Lines, puts
from conformance.faults.model import Candidate, Stage
from conformance.faults.model import Kind as StateKind
from conformance.faults.model import Plan as States
from conformance.faults.oracle import Kind, Promises, UnplacedError, Verdict, acknowledgements, judge
from conformance.faults.recording import Recording, RecordingError, Sync, read
from conformance.faults.subject import History, Outcome, Subject, SubjectError, Workload, perform
from conformance.faults.tracer import Fault

# A layer stops at so many failures: one is enough to say no, some more help to see what they have in common.
MOST_FINDINGS = 5
# Fewer points than this show nothing: so many are tried whatever time they take, or all there are.
LEAST_TRIED = 8
# Of the states that a crash leaves, so many are the beginning of a recovery that is interrupted itself.
NESTED_STATES = 6


@unique
class Layer(StrEnum):
    """What is done to an implementation."""

    KILL = "kill"
    TORN_KILL = "kill within a write"
    POWER = "power loss"
    RECOVERY = "crash in recovery"
    ERRORS = "errors of calls"
    SHORT = "short writes"
    SYNC_ERRORS = "error of a sync, then power loss"


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that a layer broke. `point` is the operation of the recording behind or before which it struck.

    `story` says what was pending and lost, or what was done, so that a person can follow it. `kept` is the state of the
    disk as a tar file, beside which lies the recording; None if nothing is kept, or an earlier one of its class is.
    """

    point: int
    verdict: Verdict
    story: str
    kept: Path | None = None

    def __str__(self) -> str:
        """For a person."""
        return f"at operation {self.point}: {self.verdict}. {self.story}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a layer showed. `unproven` says in words why it is no pass although nothing was found; `tally` how much of
    what there is was tried, and from which seed."""

    layer: Layer
    tried: int
    total: int
    tally: str
    findings: tuple[Finding, ...] = ()
    unproven: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether something was tried, all that matters, and nothing was found."""
        return self.tried > 0 and not self.findings and not self.unproven


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


class RunError(Exception):
    """A recorded run that proves nothing; the text says why."""


class Sweep:
    """All layers against one implementation. Use as a context manager: its folders are gone afterwards.

    `subject` makes the implementation's subject for a restart, `traced` for a run under the tracer, which takes three
    to seven times as long (the same by default). Every run begins on a copy of `base`, or on an empty folder. `scratch`
    names files of the work directory that no promise is about. A layer tries `least` points whatever time they take.
    The first of each class that a layer finds is kept in `keep`: the state as LAYER-CLASS.tar, the recording beside it.
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
    ) -> None:
        self._subject, self._traced, self._base, self._least = subject, traced or subject, base, least
        self._workload, self._seed, self._scratch, self._keep = workload, seed, tuple(scratch), keep
        self._home = Path(tempfile.mkdtemp(prefix="holdfast-crash-", dir=parent))
        self._count = 0
        self._baseline: Run | None = None

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all folders. Again is nothing."""
        shutil.rmtree(self._home, ignore_errors=True)

    def baseline(self) -> Run:
        """A run in which nothing goes wrong; the same for all layers. Raises RunError."""
        if self._baseline is None:
            run = self._run(Fault())
            for one in run.history.asked:
                if one.answer.outcome is not Outcome.OK:
                    raise RunError(
                        f"operation {one.op.number} was answered with {one.answer.outcome} ({one.answer.text}) while "
                        "nothing went wrong; expected every operation of the workload to be accepted"
                    )
            self._faithful(run)
            self._confined()
            self._baseline = run
        return self._baseline

    def _confined(self) -> None:
        """That what it does lies in its work directory: in a folder in which nothing was done it must show nothing."""
        folder, _ = self._begun()
        subject = self._subject()
        try:
            subject.start(folder)
            found = subject.dump()
        except SubjectError as error:
            raise RunError(f"expected it to start where nothing was done yet, got: {error}") from error
        finally:
            with suppress(SubjectError):
                subject.stop()
            shutil.rmtree(folder, ignore_errors=True)
        if found != self._workload.before:
            raise RunError(
                "what it keeps does not lie in its work directory: in a folder in which no operation was done it shows "
                f"{sorted(found.items() - self._workload.before.items())[:1] or 'less than there was'}; have it keep "
                "everything there, its database as well"
            )

    def power_loss(self, seconds: float) -> Report:
        """Every state that a power loss may leave, the likeliest to show something first, for so many seconds.

        What is left at each acknowledgement of all that was not synced is always tried, whatever time it takes.
        """
        return self._reported(Layer.POWER, lambda report: self._power_loss(report, seconds))

    def recovery(self, seconds: float) -> Report:
        """Power losses while it recovers from a power loss."""
        return self._reported(Layer.RECOVERY, lambda report: self._nested(report, seconds))

    def kills(self, seconds: float, *, torn: bool = False) -> Report:
        """SIGKILL before operations of the run, spread over all of it; with `torn` in the middle of writes."""
        layer = Layer.TORN_KILL if torn else Layer.KILL
        return self._reported(
            layer,
            lambda report: self._struck(report, seconds, lambda number: Fault(kill=number, torn=torn), "killed before"),
        )

    def errors(self, seconds: float, error: int = errno.EIO) -> Report:
        """Calls on files that fail with `error` from an operation on. What is answered OK even so must be there."""
        name = errno.errorcode[error]
        return self._reported(
            Layer.ERRORS,
            lambda report: self._struck(
                report, seconds, lambda number: Fault(error=error, at=number), f"{name} from then on at"
            ),
        )

    def short_writes(self, seconds: float) -> Report:
        """Writes that do half of what they were asked, as on a disk that is about to be full."""
        return self._reported(
            Layer.SHORT,
            lambda report: self._struck(report, seconds, lambda number: Fault(short=number), "half a write at"),
        )

    def sync_errors(self, seconds: float) -> Report:
        """Syncs that fail once, and a power loss at the end: what a failed sync had to save is not saved by another."""
        return self._reported(Layer.SYNC_ERRORS, lambda report: self._sync_errors(report, seconds))

    def _reported(self, layer: Layer, work: Callable[[_Tally], None]) -> Report:
        began = time.monotonic()
        tally = _Tally(layer, self._least)
        try:
            work(tally)
        except (RunError, OSError) as error:
            tally.unproven.append(str(error))
        return Report(
            layer,
            tally.tried,
            tally.total,
            tally.words or f"{tally.tried} of {tally.total}, seed {self._seed}",
            tuple(tally.findings),
            tuple(tally.unproven),
            time.monotonic() - began,
        )

    def _power_loss(self, tally: _Tally, seconds: float) -> None:
        run = self.baseline()
        promises = run.promises
        states = States(run.recording, seed=self._seed, acknowledgements=promises.acknowledged.values())
        until = time.monotonic() + seconds
        for candidate in states:
            # Without these nothing is proven, so they have all the time that they take.
            owed = candidate.stage is Stage.ACKNOWLEDGED
            if tally.enough() or (time.monotonic() > until and not owed):
                break
            tally.tried += not candidate.again
            self._restarted(tally, candidate, promises, run.out)
        tally.total, tally.words = states.count(), states.tally(tally.tried)

    def _restarted(self, tally: _Tally, candidate: Candidate, promises: Promises, out: Path, prefix: str = "") -> None:
        """Restart on one state, and judge it by the promises at all points at which it is legal."""
        numbers = candidate.numbers
        with self._folder() as folder:
            candidate.state.write(folder)
            verdict = judge(self._subject(), folder, self._workload, promises.must(*numbers), promises.may(*numbers))
        if verdict.kind is not Kind.CLEAN:
            kept = self._kept(tally, verdict, candidate.state.write, out)
            tally.findings.append(Finding(numbers[-1], verdict, prefix + _story(promises, candidate), kept))

    def _kept(self, tally: _Tally, verdict: Verdict, fill: Callable[[Path], object], out: Path) -> Path | None:
        """The tar file of what `fill` puts into a folder, if it is the first of its class in this layer."""
        if self._keep is None or any(one.verdict.kind is verdict.kind for one in tally.findings):
            return None
        self._keep.mkdir(parents=True, exist_ok=True)
        place = self._keep / f"{tally.layer.name.lower().replace('_', '-')}-{verdict.kind.value}"
        shutil.copyfile(out, place.with_suffix(".jsonl"))
        with self._folder() as folder:
            fill(folder)
            return Path(shutil.make_archive(str(place), "tar", folder))

    def _nested(self, tally: _Tally, seconds: float) -> None:
        run = self.baseline()
        until = time.monotonic() + seconds
        outermost = run.promises
        outer = States(run.recording, seed=self._seed, acknowledgements=outermost.acknowledged.values())
        firsts = [one for one in _until(outer, Stage.PARTED) if not one.again]
        # Spread over the run: recoveries differ by what there is to recover.
        step = max(1, len(firsts) // NESTED_STATES)
        for first in firsts[::step]:
            if tally.over(until):
                break
            must, may = outermost.must(*first.numbers), outermost.may(*first.numbers)
            with self._folder() as folder:
                first.state.write(folder)
                # A state that breaks a promise by itself says nothing of what recovers from it.
                if judge(self._subject(), folder, self._workload, must, may).kind is not Kind.CLEAN:
                    continue
            again, out = self._recovery(first)
            inner = States(again, seed=self._seed, acknowledgements=())
            # All of them were made before the recovery began.
            promises = Promises(dict.fromkeys(may, 0), dict.fromkeys(must, 0))
            last = first.numbers[-1]
            where = f"After a power loss at operation {last} ({first.at(last).text}), while it recovered: "
            for candidate in _until(inner, Stage.PARTED):
                if tally.over(until):
                    break
                tally.tried += not candidate.again
                self._restarted(tally, candidate, promises, out, where)
            tally.total += sum(not one.again for one in _until(inner, Stage.PARTED))

    def _recovery(self, first: Candidate) -> tuple[Recording, Path]:
        """The recording of a start on this state, and its file. Raises RunError."""
        folder, out = self._place()
        first.state.write(folder)
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

    def _struck(self, tally: _Tally, seconds: float, fault: Callable[[int], Fault], words: str) -> None:
        """Runs with one fault each, at numbers spread over the baseline's."""
        run = self.baseline()
        numbers = [one.number for one in run.recording.operations]
        until = time.monotonic() + seconds
        tally.total = len(numbers)
        for number in _spread(numbers, self._seed):
            if tally.over(until):
                break
            struck = self._run(fault(number), whole=False)
            if not struck.recording.ending.fired:
                # The run was shorter this time: nothing was tried.
                continue
            tally.tried += 1
            # The judge uses the folder up.
            before = self._copied(struck.folder)
            verdict = judge(self._subject(), struck.folder, self._workload, struck.history.must, struck.history.may)
            if verdict.kind is not Kind.CLEAN:
                kept = None if before is None else self._kept(tally, verdict, partial(_copy, before), struck.out)
                tally.findings.append(Finding(number, verdict, f"It was {words} operation {number}.", kept))
            for folder in filter(None, (before, struck.folder)):
                shutil.rmtree(folder, ignore_errors=True)
        tally.words = f"{tally.tried} of {tally.total} points, seed {self._seed}"

    def _sync_errors(self, tally: _Tally, seconds: float) -> None:
        run = self.baseline()
        until = time.monotonic() + seconds
        syncs = [one.number for one in run.recording.operations if isinstance(one.action, Sync)]
        tally.total = len(syncs)
        for number in _spread(syncs, self._seed):
            if tally.over(until):
                break
            struck = self._run(Fault(error=errno.EIO, at=number, once=True), whole=False)
            if not struck.recording.ending.fired:
                continue
            tally.tried += 1
            promises = struck.promises
            states = States(struck.recording, seed=self._seed, acknowledgements=promises.acknowledged.values())
            for candidate in _until(states, Stage.ORDERED):
                if candidate.state.kind is StateKind.MINIMUM:
                    before = len(tally.findings)
                    what = f"The sync of operation {number} had failed. "
                    self._restarted(tally, candidate, promises, struck.out, what)
                    if len(tally.findings) > before:
                        break
            shutil.rmtree(struck.folder, ignore_errors=True)
        tally.words = f"{tally.tried} of {tally.total} syncs, seed {self._seed}"

    def _run(self, fault: Fault, *, whole: bool = True) -> Run:
        """The workload, recorded. Raises RunError; a start that fails is one only if nothing was to go wrong."""
        folder, out = self._begun()
        subject = self._traced()
        history = History(())
        try:
            subject.start(folder, fault.argv(out, folder))
            history = perform(subject, self._workload)
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
        if self._keep is None:
            return None
        into, _ = self._place()
        _copy(folder, into)
        return into

    def _faithful(self, run: Run) -> None:
        differing = fidelity.differences(run.recording, run.folder, self._scratch)
        if differing:
            raise RunError(f"the recording does not explain these files: {', '.join(differing[:5])}")

    def _begun(self) -> tuple[Path, Path]:
        """A work directory for a run, and where its recording goes."""
        folder, out = self._place()
        if self._base is not None:
            _copy(self._base, folder)
        return folder, out

    def _place(self) -> tuple[Path, Path]:
        """An empty work directory, and where its recording goes."""
        self._count += 1
        folder = self._home / f"work-{self._count}"
        folder.mkdir()
        return folder, self._home / f"recording-{self._count}"

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder, _ = self._place()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


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


class _Tally:
    """What a layer has seen so far."""

    def __init__(self, layer: Layer, least: int) -> None:
        self.layer = layer
        self.least = least
        self.tried = 0
        self.total = 0
        self.words = ""
        self.findings: list[Finding] = []
        self.unproven: list[str] = []

    def over(self, until: float) -> bool:
        """Whether a layer stops: at this time of the monotonic clock, but not before it has tried what it must."""
        return self.enough() or (time.monotonic() > until and self.tried >= self.least)

    def enough(self) -> bool:
        """Whether a layer can stop. What is lost before the first acknowledgement is no broken promise."""
        return sum(one.verdict.kind is not Kind.INIT for one in self.findings) >= MOST_FINDINGS


def _copy(folder: Path, into: Path) -> None:
    """Everything in a folder into an empty one, but for sockets, which mean nothing without their process."""

    def without(inside: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(inside, name).is_socket() or Path(inside, name).is_fifo()]

    shutil.copytree(folder, into, symlinks=True, dirs_exist_ok=True, ignore=without)


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


def _spread(numbers: Sequence[int], seed: int) -> Sequence[int]:
    """All of them, in an order that covers the whole range early: wherever the time ends, it ended everywhere."""
    drawn = random.Random(seed)  # noqa: S311  drawn anew from the same seed, nothing to guard
    return drawn.sample(numbers, len(numbers))


def _story(promises: Promises, candidate: Candidate) -> str:
    """What was acknowledged at the last point at which the disk may look so, and what of it the disk did not have."""
    last = candidate.numbers[-1]
    text = candidate.at(last).text
    before = [(number, op) for op, number in promises.acknowledged.items() if 0 < number <= last]
    if not before:
        return f"{text[:1].upper()}{text[1:]}."
    event, op = max(before)
    return f"The acknowledgement of operation {op} of the workload left at event {event}; then: {text}."
