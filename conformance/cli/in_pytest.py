"""The cases of contracts in a session of pytest that is a user's own: items, evidence, and the decision at its end.

`holdfast.pytest_plugin` has the options. The process that controls the session writes the evidence; a process of xdist
has an engine of its own, with the settings that the controlling one hands over.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.conformance.adapter.worker import Greeting
from holdfast.conformance.cases.record import CaseResult, Judgement, Side
from holdfast.conformance.cli.console import Format, PlainConsole, Stopped, stop
from holdfast.conformance.cli.target import Target, found_here, known_contracts, words_of
from holdfast.conformance.cli.verify.command import (
    NeverStartedError,
    claimed,
    failure_of,
    greet,
    record_failure,
    unusable_outputs,
)
from holdfast.conformance.cli.verify.options import DEFAULT_EVIDENCE, Options
from holdfast.conformance.cli.verify.summary import reason_lines
from holdfast.conformance.cli.verify.transcript import print_failure
from holdfast.conformance.cli.verify.verification import Verification
from holdfast.conformance.gate.decision import GateDecision, decide, parse_requirement
from holdfast.conformance.run import plugin
from holdfast.conformance.run.artefacts import ArtefactError, Identity
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.findings import finding_of, grouped
from holdfast.conformance.run.plan import PlannedCase, plan_of, with_plan
from holdfast.conformance.run.recorder import Recorder, verdict_line
from holdfast.conformance.run.results import result_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import REPORTED, Exit, FailureMode, Verdict, exit_of
from holdfast.reports.evidence import EvidenceError, Exchange, Run, VerdictLine
from holdfast.reports.plain import disarmed, plain
from holdfast.servers.errors import StartError
from holdfast.specs import Contract, SpecError
from holdfast.specs.model import Level

_HANDED, _DIST = "holdfast_settings", "holdfast_dist"
_GIVEN = ("contract", "adapter", "launcher", "config", "pass_env", "quick", "seed", "nonce", "commit")
# Options that have another name here.
_OWN = re.compile(r"--(?=(?:evidence|config|nonce|commit|quick)\b)")
_ROOT = "holdfast"


@dataclass(frozen=True, kw_only=True)
class _PytestOptions(Options):
    """What the options of pytest ask for, as `holdfast verify` has it."""

    context: Any = None
    adapter: str
    format_: Any = Format.JSON

    @cached_property
    def target(self) -> Target:
        """The adapter. Ends with a usage error if there is no such program."""
        words = words_of("--holdfast-adapter", self.adapter)
        found_here(words)
        return Target(words, () if self.launcher is None else words_of("--holdfast-launcher", self.launcher))

    def of(self, settings: RunSettings, expression: str | None = None) -> _PytestOptions:
        """The same of a run whose settings stand, with what narrows it."""
        found = replace(self, expression=expression)
        vars(found)["settings"] = settings
        return found


@contextlib.contextmanager
def _as_usage() -> Iterator[None]:
    """What is a wrong command line for `holdfast verify` is a usage error of pytest."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except (Stopped, ArtefactError, SpecError, EvidenceError, StartError) as error:
        said = error.message if isinstance(error, Stopped) else str(error)
        raise pytest.UsageError(f"holdfast: {_OWN.sub('--holdfast-', said)}") from error


def begin(config: pytest.Config) -> None:
    """Make the cases a part of the session. Raises UsageError."""
    given = {name: config.getoption(f"holdfast_{name}") for name in _GIVEN}
    where, faults = config.getoption("holdfast_evidence"), not config.getoption("holdfast_no_faults")
    options = _PytestOptions(**given, evidence=Path(where or DEFAULT_EVIDENCE), faults=faults)
    with _as_usage():
        contracts = [with_plan(name) for name in known_contracts(options.contract or ())]
        options.must_be_publishable()
        if problem := unusable_outputs(options):
            stop(Exit.USAGE, problem)
        handed = getattr(config, "workerinput", {}).get(_HANDED)
        if handed is not None:
            options = options.of(msgspec.convert(json.loads(handed), RunSettings))
        session = _Session(config, options, contracts)
    config.addinivalue_line("markers", f"{_ROOT}: a case of a contract, which holdfast asks of the adapter")
    for clause in (clause for contract in contracts for clause in contract.clauses.values()):
        config.addinivalue_line("markers", f"{clause.id}: {' '.join(clause.text.split())}")
    for part, name in ((plugin, "holdfast-hooks"), (session, "holdfast-session")):
        if config.pluginmanager.register(part, name) is None:
            raise pytest.UsageError(f"holdfast: expected no -p no:{name}; nothing was proven")


