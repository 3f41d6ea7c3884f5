"""One verification: the pytest session that runs the cases, its evidence, and what is said of it at the end."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from holdfast.conformance.adapter.worker import Greeting
from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.cli.console import Format, err, print_json, stop, styled
from holdfast.conformance.cli.verify.options import Options, default_jobs
from holdfast.conformance.cli.verify.summary import print_summary, summary_json
from holdfast.conformance.gate.decision import GateDecision, claimed_in, decide
from holdfast.conformance.run import xfail
from holdfast.conformance.run.artefacts import Identity
from holdfast.conformance.run.baselines import load_baseline
from holdfast.conformance.run.engine import LOADED, Engine
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.conformance.run.recorder import Recorder, header_of
from holdfast.conformance.run.summary import Summary, missing_result, of_other_roles, summarise
from holdfast.conformance.run.surface import asks_for_one, unseen
from holdfast.conformance.verdict import Exit, Verdict, gravest
from holdfast.reports.evidence import EvidenceError, Run
from holdfast.reports.plain import plain
from holdfast.specs import Contract
from holdfast.specs.registry import folder_of

# To judge so many cases again takes long enough to say so.
_MANY = 100
# Progress of `holdfast verify`: which contract, how many of its cases, and about how long still

PLAIN_EVERY_S = 5.0
# How many failing cases are named while the run goes on; the others are counted. What failed open is always named.
MAX_NAMED = 12
# How long a case of each form takes, in scripted cases, as the runs of the references have it.
_WEIGHT = {Form.SCRIPT: 1, Form.SUITE: 10, Form.FAULT: 40}
# Before so much of the work is done, an estimate would only be wrong.
_KNOWN = 0.05
_MINUTE = 60


class RunProgress:
    """A bar on a terminal, plain lines elsewhere, nothing when `quiet`. `not_asked` are cases of unclaimed roles."""

    def __init__(self, plan: Sequence[PlannedCase], *, quiet: bool, not_asked: Collection[str] = ()) -> None:
        self._plan = {case.id: case for case in plan}
        self._quiet, self._not_asked = quiet, not_asked
        self._console = err()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._totals: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._work = self._worked = self._bad = self._lacking = 0
        self._contract = ""

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal and not self._quiet:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[text]}"))
            self._bar = Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None, text="")
        elif not self._quiet:
            threading.Thread(target=self._print_lines, name="holdfast-progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def begin(self, selected: Collection[str]) -> None:
        """It is known which cases run."""
        cases = [case for case in self._plan.values() if case.id in selected]
        self._totals = Counter(case.contract for case in cases)
        self._work = sum(_WEIGHT[case.form] for case in cases)
        self._contract = cases[0].contract if cases else ""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._work, text=self.text())

    def result(self, result: CaseResult) -> None:
        """A case has run."""
        case = self._plan[result.case]
        self._contract = case.contract
        self._done[case.contract] += 1
        self._worked += _WEIGHT[case.form]
        verdict = result.judgement.verdict
        good = {Verdict.CONFORMS, Verdict.UNSUPPORTED} if result.case in self._not_asked else {Verdict.CONFORMS}
        bad = verdict not in good
        self._lacking += bad and verdict is Verdict.UNSUPPORTED
        self._bad += bad
        if self._quiet:
            return
        if bad and (verdict.is_open or self._bad <= MAX_NAMED):
            self._console.print(styled(verdict), result.case)
        if self._bar is not None and self._task is not None:
            title = plain(case.title)[:60]
            self._bar.update(self._task, completed=self._worked, description=title, text=self.text())

    def text(self) -> str:
        """Where the run is, in one line."""
        contract = self._contract
        parts = [f"{contract}: {self._done[contract]} of {self._totals[contract]} cases"]
        if len(self._totals) > 1:
            parts.append(f"{self._done.total()} of {self._totals.total()} in all contracts")
        if self._bad > self._lacking:
            parts.append(f"{self._bad - self._lacking} not conforming")
        if self._lacking:
            parts.append(f"{self._lacking} unsupported")
        if self._worked > self._work * _KNOWN:
            elapsed = time.monotonic() - self._began
            parts.append(f"about {duration(elapsed * (self._work - self._worked) / self._worked)} left")
        return ", ".join(parts)

    def _print_lines(self) -> None:
        while not self._ended.wait(PLAIN_EVERY_S):
            if self._totals:
                self._console.print(self.text())


def duration(seconds: float) -> str:
    """A rough time for a person: seconds in steps of five below a minute, else minutes."""
    if seconds < _MINUTE:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / _MINUTE)} min"


# pytest's own exit status when -k selects nothing.
_NOTHING_COLLECTED = 5


class Verification:
    """One run, as a plugin of the pytest session that does the work."""

    def __init__(
        self,
        options: Options,
        contracts: Sequence[Contract],
        greeting: Greeting,
        expectations: Sequence[xfail.Expectation],
        engine: Engine,
        identity: Identity,
        recorder: Recorder,
    ) -> None:
        self._options = options
        self._contracts = contracts
        self._expectations = expectations
        self._engine = engine
        self._identity = identity
        self._plan = tuple(case for contract in contracts for case in plan_of(contract))
        self._selected: set[str] | None = None
        self._results: dict[str, CaseResult] = {}
        self._broken: EvidenceError | None = None
        self._failed: BaseException | None = None
        self._ended_by_user = False
        # Whether what did not run is missing by design: the session was to end at the first failure.
        self.stopped = options.exit_first
        self._header = header_of(
            engine.settings,
            contracts,
            greeting,
            caller=options.caller,
            started=identity.started,
            expression=options.narrowed,
            faults=Form.FAULT in options.forms,
        )
        self._recorder = recorder
        self._recorder.header(self._header)
        self._concluded: tuple[Summary, xfail.Applied, Exit] | None = None
        self._decided: GateDecision | None = None
        self._not_claimed = {contract.name: engine.not_claimed(contract) for contract in contracts}
        not_asked = of_other_roles(contracts, self._plan, self._not_claimed)
        self._progress = RunProgress(self._plan, quiet=options.format_ is Format.JSON, not_asked=not_asked)

    # Hooks of the pytest session

    def pytest_holdfast_engine(self) -> Engine:
        """The engine that greeted the adapter runs the cases of this process."""
        return self._engine

    def pytest_holdfast_excused(self, result: CaseResult) -> str | None:
        """The issue under which a result is expected."""
        return xfail.excuse_of(self._expectations, result, self._identity.started.date())

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """What went wrong in pytest itself, or in this plugin, ends the run; pytest need not print it."""
        self._failed = self._failed or excinfo.value
        return True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is to run, where this process collects."""
        if session.items:
            self.select(item.name for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:  # noqa: ARG002
        """Note what is to run, where the processes of xdist collect; all of them collect the same."""
        self.select(name.rpartition("::")[2] for name in ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        """A process of xdist ended: note what it observed of its adapter."""
        self._identity.saw(getattr(node, "workeroutput", {}).get(LOADED, ()))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note whether a user ended the session: xdist ends it, for `-x`, by a subclass of KeyboardInterrupt."""
        self._ended_by_user = excinfo.type is KeyboardInterrupt

    def select(self, names: Iterable[str]) -> None:
        """Note which cases run."""
        if self._selected is None:
            self._selected = set(names)
            self._progress.begin(self._selected)

    def pytest_holdfast_result(self, result: CaseResult) -> None:
        """Write it down before anything else runs; what a limit ended, or kept from its start, at the end."""
        if self._broken is not None:
            return
        self._results[result.case] = result
        try:
            if not result.is_limited and not result.was_not_started:
                self._recorder.result(result, excused=self.pytest_holdfast_excused(result))
        except EvidenceError as error:
            self._broken = error
            pytest.exit(str(error), returncode=int(Exit.INCOMPLETE))
        self._progress.result(result)

    # The run

    def go(self) -> None:
        """Run pytest and complete the evidence. Raises EvidenceError, KeyboardInterrupt."""
        with self._progress:
            status = self._pytest()
            if self._broken is None and self._failed is not None:
                raise self._failed
            if self._broken is None and self._ended_by_user:
                raise KeyboardInterrupt
            self.run_again()
        if status == pytest.ExitCode.USAGE_ERROR:
            stop(
                Exit.USAGE,
                f"-k: expected words joined by and, or, not and brackets, got {self._options.expression!r}",
            )
        self.conclude(status)

    def run_again(self) -> None:
        """Run each case that a limit ended once more, now that nothing else runs. Raises EvidenceError.

        When three in a row have ended so again, it is not the machine: the others keep their result. Where it was the
        machine, what was not started is run too, because workers had died before it.
        """
        if self._broken is not None:
            raise self._broken
        contracts = {contract.name: contract for contract in self._contracts}
        ran = [(planned, self._results[planned.id]) for planned in self._plan if planned.id in self._results]
        limited = [each for each in ran if each[1].is_limited]
        relieved = False
        self._engine.pool.settle()
        for planned, before in (*limited, *(each for each in ran if each[1].was_not_started)):
            result = before
            if not self._engine.pool.exhausted and (before.is_limited or relieved):
                result = self._engine.run_planned(contracts[planned.contract], planned)
                relieved = relieved or not result.is_limited
                result = replace(result, first=before) if before.is_limited else result
                self._results[planned.id] = result
            self._recorder.result(result, excused=self.pytest_holdfast_excused(result))

    def _pytest(self) -> int:
        options = self._options
        with tempfile.TemporaryDirectory(prefix="holdfast-pytest-", dir=self._engine.root) as scratch:
            handed = Path(scratch) / "settings.json"
            # It may hold secrets of the config; the folder around it is readable by adapters of other accounts.
            handed.touch(mode=0o600)
            cases = [planned.id for planned in self._plan if options.selects(planned)]
            settings = replace(self._engine.settings, cases=None if len(cases) == len(self._plan) else tuple(cases))
            handed.write_text(json.dumps(asdict(settings)), encoding="utf-8")
            words = ["-p", "holdfast.conformance.run.plugin", "--holdfast-settings", str(handed)]
            if options.expression is not None:
                words += ["-k", options.expression]
            if options.exit_first:
                words.append("-x")
            # How many will run is not known before pytest reads `-k`. With `-x` one may do.
            is_one = options.expression is not None or options.exit_first
            jobs = options.jobs or default_jobs(1 if is_one else len(cases))
            if jobs > 1:
                words += ["-p", "xdist.plugin", "-n", str(jobs), "--dist", "worksteal"]
            words += [str(folder_of(contract.name) / "contract.yaml") for contract in self._contracts]
            return own_pytest(Path(scratch), words, self)

    def conclude(self, status: int) -> None:
        """Complete the evidence, after a session of pytest that ended with `status`. Raises EvidenceError."""
        narrowed = self._options.narrowed is not None
        selected = self._selected if self._selected is not None else set()
        for planned in self._plan:
            if planned.id in selected and planned.id not in self._results and not self.stopped:
                self.pytest_holdfast_result(missing_result(planned))
        if self._broken is not None:
            raise self._broken
        results = [self._results[case.id] for case in self._plan if case.id in self._results]
        applied = xfail.apply(
            self._expectations,
            results,
            self._identity.started.date(),
            not_run=[case.id for case in self._plan if narrowed and case.id not in self._results],
        )
        summary = summarise(
            self._contracts,
            self._plan,
            results,
            narrowed=narrowed,
            excused=applied.excused,
            baselines={contract.name: load_baseline(contract) for contract in self._contracts},
            not_claimed=self._not_claimed,
        )
        final = gravest([summary.exit, applied.exit, *([] if self._pytest_went_well(status) else [Exit.KIT])])
        self._say_surfaces()
        self._identity.saw(self._engine.pool.loaded())
        self._recorder.write(self._identity.conclude())
        self._recorder.finish(verdict=summary.verdict.value, exit_status=int(final))
        self._concluded = summary, applied, final

    def _say_surfaces(self) -> None:
        """Which stores the run used, where a fitness proof is to be tied to it."""
        for contract in filter(asks_for_one, self._contracts):
            narrowed = self._options.narrowed is not None
            text = "the run was narrowed, so its store was not inspected"
            self._recorder.write(unseen(contract, text) if narrowed else self._engine.surface(contract))

    def _pytest_went_well(self, status: int) -> bool:
        # With -x, xdist reports an interruption where pytest alone reports failures.
        stopped = status == pytest.ExitCode.INTERRUPTED and self.stopped
        return stopped or status in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, _NOTHING_COLLECTED}

    def say(self, run: Run) -> Exit:
        """Print what came of it; `run` is the evidence as it stands on the disk."""
        assert self._concluded is not None
        summary, applied, final = self._concluded
        if self._options.format_ is Format.JSON:
            said = summary_json(summary, final, self._options.evidence, applied=applied, artefacts=run.artefacts)
            # Another status than OK holds the gate: it need not judge every case again.
            can_proceed = self.decision(run).can_proceed if final is Exit.OK else "NO"
            print_json({"can_proceed": can_proceed, **said})
        else:
            print_summary(
                summary,
                applied,
                final,
                decision=self.decision(run),
                artefacts=run.artefacts,
                options=self._options,
                contracts=self._contracts,
                plan=self._plan,
                not_claimed=self._not_claimed,
            )
        return final

    def decision(self, run: Run) -> GateDecision:
        """The decision of the gate on the evidence as it stands on the disk, made once."""
        if self._decided is None:
            if len(self._results) > _MANY:
                err().print("every case is judged once more, from the evidence")
            self._decided = decide(run, claimed_in(self._header), now=datetime.now(UTC))
        return self._decided


def own_pytest(folder: Path, words: Sequence[str], plugin: object) -> int:
    """A session of pytest without plug-ins, options and variables of the user, which could change what it shows."""
    # xdist starts its workers with `python -c`, which would import from the current folder first. What Hypothesis keeps
    # would lie there, too.
    own = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONSAFEPATH": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    saved = {name: text for name, text in os.environ.items() if name.startswith(("PYTEST_", "ALLURE_")) or name in own}
    for name in saved:
        del os.environ[name]
    os.environ.update(own)
    quiet = (f"no:{name}" for name in ("cacheprovider", "terminal", "logging", "faulthandler"))
    try:
        return int(
            pytest.main(
                [
                    *("-c", os.devnull, "--rootdir", str(folder), "--noconftest", "--import-mode=importlib"),
                    *("--basetemp", str(folder / "temp"), "--capture", "no"),
                    *(word for name in quiet for word in ("-p", name)),
                    *words,
                ],
                plugins=[plugin],
            )
        )
    finally:
        for name in own:
            del os.environ[name]
        os.environ.update(saved)
