"""Puts one workload of a contract through the fault layers: prepares it once, records it once, runs each layer."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from holdfast.conformance.adapter.fake_broker import FakeBroker
from holdfast.conformance.adapter.worker import AdapterCommand, Worker
from holdfast.conformance.cases.expect import FAULTED
from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.cases.values import shift
from holdfast.conformance.durability.subject import AdapterSubject, Terms, judgement_of
from holdfast.conformance.durability.verdicts import (
    BY_SIGNALS,
    LAYERS,
    OUT_OF_REACH,
    LayerReport,
    how_of,
    is_recorded,
    judged,
    read,
    report_of,
    strikes_twice,
)
from holdfast.conformance.durability.verdicts import not_tested as judged_untested
from holdfast.conformance.durability.workload import (
    answers_of,
    changed,
    opened_at,
    scopes_of,
    seed_of,
    with_gone,
    workload_of,
)
from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.dependencies import Dependencies, Finished, Made, Promise
from holdfast.conformance.faults.deprived import judge_deprived
from holdfast.conformance.faults.helpers import kills_by_signal
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.probe import Probe, probe
from holdfast.conformance.faults.report import BrokenPromise, Layer, RunError, SweepReport, Tally, Trial
from holdfast.conformance.faults.subject import Facts, Op, Outcome, SubjectError
from holdfast.conformance.faults.sweep import Sweep, self_test
from holdfast.conformance.verdict import FailureMode
from holdfast.servers.janitor import Janitor
from holdfast.servers.pace import slowed
from holdfast.specs import Contract
from holdfast.specs.faults import FaultCase, FaultLayer, FaultWorkload, method_of
from holdfast.specs.faults import Promise as Judged

# Under the tracer an adapter takes three to seven times as long, on a busy machine more.
_SLOWER = 10.0
# An answer to a command has to wait for the start of a program, which takes a busy machine longer than a request.
_STARTING = 5.0
# The floor of a layer that strikes in a recording holds this number of points or states that differ in kind.
_KINDS = 10
# Of each operation, where they differ.
_KINDS_OF_EACH = 2

# A try is a run and two restarts.
_STARTS = 3

# What a clock that is stepped is stepped by: beyond every window, and beyond every retention of a day or a month.
_STEPS = {Layer.CLOCK_BACK: "-1d", Layer.CLOCK_FORWARD: "+400d"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how the workloads of a contract are run. `keep` is for states that break a promise; None keeps none."""

    contract: Contract
    command: AdapterCommand
    janitor: Janitor
    config: Mapping[str, str]
    not_claimed: Mapping[str, str]
    root: Path
    seed: str
    epoch_us: int
    seconds: float
    thorough: float
    keep: Path | None