class _Session(plugin.Runner):
    """The cases in this process, and in the one that controls the session their evidence."""

    def __init__(self, config: pytest.Config, options: _PytestOptions, contracts: Sequence[Contract]) -> None:
        super().__init__(config, options.settings)
        self.options = options
        self._contracts = contracts
        self._plan = [(each, planned) for each in contracts for planned in plan_of(each)]
        self._names = {f"{_ROOT}/{each.name}::{_name(planned)}": planned for each, planned in self._plan}
        self._asked = _asked_for(config, self._names)
        self._controls = not (hasattr(config, "workerinput") or config.getoption("collectonly"))
        self._greeting: Greeting | None = None
        self._recorder: Recorder | None = None
        self._verification: Verification | None = None
        self._interrupted = False
        self._said: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Take the place of the evidence, so that no older run is left there, and start the engine."""
        if not self._controls:
            return
        with _as_usage():
            settings, redactor = self.options.settings, self.options.redactor
            self._identity = Identity(settings.adapter, started=datetime.now(UTC), named=(), redactor=redactor)
            self._recorder = Recorder(self.options.evidence, redactor=redactor)
            self._own = Engine(settings).__enter__()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand the settings to a process of xdist."""
        node.workerinput[_HANDED] = json.dumps(asdict(self.engine.settings))
        node.workerinput[_DIST] = node.config.getoption("dist")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, Any, Any]:
        """Add the cases, before `-k`, `-m` and `--lf` choose among all items; then share those out to processes."""
        for contract in self._contracts:
            collector: _ContractNode = _ContractNode.from_parent(
                session, name=contract.name, nodeid=f"{_ROOT}/{contract.name}"
            )
            found = [
                _Item.made(collector, self, contract, planned)
                for of, planned in self._plan
                if of is contract and planned.form in self.options.forms
                if self._asked is None or planned.id in self._asked
            ]
            # So that pytest counts them.
            session.ihook.pytest_collectreport(report=pytest.CollectReport(collector.nodeid, "passed", None, [*found]))
            items += found
        done = yield
        of_xdist = getattr(config, "workerinput", {})
        if of_xdist.get("workercount", 1) > 1:
            share = len(items) // of_xdist["workercount"]
            # What `load` gives a process at first.
            share = share if of_xdist[_DIST] == "worksteal" else max(share // 4, 2)
            ours = [item for item in items if isinstance(item, _Item)]
            others = [item for item in items if not isinstance(item, _Item)]
            items[:] = (
                plugin.shared_out(ours, of_xdist["workercount"], workload=plugin.workload_of, share=share) + others
            )
        return done

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin, where this process collects and runs."""
        if self._controls:
            self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:  # noqa: ARG002
        """Begin, where the processes of xdist collect; all of them collect the same."""
        if "failure" not in vars(self):
            self._begin(ids)

    def _begin(self, nodes: Sequence[str]) -> None:
        """It is known which cases run: greet the adapter and write the header."""
        assert self._recorder is not None
        selected = [self._names[node].id for node in nodes if node in self._names]
        whole = [planned.id for _, planned in self._plan if planned.form in self.options.forms]
        narrowed = None if sorted(selected) == sorted(whole) else f"{len(selected)} of {len(self._plan)} cases"
        self.options = self.options.of(self.options.settings, narrowed)
        if not selected:
            self.failure = Judgement(Verdict.NO_VERDICT, FailureMode.MISSING, "no case was selected")
        elif self.failure is None:
            assert self._greeting is not None
            self._identity.saw(self.engine.pool.loaded(), scratch=self.engine.root)
            self._verification = Verification(
                self.options, self._contracts, self._greeting, (), self.engine, self._identity, self._recorder
            )
            self._verification.select(selected)

    @cached_property
    def failure(self) -> Judgement | None:
        """Why no case can begin, if none can: the adapter is greeted once in each process."""
        try:
            self._greeting = greet(self.engine, is_server=False)
            claimed(self._contracts, self._greeting)
            for contract in self._contracts:
                self.engine.provision(contract.name)
        except (StartError, NeverStartedError) as error:
            return failure_of(error)
        return None

    def run(self, contract: Contract, planned: PlannedCase) -> CaseResult:
        """Run a case, unless none can begin."""
        if self.failure is not None:
            unproven = replace(self.failure, detail=f"before any case: {self.failure.detail}")
            return CaseResult(planned.id, planned.clauses, unproven, (), (), 0.0)
        return super().run(contract, planned)

    def pytest_holdfast_result(self, result: CaseResult) -> None:
        """Write a result down."""
        if self._verification is not None:
            self._verification.pytest_holdfast_result(result)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A process of xdist ended: note what it observed of its adapter."""
        if self._verification is not None:
            self._verification.pytest_testnodedown(node, error)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note who ended the session: `-x` of xdist ends it by a subclass of KeyboardInterrupt."""
        self._interrupted = excinfo.type is KeyboardInterrupt or issubclass(excinfo.type, pytest.exit.Exception)

    def finish(self, session: pytest.Session) -> None:
        """Complete the evidence, and ask the gate."""
        super().finish(session)
        if self._recorder is None:
            return
        try:
            self._complete(session, self._recorder)
            # Only without a process of the adapter, which could change it, is the evidence read.
            self.pytest_unconfigure()
            run = self._recorder.reread()
        except EvidenceError as error:
            proceeds, self._said = False, [f"CAN_PROCEED = NO: {error}"]
        else:
            required = [parse_requirement(each.name) for each in self._contracts]
            known = self._verification
            decision = decide(run, required, now=datetime.now(UTC)) if known is None else known.decision(run)
            proceeds, self._said = decision.can_proceed == "YES", list(self._decided(run, decision))
        if not proceeds and self._config.getoption("holdfast_gate"):
            _fail(session)
            # Another plug-in may change it after this one.
            self._config.add_cleanup(lambda: _fail(session))

    def _complete(self, session: pytest.Session, recorder: Recorder) -> None:
        """Write what is missing of the evidence. Raises EvidenceError."""
        if self._interrupted:
            raise EvidenceError("interrupted; the evidence has no footer and proves nothing")
        verification, status = self._verification, session.exitstatus
        if verification is None:
            never = Judgement(Verdict.NO_VERDICT, FailureMode.MISSING, "the session ended before any case")
            failure, settings = vars(self).get("failure") or never, self.engine.settings
            record_failure(self.options, settings, self._contracts, self._greeting, failure, self._identity, recorder)
            return
        verification.run_again()
        verification.stopped = bool(session.shouldstop or session.shouldfail) or status == pytest.ExitCode.INTERRUPTED
        verification.conclude(int(status))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say the decision and the gravest finding."""
        if self._said:
            terminalreporter.section(_ROOT)
            for line in self._said:
                terminalreporter.line(disarmed(plain(line)))

    def _decided(self, run: Run, decision: GateDecision) -> Iterator[str]:
        yield f"CAN_PROCEED = {decision.can_proceed}"
        mild = (Verdict.CONFORMS, Verdict.UNSUPPORTED)
        found = [line for each in REPORTED if each not in mild for line in run.verdicts if line.verdict == each.value]
        for line in found[:1]:
            contract, planned = next(each for each in self._plan if each[1].id == line.case)
            records = run.sides().get(line.case, {}).get(line.side or "", ())
            detail = finding_of(Judgement.of(line), records, planned, contract).detail
            yield f"  gravest of {len(found)}: {line.verdict} {line.case}: {detail}"
        yield from reason_lines(decision)
        yield from (f"  note: {note}" for note in decision.notes)
        yield f"  evidence: {self.options.evidence}"

    def pytest_unconfigure(self) -> None:
        """End what this process started."""
        own, self._own = self._own, None
        if own is not None:
            own.__exit__(KeyboardInterrupt if self._interrupted else None, None, None)
        if self._recorder is not None:
            self._recorder.close()


def _fail(session: pytest.Session) -> None:
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _asked_for(config: pytest.Config, names: Mapping[str, PlannedCase]) -> frozenset[str] | None:
    """The cases that arguments name, one by the id of its item or all of a contract; None if no argument selects.

    pytest would look for files: such arguments are taken away. Raises UsageError.
    """
    asked: set[str] = set()
    others = []
    for word in config.args:
        path, _, name = word.partition("::")
        place = Path(os.path.relpath(config.invocation_params.dir / path, config.rootpath))
        known = {node: planned for node, planned in names.items() if node.startswith(f"{place.as_posix()}::")}
        if not known or (config.rootpath / place).exists():
            others.append(word)
            continue
        found = {planned.id for node, planned in known.items() if name in ("", planned.id, node.partition("::")[2])}
        if not found:
            raise pytest.UsageError(f"holdfast: expected the id of a case of {place.name}, got {name!r}")
        asked |= found
    is_selection = len(others) < len(config.args) or any("::" in word for word in others)
    config.args = others
    return frozenset(asked) if is_selection else None


# The items


def _name(planned: PlannedCase) -> str:
    """The name of an item. A colon twice would end a part of its id."""
    return f"{planned.id}[{plain(planned.title).replace('::', ':')}]"


class _ContractNode(pytest.Collector):
    """The parent of the cases of one contract."""

    def collect(self) -> list[pytest.Item]:
        return []  # the session adds them


class _Item(plugin.CaseItem):
    """A case as an item of a user's session."""

    runner: _Session

    @classmethod
    def made(cls, parent: _ContractNode, session: _Session, contract: Contract, planned: PlannedCase) -> _Item:
        """The item of a case."""
        name = _name(planned)
        # As a text, which pytest reads as it reads the one that `--lf` has kept.
        item: _Item = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.planned, item.contract, item.runner = planned, contract, session
        for mark in (_ROOT, *planned.clauses):
            item.add_marker(mark)
        # A warning within the kit says nothing about the adapter, though the project may take its own for errors.
        item.add_marker(pytest.mark.filterwarnings("default"))
        return item

    def runtest(self) -> None:
        """Run it. What the adapter does not claim, and need not, is skipped."""
        with contextlib.suppress(plugin.CaseFailure):
            super().runtest()
        assert self.result is not None
        verdict = self.result.judgement.verdict
        if self.config.getoption("allure_report_dir", None):
            self._show(self.result)
        if verdict is Verdict.UNSUPPORTED and (self.is_of_another_role() or not self._is_must):
            pytest.skip(self.result.judgement.detail)
        if verdict is not Verdict.CONFORMS:
            raise self._failure(self.result)

    @property
    def _is_must(self) -> bool:
        return any(self.contract.clauses[name].level is Level.MUST for name in self.planned.clauses)

    def _failure(self, result: CaseResult) -> BaseException:
        """The finding in one line. `repr_failure` has all of it."""
        judged, free = result.judgement, self.runner.options.redactor.free
        detail = finding_of(judged, result.judged_side, self.planned, self.contract).detail
        said = disarmed(free(f"{judged.verdict.value}: {plain(detail)}"))
        unproven = exit_of(judged.verdict) in (Exit.INCOMPLETE, Exit.KIT)
        return plugin.NotProven(said) if unproven else pytest.fail.Exception(said, pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The finding as `holdfast verify` prints it, without the places in the kit that it came through."""
        if not isinstance(excinfo.value, plugin.NotProven | pytest.fail.Exception) or self.result is None:
            return pytest.Item.repr_failure(self, excinfo, style)
        shown, printed = excinfo.getrepr(style="value"), io.StringIO()
        finding = finding_of(self.result.judgement, self.result.judged_side, self.planned, self.contract)
        console = PlainConsole(file=printed, width=160, soft_wrap=True, no_color=True, force_terminal=False)
        print_failure(console, finding, self.result, self.contract, self.runner.options)
        text = disarmed(self.runner.options.redactor.free(printed.getvalue()))
        entry = shown.reprtraceback.reprentries[0]
        entry.lines = [*entry.lines, *text.splitlines()]
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place of the case. pytest needs a line where an item is skipped by a mark."""
        return self.config.rootpath / _ROOT / self.contract.name, 0, self.name

    def _show(self, result: CaseResult) -> None:
        """Add what is known of the case to the result that Allure's plug-in for pytest writes."""
        from holdfast.conformance.cli.verify.in_allure import show, show_exchanges

        planned, contract, options = self.planned, self.contract, self.runner.options
        sides: dict[str, list[Exchange]] = {}
        for side, records in ((Side.MAIN, result.main), (Side.TWIN, result.twin)):
            lines = (options.redactor.line(each.line(planned.id, side)) for each in records)
            if found := [line for line in lines if isinstance(line, Exchange)]:
                sides[side.value] = found
        line = options.redactor.line(verdict_line(result))
        assert isinstance(line, VerdictLine)
        judged = Judgement.of(line)
        finding = finding_of(judged, sides.get(line.side or "", ()), planned, contract)
        show(
            result_of(
                planned,
                line,
                contract,
                sides,
                begun=datetime.now(UTC),
                not_claimed=self.runner.engine.not_claimed(contract),
                finding=finding,
                group=next(iter(grouped([finding], [contract])), None),
            ),
            contract,
        )
        show_exchanges(planned, contract, judged, sides, options)
