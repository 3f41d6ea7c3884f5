"""`holdfast verify`: run every case of the claimed contracts against an adapter, and say what was shown."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import pytest
import typer

from conformance import xfail
from conformance.adapter.process import StartError
from conformance.adapter.worker import Exhausted, Greeting, GreetingError
from conformance.baselines import load_baseline
from conformance.cases.record import Judgement
from conformance.cli.console import Format, err, stop
from conformance.cli.face import Face, print_summary, summary_json
from conformance.cli.target import config_of, target_of
from conformance.engine import CaseResult, Engine, RunSettings
from conformance.gate import GateDecision, decide, parse_requirement
from conformance.plan import plan_of
from conformance.recorder import Recorder, header_of
from conformance.summary import Summary, missing_result, summarise
from conformance.verdict import Exit, Verdict, gravest
from reports.evidence import EvidenceError, Redactor, read_evidence
from specs import Contract, SpecError, contract_names, load_contract
from specs.loader import contract_folders

DEFAULT_EVIDENCE = Path("holdfast-out") / "run.jsonl"
# pytest's own exit status when -k selects nothing.
_NOTHING_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    settings: RunSettings
    evidence: Path
    expression: str | None
    clauses: tuple[str, ...]
    xfail: Path | None
    jobs: int
    exit_first: bool
    junitxml: Path | None
    alluredir: Path | None
    format: Format

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets that the user handed to this run."""
        settings = self.settings
        environment = {name: os.environ[name] for name in settings.passed_environment if name in os.environ}
        return Redactor.knowing(config=settings.config, environment=environment, command=settings.adapter)


