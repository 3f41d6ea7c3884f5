"""The engine of a run: it has janitor, launcher, workers and workdirs, and runs one case after the other."""

from __future__ import annotations

import contextlib
import hashlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast import lacked
from holdfast.conformance.adapter.forks import Forks
from holdfast.conformance.adapter.pool import Exhausted, WorkerPool
from holdfast.conformance.adapter.process import Start, in_a_new_process
from holdfast.conformance.adapter.starvation import SERVERS
from holdfast.conformance.adapter.worker import AdapterCommand, Greeting, GreetingError
from holdfast.conformance.attacks.bench import Bench, Limits, judge_volatile
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import CaseResult, Judgement, NonConformance, Record, Side, exhausted
from holdfast.conformance.cases.session import CONCURRENCY, KILLABLE, carried_out
from holdfast.conformance.durability.proving import Proving, Setting
from holdfast.conformance.inspection.beyond import begin
from holdfast.conformance.inspection.helper import HELPER
from holdfast.conformance.run.interpret import interpret, worker_count
from holdfast.conformance.run.judge import both
from holdfast.conformance.run.plan import Form, PlannedCase, preflight_of, suite_case_id, suite_tests
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.run.surface import observe, unseen
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.reports.evidence import SurfaceLine
from holdfast.servers.environment import adapter_environment
from holdfast.servers.errors import StartError
from holdfast.servers.folders import VOLATILE, default_parent, filesystem_of, temp_folders_in
from holdfast.servers.janitor import Janitor
from holdfast.servers.launcher import Launcher
from holdfast.servers.pace import adopted, measured
from holdfast.servers.serving import Stores
from holdfast.specs import Case, Contract
from holdfast.specs.faults import FaultCase
from holdfast.specs.model import CaseKind

# The judgement on a case that did not come to its end: by an exception, or because no worker was left


def judgement_of(error: BaseException, otherwise: str) -> Judgement:
    """The text of an exception. Hypothesis bundles several failures; the worst finding counts."""
    findings = list(_findings_in(error))
    if findings:
        return min(findings, key=lambda judgement: judgement.verdict.rank)
    if said := lacked(error):
        return Judgement(Verdict.NOT_REACHED, detail=said)
    text = "".join(traceback.format_exception_only(error)).strip()
    return Judgement(Verdict.KIT_FAULT, detail=f"{otherwise}: {text[:1500]}")


def _findings_in(error: BaseException) -> Iterator[Judgement]:
    if isinstance(error, NonConformance):
        yield error.judgement
    elif isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _findings_in(part)


# The report of an xdist process at its end: the files that its adapter used.
LOADED = "holdfast_loaded"