class Proving:
    """A workload against one adapter. Call `close` at the end: it ends the processes and removes the folders."""

    def __init__(self, setting: Setting, spec: FaultWorkload) -> None:
        self._setting, self._spec = setting, spec
        runs_commands = any("command" in step for step in spec.steps)
        self._command = setting.command
        if runs_commands:
            # An adapter that limits its own waiting finds the factor in its environment.
            environment = slowed(self._command.environment, _STARTING)
            deadlines = self._command.deadlines.scaled(_STARTING)
            self._command = replace(self._command, deadlines=deadlines, environment=environment)
        self._spare: Worker | None = None
        self._sweep: Sweep | None = None
        self._dependencies: dict[Judged, Dependencies] = {}
        # Short: the path of a socket below it may have little more than a hundred bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="f", dir=setting.root))
        # A store may run under an account of its own, which needs access to this folder.
        self._folder.chmod(0o755)
        # The fault-free exchanges: those when the store was made and inspected stand beside every layer, those of the
        # recording beside the layers that rest on recordings.
        self._made: list[Record] = []
        self._recorded: list[Record] = []
        # Why the fault-free run could not be recorded; empty until an attempt failed.
        self._unmade: tuple[str, ...] = ()
        scopes = scopes_of(spec, contract=setting.contract.name, seed=setting.seed)
        self._terms = Terms(
            contract=setting.contract,
            spec=spec,
            scopes=scopes,
            config=setting.config,
            not_claimed=setting.not_claimed,
            deadlines=self._command.deadlines,
            digits=seed_of(scopes),
            epoch_us=setting.epoch_us,
            peer=FakeBroker(answers_of(spec, scopes)) if spec.answers else None,
        )

    def close(self) -> None:
        """End the waiting process, and remove every folder. Idempotent."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.kill()
        if self._sweep is not None:
            self._sweep.close()
        if self._terms.peer is not None:
            self._terms.peer.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def judge(self, fault: FaultCase) -> tuple[Judgement, tuple[Record, ...]]:
        """Let the fault of this case strike, and judge what it left; with everything for the evidence."""
        untested = not_tested() if is_recorded(fault.layer) else ""
        if untested and fault.layer is not FaultLayer.KILL:
            return judged_untested(fault, untested), ()
        try:
            sweep = self._prepared()
        except (SubjectError, RunError) as error:
            detail = f"the workload could not be prepared while nothing went wrong: {error}"
            judgement = replace(judgement_of(error), detail=detail)
            return judgement.placed(Side.MAIN, len(self._made) - 1 if self._made else None), tuple(self._made)
        before = len(self._terms.faulted)
        # A weaker layer: it shows what a kill can show by itself, and proves nothing.
        report = kills_by_signal(sweep, self._setting.seconds) if untested else self._struck(sweep, fault)
        said = self._terms.faulted[before:]
        if said and report.clean and report.layer in OUT_OF_REACH:
            # A reported failure is neither an acceptance nor a refusal, and a refusal is due.
            words = f"while its store was out of reach {said[0]}; it must be refused"
            report = replace(report, unproven=(words,))
        how = BY_SIGNALS if untested else how_of(fault.layer)
        evidence = report_of(report, how=how, seed=sweep.seed, untested=untested, silence=self._mode(*report.unproven))
        # Judged from the records alone: the gate judges it again from them.
        records = self._evidence(fault, evidence)
        return judged(fault, read(evidence.detail())).placed(Side.MAIN, records[-1].n), records

    def _mode(self, *said: str) -> FailureMode | None:
        """The failure mode that kept a layer from proving anything, as reported; None if it has none."""
        if any(words in self._terms.busy for words in said):
            return FailureMode.BUSY
        return FailureMode.FAULT if any(FAULTED in words for words in said) else None

    def _evidence(self, fault: FaultCase, evidence: LayerReport) -> tuple[Record, ...]:
        """The exchanges of the fault-free run, and the report of the layer."""
        done = {"kind": "done", "detail": evidence.detail()}
        recorded = self._recorded if is_recorded(fault.layer) else ()
        records = [*self._made, *recorded, Record(0, fault.layer.value, 0, None, None, done, None, None)]
        return tuple(replace(record, n=number) for number, record in enumerate(records))

    def _struck(self, sweep: Sweep, fault: FaultCase) -> SweepReport:
        layer = LAYERS[fault.layer]
        if layer.is_recorded:
            if self._unmade:
                # Its time is long, and an answer that it missed will not come for this layer either.
                return SweepReport(layer, 0, 0, "0 of 0, not tried", unproven=self._unmade)
            report = self._tried(sweep.trial(layer), fault)
            # A machine that was too busy may be quieter now.
            known = sweep.recorded or self._mode(*report.unproven) is FailureMode.BUSY
            self._unmade = () if known else report.unproven
            return report
        if layer in _STEPS:
            return stepped(sweep, self._without(Judged.REFUSED).finished, self._at, layer, _STEPS[layer])
        return self._tried(self._without(fault.promise).trial(layer), fault)

    def _tried(self, trial: Trial, fault: FaultCase) -> SweepReport:
        """The report of a layer that was given its floor, as the contract states it, and its time."""
        trial.tally.floor = math.ceil(fault.least * self._setting.thorough)
        return trial.report(self._setting.seconds)

    def _without(self, promised: Judged) -> Dependencies:
        """The layers that take something away, under a promise; their start state is made once for each."""
        if promised not in self._dependencies:
            promise = Promise.NEVER_WRONG if promised is Judged.NEVER_WRONG else Promise.DETECTS
            # The adapter does not provision its store: a store that it makes again was never inspected.
            self._dependencies[promised] = Dependencies(self._prepared(), promise=promise, made=Made.BY_OTHERS)
        return self._dependencies[promised]

    def _at(self, step: str) -> AdapterSubject:
        return AdapterSubject(self._worker, self._terms, clock=shift(opened_at(self._spec), step))

    def _prepared(self) -> Sweep:
        """The sweep; the first call prepares everything. Raises SubjectError."""
        if self._sweep is not None:
            return self._sweep
        self._made.clear()
        base, beside = self._folder / "base", self._folder / "beside"
        for folder in (base, beside):
            # The rest of an attempt that failed.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        self._prepare(base)
        # An observation may leave traces, above all an audit record of each question; so a copy is observed.
        copy(base, beside)
        before, learned = self._rehearsed(beside)
        shutil.rmtree(beside, ignore_errors=True)
        try:
            workload = workload_of(self._spec, self._terms.scopes, before, learned)
        except ValueError as error:
            # An adapter that issues one nonce for all operations makes them alike.
            raise SubjectError(f"its answers leave the operations of the workload alike: {error}") from error
        self._sweep = Sweep(
            lambda: AdapterSubject(self._worker, self._terms),
            workload,
            traced=self._traced,
            base=base,
            seed=int(self._terms.digits, 16),
            further=math.ceil(_kinds_of(self._spec) * self._setting.thorough),
            parent=self._folder,
            keep=self._setting.keep,
            played=() if self._terms.peer is None else (self._terms.peer.address,),
        )
        return self._sweep

    def _prepare(self, base: Path) -> None:
        subject = AdapterSubject(self._worker, self._terms, log=self._made)
        try:
            subject.open(base, "fresh")
            scopes = {}
            for number, scope in self._terms.scopes.items():
                for step in self._spec.prepared(number):
                    scope = subject.prepare(step, scope)
                scopes[number] = scope
            self._terms = replace(self._terms, scopes=scopes)
            subject.close()
        finally:
            with suppress(SubjectError):
                subject.stop()

    def _rehearsed(self, folder: Path) -> tuple[Facts, Mapping[int, Facts] | None]:
        """The facts before the operations; where these do not say what they set, what each has changed of them."""
        subject = AdapterSubject(self._worker, self._terms, log=self._made)
        learned: dict[int, Facts] = {}
        try:
            subject.start(folder)
            before = shown = subject.dump()
            for number in sorted(self._terms.scopes) if self._spec.each else ():
                op = Op(number, method_of(self._spec.step(number)), {})
                answer = subject.ask(op)
                if answer.outcome is not Outcome.OK:
                    raise SubjectError(
                        f"expected {op.text} {number} to be accepted, got: {answer.outcome} {answer.text}"
                    )
                found = subject.dump()
                learned[number], shown = changed(shown, found), found
        finally:
            with suppress(SubjectError):
                subject.stop()
        if not self._spec.each:
            return before, None
        self._terms = replace(self._terms, known=frozenset(name for facts in learned.values() for name in facts))
        return with_gone(before, self._terms.known), learned

    def _traced(self) -> AdapterSubject:
        usual = self._command.deadlines
        # The tracer ends after its program, and the kit waits for that.
        slower = replace(usual.scaled(_SLOWER), quit=usual.quit)
        # Until the recording is there, each run is an attempt at the fault-free run.
        log: list[Record] | None = None
        if self._sweep is not None and not self._sweep.recorded:
            log = self._recorded = []

        def spawn(under: Sequence[str]) -> Worker:
            return self._started(replace(self._command, deadlines=slower), under)

        return AdapterSubject(spawn, replace(self._terms, deadlines=slower), log=log)

    def _worker(self, under: Sequence[str]) -> Worker:
        """A process without a session. The next one starts meanwhile: most of a restart is an interpreter's start."""
        if under:
            return self._started(self._command, under)
        worker, self._spare = self._spare, None
        if worker is None or worker.dead is not None:
            worker = self._started(self._command)
        self._spare = self._started(self._command)
        return worker

    def _started(self, command: AdapterCommand, under: Sequence[str] = ()) -> Worker:
        command = replace(command, argv=(*under, *command.argv))
        return Worker(command, janitor=self._setting.janitor, number=0, epoch_ns=0)