def verify(
    context: typer.Context,
    contract: Annotated[
        list[str] | None, typer.Option("--contract", help="only this contract; repeat for more")
    ] = None,
    expression: Annotated[str | None, typer.Option("-k", help="only cases whose id or clause fits (pytest -k)")] = None,
    clause: Annotated[
        list[str] | None, typer.Option("--clause", help="only cases of this clause; repeat for more")
    ] = None,
    evidence: Annotated[Path, typer.Option(help="where the evidence goes")] = DEFAULT_EVIDENCE,
    xfail_file: Annotated[Path | None, typer.Option("--xfail", help="file of expected failures")] = None,
    config: Annotated[list[str] | None, typer.Option("--config", help="K=V for every session; repeat for more")] = None,
    seed: Annotated[str | None, typer.Option(help="fixes every random suffix; a new one by default")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="processes that run cases")] = 1,
    slow: Annotated[float, typer.Option(min=0.01, max=1000, help="factor on every deadline")] = 1.0,
    exit_first: Annotated[bool, typer.Option("-x", help="stop at the first failure")] = False,
    pass_env: Annotated[list[str] | None, typer.Option(help="environment variable the adapter may see; repeat")] = None,
    workdir: Annotated[Path | None, typer.Option(help="parent of the workdirs; must lie on a disk")] = None,
    launcher: Annotated[str | None, typer.Option(help="command that provisions what the adapter needs")] = None,
    junitxml: Annotated[Path | None, typer.Option(help="JUnit XML goes here")] = None,
    alluredir: Annotated[Path | None, typer.Option(help="Allure results go into this folder")] = None,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Verify an adapter: `holdfast verify reference`, or `holdfast verify -- COMMAND…`."""
    parsed = config_of(config or [])
    target = target_of(context.args, launcher=launcher)
    settings = RunSettings(
        adapter=target.adapter,
        contracts=_contracts(contract or []),
        seed=_seed(seed),
        launcher=target.launcher,
        config=parsed,
        slow=slow,
        passed_environment=tuple(pass_env or ()),
        workdir=None if workdir is None else str(_usable(workdir)),
    )
    options = Options(
        settings, evidence, expression, tuple(clause or ()), xfail_file, jobs, exit_first, junitxml, alluredir, format_
    )
    raise typer.Exit(int(run(options)))


def _seed(text: str | None) -> str:
    if text is None:
        return secrets.token_hex(8)
    if not text or not text.isascii() or not text.isprintable() or len(text) > 128:
        stop(Exit.USAGE, f"expected a seed of 1 to 128 printable ASCII characters, got {text!r}")
    return text


def _contracts(names: Sequence[str]) -> tuple[str, ...]:
    known = contract_names()
    for name in names:
        if name not in known:
            stop(Exit.USAGE, f"unknown contract {name!r}; known contracts: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _usable(folder: Path) -> Path:
    if not folder.is_dir():
        stop(Exit.USAGE, f"--workdir: expected a folder, got {folder}; make it first")
    probe = folder / f"holdfast-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        stop(Exit.USAGE, f"--workdir: {folder} cannot be written to ({error.strerror}); give a folder you may write to")
    return folder.resolve()


def run(options: Options) -> Exit:
    """Run as the options say and print the summary; the exit status of the command."""
    settings = options.settings
    try:
        expectations = () if options.xfail is None else xfail.read_xfail(options.xfail)
        requested = [load_contract(name) for name in settings.contracts]
    except (SpecError, xfail.XfailError) as error:
        stop(Exit.USAGE, str(error))
    try:
        with Engine(settings) as engine:
            greeting, failure = _greet(engine)
            if greeting is None:
                assert failure is not None
                return _never_started(options, requested, failure)
            contracts = _claimed(requested, greeting)
            _known_clauses(options.clauses, contracts)
            for contract in contracts:
                engine.provision(contract.name)
            return _Run(options, contracts, greeting, expectations, engine).go()
    except StartError as error:
        stop(Exit.ADAPTER, str(error))
    except EvidenceError as error:
        # What was shown cannot be written down, so nothing is proven.
        stop(Exit.INCOMPLETE, str(error))
    except OSError as error:
        stop(
            Exit.USAGE, f"{error.filename or 'a file'} cannot be used: {error.strerror}; name a place you may write to"
        )
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; the evidence has no footer and proves nothing")


def _greet(engine: Engine) -> tuple[Greeting | None, Judgement | None]:
    try:
        return engine.greet(), None
    except GreetingError as error:
        detail = f"before any case: {error.event.detail}"
        log = error.log.strip()
        shown = f"; its standard error ends: {log[-400:]}" if log else ""
        return None, Judgement(Verdict.NO_VERDICT, error.event.kind, detail + shown)
    except Exhausted:
        return None, Judgement(Verdict.NO_VERDICT, None, "before any case: no worker could be started")


def _never_started(options: Options, contracts: Sequence[Contract], failure: Judgement) -> Exit:
    """The adapter failed before any case: every planned case of the requested contracts has no verdict."""
    header = header_of(options.settings, contracts, None, expression=options.expression)
    recorder = _recorder(options)
    recorder.begin(header)
    for contract in contracts:
        for planned in plan_of(contract):
            recorder.write(CaseResult(planned.id, planned.clauses, failure, (), (), 0.0), excused=None)
    recorder.finish(verdict=Verdict.NO_VERDICT.value, exit_status=int(Exit.ADAPTER))
    stop(
        Exit.ADAPTER,
        f"the adapter failed {failure.detail}. Expected its answer to hello on standard output; "
        "run `holdfast doctor -- COMMAND…` to see what it does",
    )


def _claimed(requested: Sequence[Contract], greeting: Greeting) -> list[Contract]:
    """The contracts to run: the requested ones, or all that the adapter claims and this kit knows."""
    known = set(contract_names())
    names = [claim.contract for claim in greeting.claims]
    if len(set(names)) != len(names):
        stop(Exit.ADAPTER, f"expected each contract to be claimed once in hello, got {', '.join(sorted(names))}")
    contracts = list(requested) or [load_contract(c.contract) for c in greeting.claims if c.contract in known]
    for claim in greeting.claims:
        if claim.contract not in known:
            err().print(f"holdfast: the adapter claims {claim.contract}, which this kit does not know", style="yellow")
    if not contracts:
        stop(Exit.ADAPTER, f"the adapter claims no contract that this kit knows; known: {', '.join(sorted(known))}")
    for contract in contracts:
        found = greeting.claim(contract.name)
        if found is None or found.version != contract.version:
            said = "does not claim it" if found is None else f"claims version {found.version}"
            stop(
                Exit.ADAPTER,
                f"expected the adapter to claim {contract.name} {contract.version}, it {said}; "
                "let hello list it under `claims`, or verify another --contract",
            )
    return contracts


def _known_clauses(names: Sequence[str], contracts: Sequence[Contract]) -> None:
    for name in names:
        if not any(name in contract.clauses for contract in contracts):
            stop(Exit.USAGE, f"--clause: expected the id of a clause, got {name!r}; `holdfast list clauses` names them")


def _recorder(options: Options) -> Recorder:
    try:
        return Recorder(options.evidence, redactor=options.redactor)
    except EvidenceError as error:
        stop(Exit.USAGE, str(error))


class _Run:
    """One run, as a plugin of the pytest session that does the work."""

    def __init__(
        self,
        options: Options,
        contracts: Sequence[Contract],
        greeting: Greeting,
        expectations: Sequence[xfail.Expectation],
        engine: Engine,
    ) -> None:
        self._options = options
        self._contracts = contracts
        self._expectations = expectations
        self._engine = engine
        self._plan = tuple(case for contract in contracts for case in plan_of(contract))
        self._selected: set[str] | None = None
        self._results: dict[str, CaseResult] = {}
        self._broken: EvidenceError | None = None
        expression = options.expression
        if options.clauses:
            expression = " or ".join(options.clauses) if expression is None else expression
        header = header_of(options.settings, contracts, greeting, expression=expression)
        self._recorder = _recorder(options)
        self._recorder.begin(header)
        self._face = Face(self._plan, quiet=options.format is Format.JSON)

    # Hooks of the pytest session

    def pytest_holdfast_engine(self) -> Engine:
        """The engine that greeted the adapter runs the cases of this process."""
        return self._engine

    def pytest_holdfast_excused(self, result: CaseResult) -> str | None:
        """The issue under which a result is expected."""
        return xfail.excuse_of(self._expectations, result)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is to run, where this process collects."""
        if session.items:
            self._select(item.name for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:  # noqa: ARG002
        """Note what is to run, where the processes of xdist collect; all of them collect the same."""
        self._select(name.rpartition("::")[2] for name in ids)

    def _select(self, names: Iterable[str]) -> None:
        if self._selected is None:
            self._selected = set(names)
            self._face.begin(len(self._selected))

    def pytest_holdfast_result(self, result: CaseResult) -> None:
        """Write it down before anything else runs."""
        if self._broken is not None:
            return
        self._results[result.case] = result
        try:
            self._recorder.write(result, excused=self.pytest_holdfast_excused(result))
        except EvidenceError as error:
            self._broken = error
            pytest.exit(str(error), returncode=int(Exit.INCOMPLETE))
        self._face.result(result)

    # The run

    def go(self) -> Exit:
        """Run pytest, complete the evidence, print."""
        try:
            with self._face:
                status = self._pytest()
            if self._broken is not None:
                raise self._broken
            if status == pytest.ExitCode.INTERRUPTED:
                raise KeyboardInterrupt
            if status == pytest.ExitCode.USAGE_ERROR:
                stop(
                    Exit.USAGE,
                    f"-k: expected words joined by and, or, not and brackets, got {self._options.expression!r}",
                )
            return self._conclude(status)
        finally:
            self._recorder.close()

    def _pytest(self) -> int:
        options = self._options
        folders = contract_folders()
        with tempfile.TemporaryDirectory(prefix="holdfast-pytest-", dir=self._engine.root) as scratch:
            handed = Path(scratch) / "settings.json"
            # It may hold secrets of the config; the folder around it is readable by adapters of other accounts.
            handed.touch(mode=0o600)
            handed.write_text(json.dumps(options.settings.as_json()), encoding="utf-8")
            ini = Path(scratch) / "pytest.ini"
            ini.write_text("[pytest]\n", encoding="utf-8")
            words = [
                *("-c", str(ini), "--rootdir", scratch, "--noconftest", "--import-mode=importlib"),
                *("--basetemp", str(Path(scratch) / "temp")),
                *("-p", "conformance.plugin", "--holdfast-settings", str(handed)),
                *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:logging", "-p", "no:faulthandler"),
                *("--capture", "no"),
            ]
            if options.expression is not None:
                words += ["-k", options.expression]
            for clause in options.clauses:
                words += ["--holdfast-clause", clause]
            if options.exit_first:
                words.append("-x")
            if options.jobs > 1:
                words += ["-p", "xdist.plugin", "-n", str(options.jobs), "--dist", "load"]
            if options.junitxml is not None:
                words.append(f"--junitxml={options.junitxml.resolve()}")
            if options.alluredir is not None:
                words += ["-p", "allure_pytest.plugin", f"--alluredir={options.alluredir.resolve()}"]
            words += [str(folders[contract.name] / "contract.yaml") for contract in self._contracts]
            with _own_pytest_environment():
                return int(pytest.main(words, plugins=[self]))

    def _conclude(self, status: int) -> Exit:
        narrowed = self._options.expression is not None or bool(self._options.clauses) or self._options.exit_first
        selected = self._selected if self._selected is not None else set()
        for planned in self._plan:
            if planned.id in selected and planned.id not in self._results and not self._options.exit_first:
                self.pytest_holdfast_result(missing_result(planned))
        if self._broken is not None:
            raise self._broken
        results = [self._results[case.id] for case in self._plan if case.id in self._results]
        applied = xfail.apply(
            self._expectations,
            results,
            not_run=[case.id for case in self._plan if narrowed and case.id not in self._results],
        )
        summary = summarise(
            self._contracts,
            self._plan,
            results,
            narrowed=narrowed,
            excused=applied.excused,
            baselines={contract.name: load_baseline(contract) for contract in self._contracts},
        )
        final = gravest([summary.exit, applied.exit, *([] if _pytest_went_well(status) else [Exit.KIT])])
        self._recorder.finish(verdict=summary.verdict.value, exit_status=int(final))
        self._print(summary, applied, final)
        return final

    def _print(self, summary: Summary, applied: xfail.Applied, final: Exit) -> None:
        if self._options.format is Format.JSON:
            print(json.dumps(summary_json(summary, final, self._options.evidence), ensure_ascii=False))
        else:
            print_summary(
                summary,
                applied,
                final,
                decision=self._decision(),
                options=self._options,
                contracts=self._contracts,
                plan=self._plan,
            )

    def _decision(self) -> GateDecision:
        """What the gate says of the evidence as it stands in the file."""
        requirements = [parse_requirement(contract.name) for contract in self._contracts]
        return decide(read_evidence(self._options.evidence), requirements, now=datetime.now(UTC))


def _pytest_went_well(status: int) -> bool:
    return status in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, _NOTHING_COLLECTED}


@contextlib.contextmanager
def _own_pytest_environment() -> Iterator[None]:
    """pytest without the user's plugins, options and variables, which could change what a run shows."""
    # xdist starts its workers with `python -c`, which would import from the current folder first.
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONSAFEPATH": "1"}
    saved = {name: value for name, value in os.environ.items() if name.startswith("PYTEST_") or name in own}
    for name in saved:
        del os.environ[name]
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]
        os.environ.update(saved)