class Engine:
    """Runs cases against one adapter. A context manager: its exit ends every process and removes every folder."""

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self._stack = contextlib.ExitStack()
        self._launchers: list[Launcher] = []
        self._count = 0
        self._greeting: Greeting | None = None
        self._configs: dict[tuple[str, Stores], Mapping[str, str]] = {}
        self._surfaces: dict[str, Mapping[str, Any] | None] = {}
        self._provings: dict[tuple[str, str], Proving] = {}

    def __enter__(self) -> Engine:
        """Start what the run needs. Raises StartError, OSError."""
        with contextlib.ExitStack() as stack:
            self._janitor = stack.enter_context(Janitor())
            parent = default_parent() if self.settings.workdir is None else Path(self.settings.workdir)
            self.root = self._janitor.make_folder(parent=parent)
            # A factor below 1 asks for short deadlines, whatever the machine is like.
            if self.settings.pace is None and self.settings.slow >= 1:
                self.settings = replace(self.settings, pace=measured(self.root))
            stack.enter_context(adopted(self.settings.factor))
            environment = adapter_environment(self.settings.passed_environment, slow=self.settings.factor)
            environment["TMPDIR"] = str(begin(self.root))
            command = AdapterCommand(self.settings.adapter, environment, self.settings.deadlines, self._start(stack))
            self.pool = WorkerPool(command, janitor=self._janitor)
            stack.callback(self.pool.close)
            stack.callback(HELPER.close)
            self._stack = stack.pop_all()
        return self

    def _start(self, stack: contextlib.ExitStack) -> Start:
        settings = self.settings
        if not settings.forkserver:
            return in_a_new_process
        words = (word for name in settings.contracts for word in ("--contract", name))
        forks = Forks((*settings.forkserver, *words), settings.adapter, janitor=self._janitor)
        return stack.enter_context(forks).start

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            # For Ctrl-C above all: a user who cancels does not wait for the deadlines of an orderly end, times --slow.
            self.pool.abort()
            for launcher in self._launchers:
                launcher.hurry()
        self._stack.close()

    def greet(self) -> Greeting:
        """What the adapter said of itself in its first hello. Raises StartError, GreetingError or Exhausted.

        It holds for the whole run, as the evidence has it: a later hello of a worker cannot widen the excuses. The case
        itself, once, meets a worker that no longer comes up.
        """
        if self._greeting is None:
            self._greeting = self.pool.get(0).greeting
        return self._greeting

    def provision(self, contract: str) -> Mapping[str, str]:
        """The config of every session of `contract`. The first call starts its launcher. Raises StartError."""
        return self._provision(contract, Stores.ANYWHERE)

    def _provision(self, contract: str, stores: Stores) -> Mapping[str, str]:
        key = contract, stores
        if key not in self._configs:
            self._configs[key] = self._launch(contract, stores) if self.settings.launcher else self.settings.config
        return self._configs[key]

    def _launch(self, contract: str, stores: Stores) -> Mapping[str, str]:
        # Not below the others: the path of a server's socket must be short. And only what lies here is removed at the
        # end even if the launcher is killed before it could report what it has made.
        folder = self._janitor.make_folder(parent=self.root.parent)
        launcher = Launcher(
            self.settings.launcher,
            contract=contract,
            folder=folder,
            config=self.settings.config,
            janitor=self._janitor,
            passed=self.settings.passed_environment,
            stores=stores,
            slow=self.settings.factor,
        )
        self._launchers.append(launcher)
        self._stack.callback(launcher.close)
        SERVERS.update(launcher.processes)
        self._stack.callback(SERVERS.difference_update, launcher.processes)
        if stores is Stores.ANYWHERE:
            self._surfaces[contract] = launcher.surface
        return launcher.config

    def driver(self, contract: Contract, variables: Mapping[str, str] = MappingProxyType({})) -> Driver:
        """A driver for one session of `contract` in a fresh workdir. Raises StartError.

        With `variables` its workers are others, whose environment has them, and lacks those that are empty in it.
        """
        config = self.provision(contract.name)
        launched = self._surfaces.get(contract.name)
        pool = self.pool if not variables else self._pool_with(variables)
        self._count += 1
        workdir = self.root / f"session-{self._count}"
        workdir.mkdir()
        return Driver(pool, workdir, config=config, routes=contract.routes, launched=launched)

    def _pool_with(self, variables: Mapping[str, str]) -> WorkerPool:
        command = self.pool.command
        both = {**command.environment, **variables}.items()
        changed = replace(command, environment={name: value for name, value in both if variables.get(name) != ""})
        pool = WorkerPool(changed, janitor=self._janitor)
        self._stack.callback(pool.close)
        return pool

    def not_claimed(self, contract: Contract) -> Mapping[str, str]:
        """The capabilities of that contract that the adapter lacks, with its reasons; empty if it cannot be asked."""
        try:
            claim = self.greet().claim(contract.name)
        except (StartError, GreetingError, Exhausted):
            return {}
        return {} if claim is None else contract.lacks(claim.not_claimed)

    def run_planned(self, contract: Contract, planned: PlannedCase) -> CaseResult:
        """Run a case of any form."""
        if planned.form is Form.SUITE:
            tests = {suite_case_id(contract.name, test.__name__): test for test, _ in suite_tests(contract.name)}
            return self.run_suite_test(contract, planned, tests[planned.id])
        case, fault = contract.case(planned.id), contract.fault(planned.id)
        if case is not None:
            return self.run_case(contract, case)
        assert fault is not None
        return self.run_fault(contract, fault)

    def run_case(self, contract: Contract, case: Case) -> CaseResult:
        """Run a scripted case and, if it conforms so far, its twin."""
        started = time.monotonic()
        refused = self._cannot_run(contract, case)
        if refused is not None:
            return CaseResult(case.id, case.clauses, refused, (), (), 0.0)
        twin: tuple[Record, ...] = ()
        twin_judgement = Judgement(Verdict.CONFORMS)
        # The seed decides which side comes first, so that an adapter cannot distinguish the two by their order.
        twin_first = case.twin is not None and twin_goes_first(case, self.settings.seed)
        if twin_first:
            twin_judgement, twin = self._side(contract, case, Side.TWIN)
            if self.pool.exhausted:
                # No worker is left for the other side; the end of the last one is the result.
                return self._result(case.id, case.clauses, twin_judgement, (), twin, started)
        judgement, main = self._side(contract, case, Side.MAIN)
        if judgement.verdict is Verdict.CONFORMS and case.twin is not None and not twin_first:
            twin_judgement, twin = self._side(contract, case, Side.TWIN)
        if judgement.verdict is Verdict.CONFORMS:
            judgement = both(judgement, twin_judgement)
        return self._result(case.id, case.clauses, judgement, main, twin, started)

    def run_suite_test(self, contract: Contract, planned: PlannedCase, test: Callable[[Bench], None]) -> CaseResult:
        """Run a suite test at a bench of its own. An exception that is no finding is a fault of the kit."""
        started = time.monotonic()
        roles = contract.roles_of(planned.clauses, planned.roles)
        refused = exhausted() if self.pool.exhausted else self._lacking(contract, roles)
        if refused is not None:
            return CaseResult(planned.id, planned.clauses, refused, (), (), 0.0)
        bench = self._bench(contract, planned.id)
        try:
            test(bench)
            judgement = bench.conclude()
        except Exception as error:
            judgement = judgement_of(error, "the suite test itself failed")
        judgement = bench.gravest(judgement).placed(Side.MAIN, None)
        bench.tidy(judgement)
        return self._result(planned.id, planned.clauses, judgement, tuple(bench.records), (), started)

    def preflight(self, contract: Contract) -> Judgement:
        """Whether an implementation behind a network can be asked at all. Where it cannot, nothing of it is judged."""
        bench = self._bench(contract, f"{contract.name}/preflight")
        try:
            self.provision(contract.name)
            preflight_of(contract.name)(bench)
            return bench.conclude()
        except Exception as error:
            judgement = judgement_of(error, "the kit failed before any case")
            bench.tidy(judgement)
            if judgement.silence is FailureMode.FAULT and bench.records[-1].answer is not None:
                # The kit's own adapter says so of the server.
                said = bench.records[-1].answer.get("detail", "")
                advice = "Mend the program, or the file that describes it, and run this again."
                judgement = replace(judgement, detail=said, advice=advice)
            return replace(judgement, detail=" ".join(judgement.detail.split()))

    def _bench(self, contract: Contract, case: str) -> Bench:
        return Bench(
            contract=contract,
            case=case,
            seed=self.settings.seed,
            make_driver=lambda variables: self.driver(contract, variables),
            not_claimed=self.not_claimed(contract),
            limits=self._limits(),
            thorough=self.settings.thorough,
        )

    def surface(self, contract: Contract) -> SurfaceLine:
        """The store that the sessions of `contract` use, found in a session of its own. The line reports an error."""
        bench = self._bench(contract, f"{contract.name}/surface")
        try:
            self.provision(contract.name)
            return observe(bench, self._surfaces.get(contract.name))
        except Exception as error:
            judgement = judgement_of(error, "the kit failed while it looked at the store")
            bench.tidy(judgement)
            return unseen(contract, judgement.detail)

    def run_fault(self, contract: Contract, fault: FaultCase) -> CaseResult:
        """Let a fault strike during its workload. Faults of one workload share its preparation and its recording."""
        started = time.monotonic()
        needs = contract.roles_of(fault.clauses) | {KILLABLE}
        refused = exhausted() if self.pool.exhausted else self._lacking(contract, needs)
        if refused is not None:
            return CaseResult(fault.id, fault.clauses, refused, (), (), 0.0)
        if self._volatile is not None:
            return CaseResult(fault.id, fault.clauses, judge_volatile(self._volatile), (), (), 0.0)
        records: tuple[Record, ...] = ()
        try:
            proving = self._proving(contract, fault)
            with temp_folders_in(self.root):
                judgement, records = proving.judge(fault)
        except Exception as error:
            judgement = judgement_of(error, "the kit failed while the fault struck")
        return self._result(fault.id, fault.clauses, judgement, records, (), started)

    def _proving(self, contract: Contract, fault: FaultCase) -> Proving:
        """Raises StartError."""
        key = contract.name, fault.work
        if key not in self._provings:
            setting = Setting(
                contract=contract,
                command=self.pool.command,
                janitor=self._janitor,
                config=self._provision(contract.name, Stores.CONFINED),
                not_claimed=self.not_claimed(contract),
                root=self.root,
                seed=self.settings.seed,
                epoch_us=self.pool.epoch_ns // 1000,
                seconds=self.settings.fault_seconds,
                thorough=self.settings.thorough,
                keep=None if self.settings.keep is None else Path(self.settings.keep, *key),
            )
            self._provings[key] = proving = Proving(setting, contract.work_of(fault))
            self._stack.callback(proving.close)
        return self._provings[key]

    def _limits(self) -> Limits:
        try:
            workers = self.greet().max_workers
        except (StartError, GreetingError, Exhausted):
            workers = 0
        return Limits(workers, self._volatile)

    @property
    def _volatile(self) -> str | None:
        """The kind of file system below the workdirs, if it is volatile."""
        kind = filesystem_of(self.root)
        return kind if kind in VOLATILE else None

    def _result(
        self,
        case: str,
        clauses: tuple[str, ...],
        judgement: Judgement,
        main: tuple[Record, ...],
        twin: tuple[Record, ...],
        started: float,
    ) -> CaseResult:
        restarts, self.pool.replaced = tuple(self.pool.replaced), []
        logs = tuple(self.pool.take_logs())
        return CaseResult(case, clauses, judgement, main, twin, time.monotonic() - started, restarts, logs)

    def _side(self, contract: Contract, case: Case, side: Side) -> tuple[Judgement, tuple[Record, ...]]:
        not_claimed = self.not_claimed(contract)
        self.pool.warm_up(worker_count(contract, case))
        driver = self.driver(contract)
        reading = interpret(contract, case, side, seed=self.settings.seed, not_claimed=not_claimed)
        try:
            judgement = carried_out(reading, driver.execute)
        except Exception as error:
            # This is no finding about the adapter.
            judgement = judgement_of(error, "the kit failed while it ran the case").placed(side, None)
        driver.finish(judgement)
        return judgement, tuple(driver.records)

    def _lacking(self, contract: Contract, needs: Set[str]) -> Judgement | None:
        """UNSUPPORTED if hello does not claim a role, or anything else that is needed."""
        not_claimed = self.not_claimed(contract)
        lacking = needs & {*not_claimed}
        if not lacking:
            return None
        said = ", ".join(f"{name} ({not_claimed[name]})" for name in sorted(lacking))
        return Judgement(Verdict.UNSUPPORTED, detail=f"the case needs what the adapter does not claim: {said}")

    def _cannot_run(self, contract: Contract, case: Case) -> Judgement | None:
        if self.pool.exhausted:
            return exhausted()
        if case.kind is CaseKind.DURABILITY and self._volatile is not None:
            return judge_volatile(self._volatile)
        try:
            greeting = self.greet()
        except (StartError, GreetingError, Exhausted):
            # The case itself will meet the same end and report it.
            return None
        several = {CONCURRENCY} if case.workers > 1 else set()
        lacking = self._lacking(contract, contract.roles_of(case.clauses, case.roles) | case.needs | several)
        if lacking is not None:
            return lacking
        needed = worker_count(contract, case)
        if needed > greeting.max_workers:
            return Judgement(
                Verdict.UNSUPPORTED,
                detail=f"the case needs {needed} workers, the adapter allows {greeting.max_workers}",
                advice="Raise limits.workers in hello; concurrency is part of the contract.",
            )
        return None


def twin_goes_first(case: Case, seed: str) -> bool:
    """Whether the twin of `case` runs before the case itself; `seed` and `case` decide it."""
    coin = hashlib.sha256(f"{seed}\x1f{case.id}\x1forder".encode()).digest()
    return coin[0] % 2 == 1