def starts_at_floors(contract: Contract) -> int:
    """About how many starts of an adapter the faults of a contract take until every layer has reached its floor."""
    tries = 0
    for fault in contract.faults:
        spec = contract.work_of(fault)
        owed = max(fault.least, _kinds_of(spec)) if is_recorded(fault.layer) else fault.least
        # The second session owes half as much as the first, and with operations of its own as much.
        tries += owed * (4 if spec.each else 3) // 2 if strikes_twice(fault) else owed
    return tries * _STARTS


def _kinds_of(spec: FaultWorkload) -> int:
    """How many points or states that differ in kind the floor of a layer holds."""
    return _KINDS_OF_EACH * len(spec.each) or _KINDS


def stepped(
    sweep: Sweep, finished: Callable[[], Finished], subject: Callable[[str], AdapterSubject], layer: Layer, step: str
) -> SweepReport:
    """Moves the clock by `step` while the store stays: acknowledged operations must not be new again, nor be gone."""

    def work(tally: Tally) -> Iterator[None]:
        begun = finished()
        tally.total = 1
        yield
        with sweep.workspace.folder(begun.folder) as folder:
            without = judge_deprived(
                subject(step), folder, sweep.workload, begun.acknowledged, begun.acknowledged, begun.late
            )
            verdict = without.verdict
            if verdict.kind is CrashClass.CLEAN:
                there = begun.acknowledged | without.done
                verdict = judge(subject("+0s"), folder, sweep.workload, there, there | {op.number for op in begun.late})
        tally.tried = 1
        if verdict.kind is not CrashClass.CLEAN:
            tally.findings.append(BrokenPromise(1, verdict, f"The clock had gone by {step}.", what="step"))

    return sweep.trial(layer, work).report()


@cache
def not_tested() -> str:
    """Why this machine can judge nothing that rests on recordings; empty if it can."""
    return probed().tracer or self_test()


@cache
def probed() -> Probe:
    """The capabilities of this machine, determined once."""
    return probe()
