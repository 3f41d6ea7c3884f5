"""A process that runs tests against mutants: one task on a line of its input, its results on lines of its output.

An engine holds what is global to a process (the helper of inspections, signals), so mutants that run at the same time
have a process each. It ends with its input, and all that it started with it.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.adapter.process import Start, in_a_new_process
from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.settings import REFERENCE, RunSettings
from holdfast.conformance.selfcheck.automatic import source_of
from holdfast.conformance.selfcheck.tasks import (
    Attack,
    Beginning,
    End,
    Harvest,
    Outcome,
    Planting,
    Shown,
    Task,
    Trace,
    Traced,
    Trial,
)
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.environment import adapter_environment
from holdfast.servers.errors import StartError
from holdfast.servers.forkserver import ForkServer
from holdfast.servers.janitor import Janitor
from holdfast.servers.pace import measured
from holdfast.specs import Contract, load_contract
from holdfast.specs.registry import Package, installed

# The variable of `python -m holdfast.reference_impl`.
TRACE = "HOLDFAST_TRACE"
# Traced code is slower by less than that.
TRACED_SLOW = 3.0
# A test that the machine was too busy for is tried again.
_TRIES = 3
# All tests of one task, in seconds. What is not tried by then counts as survived.
MOST_S = 300.0
# So much of what a test says is kept.
_SHOWN = 300
_CRASHES = (FailureMode.CRASH, FailureMode.EOF, FailureMode.GARBAGE)


class MutantEngine(Engine):
    """An engine whose adapter changes from mutant to mutant, while launcher, folders and janitor stay."""

    def __init__(self, settings: RunSettings, contract: Contract) -> None:
        super().__init__(settings)
        self._contract = contract
        self._planned = {planned.id: planned for planned in plan_of(contract)}

    def __enter__(self) -> MutantEngine:
        super().__enter__()
        self._stack.callback(lambda: self.pool.abort())
        return self

    def take(self, adapter: Sequence[str], start: Start) -> None:
        """From now on tests are of this adapter. The one before it ends at once."""
        self.pool.abort()
        self.pool = WorkerPool(replace(self.pool.command, argv=tuple(adapter), start=start), janitor=self._janitor)
        self._greeting = None

    def run(self, case: str) -> CaseResult:
        """Run one case of the plan. Raises StartError if the launcher does not start."""
        return self.run_planned(self._contract, self._planned[case])


def forked_by(forkserver: ForkServer) -> Start:
    """Starts an adapter of the reference as a fork of the fork server."""
    return lambda command, environment: forkserver.start(command[len(REFERENCE) :], environment)


class Lines:
    """The shared file in which traced processes mark the lines that they execute."""

    def __init__(self, folder: Path, files: Mapping[str, int], root: Package) -> None:
        self._path, self.settings = folder / "lines", folder / "trace.json"
        self._offsets: dict[str, int] = {}
        self._size = 0
        for name, lines in files.items():
            self._offsets[name] = self._size
            self._size += lines + 1
        self._lengths = files
        self.clear()
        modules = {root.module_in(name): offset for name, offset in self._offsets.items()}
        self.settings.write_text(json.dumps({"map": str(self._path), "modules": modules}), encoding="utf-8")

    def clear(self) -> None:
        """Forget all marks. The file itself stays, because processes have it mapped."""
        if not self._path.exists():
            self._path.write_bytes(bytes(self._size))
            return
        with self._path.open("r+b") as file:
            file.write(bytes(self._size))

    def marked(self) -> dict[str, tuple[int, ...]]:
        """The marked lines of each file that has any."""
        data = self._path.read_bytes()
        found = {}
        for name, offset in self._offsets.items():
            lines = tuple(line for line in range(1, self._lengths[name] + 1) if data[offset + line])
            if lines:
                found[name] = lines
        return found


class Worker:
    """The beds of one contract, one for each store, and the fork servers of their adapters."""

    def __init__(self, beginning: Beginning, stack: ExitStack) -> None:
        self._contract = load_contract(beginning.contract)
        self._seed = beginning.seed
        self._stack = stack
        self._janitor = stack.enter_context(Janitor())
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._janitor.make_folder())))
        self._lines = Lines(self._folder, beginning.files, installed(beginning.contract).reference.above)
        # Of what it forks and of what asks it: both must have one factor.
        self._pace = measured(self._folder)
        self._beds: dict[str, MutantEngine] = {}
        self._tracing: dict[str, MutantEngine] = {}
        self._fork_servers: dict[bool, ForkServer] = {}
        self._sound: dict[Trial, bool] = {}

    def done(self, task: Task) -> Iterator[Traced | Outcome | Harvest]:
        """The results of a task."""
        if isinstance(task, Trace):
            yield from self._trace(task.tests)
        elif isinstance(task, Planting):
            yield self._planted(task)
        else:
            yield self._attack(task)

    def _settings(
        self, store: str, *, mutant: Sequence[str] = (), slow: float = 1.0, traced: bool = False
    ) -> RunSettings:
        return RunSettings(
            adapter=(*REFERENCE, "adapter", *mutant),
            contracts=(self._contract.name,),
            seed=self._seed,
            launcher=(*REFERENCE, "launch", *mutant),
            config={"store": store},
            slow=slow,
            passed_environment=(TRACE,) if traced else (),
            pace=self._pace,
        )

    def _forkserver(self, *, traced: bool) -> ForkServer:
        """What is traced is never changed, so its forks have no need to import the reference again."""
        if traced not in self._fork_servers:
            words = ("--keep",) if traced else ()
            self._fork_servers[traced] = self._stack.enter_context(self._begun(words, traced=traced))
        return self._fork_servers[traced]

    def _begun(self, words: Sequence[str], *, traced: bool = False) -> ForkServer:
        slow = self._pace.factor * (TRACED_SLOW if traced else 1.0)
        environment = adapter_environment((TRACE,) if traced else (), slow=slow)
        command = (*REFERENCE, "forkserver", "--contract", self._contract.name, *words)
        return ForkServer(command, janitor=self._janitor, environment=environment)

    # What a test executes

    def _trace(self, tests: Sequence[Trial]) -> Iterator[Traced]:
        os.environ[TRACE] = str(self._lines.settings)
        try:
            for store in dict.fromkeys(test.store for test in tests):
                if store not in self._tracing:
                    bed = MutantEngine(self._settings(store, slow=TRACED_SLOW, traced=True), self._contract)
                    self._tracing[store] = self._stack.enter_context(bed)
                    self._lines.clear()
                    bed.provision(self._contract.name)
                    yield Traced(Trial(store, ""), conforms=True, seconds=0.0, lines=self._lines.marked())
                yield from (self._traced(self._tracing[store], test) for test in tests if test.store == store)
        finally:
            del os.environ[TRACE]

    def _traced(self, bed: MutantEngine, test: Trial) -> Traced:
        # In fresh processes: what one remembers from an earlier test, it does not execute again.
        bed.take((*REFERENCE, "adapter"), forked_by(self._forkserver(traced=True)))
        self._lines.clear()
        result = bed.run(test.case)
        judged = result.judgement
        conforms = judged.verdict is Verdict.CONFORMS
        return Traced(
            test,
            conforms,
            result.seconds,
            self._lines.marked(),
            "" if conforms else f"{judged.verdict.value}: {judged.detail}",
        )

    # What finds a planted bug

    def _planted(self, task: Planting) -> Harvest:
        # Another contract may have a bug of that name.
        words, shown = ("--mutant", f"{self._contract.name}/{task.mutant}"), list[Shown]()
        left = task.enough or math.inf
        try:
            for forked, cases in ((True, task.cases), (False, task.faults)):
                if cases and left:
                    with ExitStack() as own:
                        forkserver = self._keeping(task, words, own) if forked else None
                        bed = self.own_bed(task.store, words, own, forkserver)
                        for case in cases:
                            shown.append(_shown(bed.run(case)))
                            left -= shown[-1].verdict != Verdict.CONFORMS.value
                            if not left:
                                break
        except StartError as error:
            return Harvest(task.mutant, tuple(shown), f"the launcher: {error}")
        return Harvest(task.mutant, tuple(shown))

    def _keeping(self, task: Planting, words: Sequence[str], stack: ExitStack) -> ForkServer:
        """What forks the adapters of a planted bug, none of which has to import the reference again.

        Where a few cases are enough, an import in each fork costs less than one more process that has done it.
        """
        if task.enough:
            return self.importing()
        return stack.enter_context(self._begun(("--keep", *words)))

    # What finds a mutant

    def _attack(self, attack: Attack) -> Outcome:
        started = time.monotonic()
        # A reference that is edited meanwhile fails at every test, which would look like a kill.
        source_of(attack.site)
        path = self._folder / "mutant.json"
        path.write_bytes(msgspec.json.encode(attack.site))
        with ExitStack() as own:
            beds = _Beds(self, attack, ("--mutant", str(path)), own)
            outcome = self._until_killed(attack, beds, started)
        seconds = round(time.monotonic() - started, 3)
        return msgspec.structs.replace(outcome, seconds=seconds, launched=attack.launched)

    def _until_killed(self, attack: Attack, beds: _Beds, started: float) -> Outcome:
        tried, name = 0, attack.site.id
        for test in (*attack.tests, *attack.faults):
            if time.monotonic() - started > MOST_S:
                return Outcome(name, End.NOT_TRIED, tried, detail=f"its first {tried} tests took {MOST_S:g} s")
            try:
                judged = _judged(beds.of(test), test)
            except StartError as error:
                return Outcome(name, End.CRASHED, tried, by=test, detail=f"the launcher: {error}"[:_SHOWN])
            tried += 1
            end = _end_of(judged)
            # A busy machine fails a test now and then, in ways that no look at processes shows: once is no kill.
            if end is not None and end.is_kill and _end_of(_judged(beds.of(test), test)) is None:
                continue
            if end is not None and test in attack.faults and not self._is_sound(test):
                continue
            if end is not None and end.is_kill and not beds.are_sound(test):
                judged = _judged(beds.of(test), test)
                end = _end_of(judged)
                beds.are_sound(test)
            if end is not None:
                verdict = judged.verdict.value
                return Outcome(name, end, tried, by=test, verdict=verdict, detail=judged.detail[:_SHOWN])
        return Outcome(name, End.SURVIVED, tried)

    def shared_bed(self, store: str, adapter: Sequence[str]) -> MutantEngine:
        """A bed with the launcher of the unchanged reference."""
        if store not in self._beds:
            self._beds[store] = self._stack.enter_context(MutantEngine(self._settings(store), self._contract))
        self._beds[store].take(adapter, forked_by(self.importing()))
        return self._beds[store]

    def leave(self, store: str) -> None:
        """The next shared bed of this store is a new one."""
        self._beds.pop(store).pool.abort()

    def importing(self) -> ForkServer:
        """What forks the adapters of a mutant that changes a source: each imports the reference."""
        return self._forkserver(traced=False)

    def own_bed(
        self, store: str, mutant: Sequence[str], stack: ExitStack, forkserver: ForkServer | None
    ) -> MutantEngine:
        """A bed whose launcher has the mutant too. A layer of faults records a process of its own, not a fork."""
        bed = stack.enter_context(MutantEngine(self._settings(store, mutant=mutant), self._contract))
        bed.take((*REFERENCE, "adapter", *mutant), forked_by(forkserver) if forkserver else in_a_new_process)
        return bed

    def _is_sound(self, test: Trial) -> bool:
        """Whether the unchanged reference conforms to a fault. Faults are not traced, so this is found when needed."""
        if test not in self._sound:
            with MutantEngine(self._settings(test.store), self._contract) as bed:
                self._sound[test] = bed.run(test.case).judgement.verdict is Verdict.CONFORMS
        return self._sound[test]


class _Beds:
    """The beds of one mutant, made when they are needed."""

    def __init__(self, worker: Worker, attack: Attack, mutant: Sequence[str], stack: ExitStack) -> None:
        self._worker, self._attack, self._mutant, self._stack = worker, attack, mutant, stack
        self._made: dict[tuple[str, bool], MutantEngine] = {}

    def of(self, test: Trial) -> MutantEngine:
        """The bed for that test."""
        fault = test in self._attack.faults
        key = test.store, fault
        if key not in self._made:
            if fault or self._attack.launched:
                forkserver = None if fault else self._worker.importing()
                bed = self._worker.own_bed(test.store, self._mutant, self._stack, forkserver)
            else:
                bed = self._worker.shared_bed(test.store, (*REFERENCE, "adapter", *self._mutant))
            self._made[key] = bed
        return self._made[key]

    def are_sound(self, test: Trial) -> bool:
        """Whether the unchanged reference conforms to this test here; if it does not, the next bed is a new one.

        A mutant can write into what the sessions of a shared bed begin with, and all later ones would fail.
        """
        key = test.store, test in self._attack.faults
        if key[1] or self._attack.launched:
            return True
        del self._made[key]
        bed = self._worker.shared_bed(test.store, (*REFERENCE, "adapter"))
        sound = _judged(bed, test).verdict is Verdict.CONFORMS
        if not sound:
            self._worker.leave(test.store)
        return sound


def _shown(result: CaseResult) -> Shown:
    judged = result.judgement
    seconds = round(result.seconds, 3)
    return Shown(result.case, result.clauses, judged.verdict.value, judged.detail[:_SHOWN], seconds)


def _judged(bed: MutantEngine, test: Trial) -> Judgement:
    """The judgement; again, if the machine was too busy for one."""
    for _ in range(_TRIES):
        judged = bed.run(test.case).judgement
        if judged.silence is not FailureMode.BUSY:
            break
    return judged


def _end_of(judged: Judgement) -> End | None:
    """What a judgement means for a mutant; None if it conforms."""
    if judged.verdict is Verdict.CONFORMS:
        return None
    if judged.silence is FailureMode.BUSY:
        return End.NOT_TRIED
    if judged.verdict is Verdict.KIT_FAULT:
        return End.KIT_FAULT
    if judged.silence is FailureMode.HANG:
        return End.TIMED_OUT
    return End.CRASHED if judged.silence in _CRASHES else End.KILLED


def main() -> None:
    """Serve tasks until the end of the input."""
    with ExitStack() as stack:
        lines = iter(sys.stdin.buffer)
        worker = Worker(msgspec.json.decode(next(lines), type=Beginning), stack)
        for line in lines:
            for result in worker.done(msgspec.json.decode(line, type=Task)):
                sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
                sys.stdout.flush()
            sys.stdout.buffer.write(b"\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
