"""`holdfast verify`: run every case of the claimed contracts against an adapter, and say what was shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from holdfast.conformance.adapter.pool import Exhausted
from holdfast.conformance.adapter.worker import Greeting, GreetingError
from holdfast.conformance.cases.expect import no_verdict
from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.cli.console import err, stop
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.cli.places import current_folder, put_drawn, unusable, unusable_drawn
from holdfast.conformance.cli.report import report_of
from holdfast.conformance.cli.target import require
from holdfast.conformance.cli.verify.options import QUICK, Options
from holdfast.conformance.cli.verify.verification import Verification
from holdfast.conformance.run import xfail
from holdfast.conformance.run.artefacts import ArtefactError, Identity
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import plan_of, usable
from holdfast.conformance.run.recorder import Recorder, header_of
from holdfast.conformance.run.results import results_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Exit, FailureMode, Verdict
from holdfast.reports.earlier import EarlierError, set_results_aside
from holdfast.reports.evidence import EvidenceError, Run
from holdfast.reports.junit import junit_xml
from holdfast.reports.report import page
from holdfast.servers.errors import StartError
from holdfast.specs import Contract, SpecError, load_contract
from holdfast.specs.errors import meant

# What `holdfast verify` writes beside the evidence, and whether it can: asked before the run, written after it


class ReportError(Exception):
    """A report cannot be written though the run came to its end: the text says what was expected and what came."""


def unusable_outputs(options: Options) -> str:
    """Why the outputs that are asked for cannot be written, with what to do; empty if all can.

    The file of the evidence itself is asked for by `holdfast.reports.evidence.Place`.
    """
    return next(filter(None, _problems(options)), "")


def publish(
    run: Run,
    contracts: Sequence[Contract],
    options: Options,
    *,
    problem: str = "",
    verification: Verification | None = None,
) -> None:
    """Draw the reports of a run and put them in their places. `run` is what stands on the disk, complete.

    `problem` says why the adapter did not come as far as a case, and so to no `verification`. Every process of the
    adapter is gone.
    Raises ReportError.
    """
    if options.junitxml is None and options.alluredir is None and options.html is None:
        return
    status = Exit.INCOMPLETE if run.footer is None else Exit(run.footer.exit)
    plan = [planned for contract in contracts for planned in plan_of(contract)]
    results = results_of(run, contracts, plan, status=status, problem=problem)
    try:
        if options.junitxml is not None:
            put_drawn(options.junitxml, junit_xml(results))
        if options.alluredir is not None:
            # The extra `allure` brings what it imports.
            from holdfast.conformance.cli.verify.in_allure import write_allure

            set_results_aside(options.alluredir)
            write_allure(results, run, contracts, options)
        if options.html is not None and run.header is not None:
            decision = None if verification is None else verification.decision(run)
            put_drawn(options.html, page(report_of(run, options.evidence, decision=decision)).encode())
    except (OSError, EarlierError) as error:
        raise ReportError(
            f"expected to write {options.junitxml or options.alluredir or options.html} at the end of the run, "
            f"got: {error}; the evidence is complete"
        ) from error


def _problems(options: Options) -> Iterator[str]:
    """Each thing that stands in the way of an output."""
    allure = options.alluredir
    for option, path in _outputs(options).items():
        if path is not None and str(path).startswith("-"):
            yield f"{option}: expected a path, got {str(path)!r}, which reads like an option; say ./{path} if it is one"
    for option, drawn in (("--junitxml", options.junitxml), ("--html", options.html)):
        if drawn is not None:
            yield unusable_drawn(option, drawn)
    if allure is not None:
        yield _no_folder("--alluredir", allure)
    yield _collision(options)


def _no_folder(option: str, path: Path) -> str:
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        return f"{option}: expected a folder, got links that lead to each other at {path}; name another folder"
    problem = unusable(real)
    return f"{option}: expected a folder for results, but {problem}; name another folder" if problem else ""


def _outputs(options: Options) -> Mapping[str, Path | None]:
    files = {"--evidence": options.evidence, "--junitxml": options.junitxml, "--html": options.html}
    return {**files, "--alluredir": options.alluredir}


def _collision(options: Options) -> str:
    """Two outputs under one name, or one below the file of another."""
    real = {option: os.path.realpath(path) for option, path in _outputs(options).items() if path is not None}
    if options.settings.keep is not None:
        real["states of a broken disk"] = os.path.realpath(options.settings.keep)
    for option, file in real.items():
        for other, path in real.items():
            same = path == file and option < other
            below = option != "--alluredir" and path.startswith(file + os.sep)
            if same or below:
                return f"expected outputs in places of their own, got {file} for {option} and {path} for {other}"
    return ""


@with_options(Options)
def verify(options: Options) -> Exit:
    """Verify an adapter: `holdfast verify reference`, `holdfast verify -- COMMAND…`, or an HTTP service (--service)."""
    if not current_folder():
        stop(
            Exit.USAGE,
            "expected a working directory, got one that has been removed; go to another one (cd) and run again",
        )
    if options.expression is not None and not options.expression.isprintable():
        stop(Exit.USAGE, f"-k: expected words joined by and, or, not and brackets, got {options.expression!r}")
    options.must_be_publishable()
    return run(options)


class NeverStartedError(Exception):
    """The adapter did not come as far as a case, and `failure` says why."""

    def __init__(self, detail: str, *, silence: FailureMode | None = None, advice: str = "") -> None:
        super().__init__(detail)
        self.failure = _silent(detail, silence=silence, advice=advice)


def run(options: Options) -> Exit:
    """Run as the options say and print the summary; the exit status of the command."""
    settings = options.settings
    try:
        expectations = () if options.xfail_file is None else xfail.read_xfail(options.xfail_file)
        requested = [load_contract(name) for name in settings.contracts]
        started = datetime.now(UTC)
        identity = Identity(
            settings.adapter, started=started, named=options.adapter_file or (), redactor=options.redactor
        )
    except (SpecError, xfail.XfailError) as error:
        stop(Exit.USAGE, str(error))
    except ArtefactError as error:
        stop(Exit.USAGE, f"--adapter-file: {error}")
    if options.alluredir is not None:
        require("allure")
    problem = unusable_outputs(options)
    if problem:
        stop(Exit.USAGE, problem)
    try:
        recorder = Recorder(options.evidence, redactor=options.redactor)
    except EvidenceError as error:
        stop(Exit.USAGE, str(error))
    try:
        with recorder:
            status = _run(options, requested, expectations, identity, recorder)
            recorder.confirm()
            return status
    except StartError as error:
        stop(Exit.ADAPTER, str(error))
    except (EvidenceError, ReportError) as error:
        # What was shown cannot be written down, so nothing is proven.
        stop(Exit.INCOMPLETE, str(error))
    except KeyboardInterrupt:
        if recorder.is_complete:
            stop(Exit.INCOMPLETE, "interrupted after the evidence was complete; `holdfast gate` judges it")
        stop(Exit.INCOMPLETE, "interrupted; the evidence has no footer and proves nothing")


def _run(
    options: Options,
    requested: Sequence[Contract],
    expectations: Sequence[xfail.Expectation],
    identity: Identity,
    recorder: Recorder,
) -> Exit:
    """Raises StartError, EvidenceError, ReportError, OSError, KeyboardInterrupt."""
    contracts, greeting, verification = list(requested), None, None
    with Engine(options.settings) as engine:
        try:
            greeting = greet(engine, is_server=options.target.is_server)
            identity.saw(engine.pool.loaded(), scratch=engine.root)
            contracts = claimed(requested, greeting)
            _known_clauses(options.clause or (), contracts)
            _known_cases(options, contracts)
            for contract in contracts:
                engine.provision(contract.name)
                if options.target.is_server:
                    _preflight(engine, contract)
        except (StartError, NeverStartedError) as error:
            failure = failure_of(error)
        else:
            verification = Verification(options, contracts, greeting, expectations, engine, identity, recorder)
            verification.go()
    if verification is None:
        record_failure(options, engine.settings, contracts, greeting, failure, identity, recorder)
    # Only now is every process of the adapter gone, which could have changed what it reads.
    run = recorder.reread()
    problem = failure.detail if verification is None else ""
    publish(run, contracts, options, problem=problem, verification=verification)
    if verification is None:
        stop(_status_of(failure), f"{failure.detail}. {failure.advice}" if failure.advice else failure.detail)
    return verification.say(run)


def failure_of(error: StartError | NeverStartedError) -> Judgement:
    """The judgement on every case that did not begin therefore."""
    return error.failure if isinstance(error, NeverStartedError) else _silent(str(error))


def _silent(detail: str, *, silence: FailureMode | None = None, advice: str = "") -> Judgement:
    return Judgement(Verdict.NO_VERDICT, silence, detail, advice=advice)


def greet(engine: Engine, *, is_server: bool) -> Greeting:
    """The hello of the adapter. Raises StartError, NeverStartedError."""
    try:
        return engine.greet()
    except GreetingError as error:
        log = error.log.strip()
        shown = f"; its standard error ends: {log[-400:]}" if log else ""
        if error.event.kind is FailureMode.BUSY:
            advice = no_verdict(error.event.kind, "").advice
            raise NeverStartedError(error.event.detail, silence=error.event.kind, advice=advice) from error
        if is_server and "error: " in log:
            # The kit's own adapter says last what it met.
            said = log.rpartition("error: ")[2]
            advice = "Start it by hand; docs/http.md and docs/services.md say what it has to answer"
            raise NeverStartedError(said, silence=error.event.kind, advice=advice) from error
        raise NeverStartedError(
            f"the adapter failed before any case: {error.event.detail}{shown}",
            silence=error.event.kind,
            advice="Expected its answer to hello on standard output; `holdfast doctor -- COMMAND…` shows what it does",
        ) from error
    except Exhausted as error:
        raise NeverStartedError("the adapter failed before any case: no worker could be started") from error


def _preflight(engine: Engine, contract: Contract) -> None:
    found = engine.preflight(contract)
    if found.verdict is not Verdict.CONFORMS:
        said = f"{contract.name} cannot be judged: {found.detail}"
        raise NeverStartedError(said, silence=found.silence, advice=found.advice)


def _status_of(failure: Judgement) -> Exit:
    """The exit status where no case ran. Nothing follows for an adapter that was not asked, or too busy a machine."""
    return Exit.INCOMPLETE if failure.silence in {FailureMode.BUSY, FailureMode.MISSING} else Exit.ADAPTER


def record_failure(
    options: Options,
    settings: RunSettings,
    contracts: Sequence[Contract],
    greeting: Greeting | None,
    failure: Judgement,
    identity: Identity,
    recorder: Recorder,
) -> None:
    """The adapter failed before any case: no planned case has a verdict, and the evidence says so."""
    header = header_of(
        settings,
        contracts,
        greeting,
        caller=options.caller,
        started=identity.started,
        expression=options.narrowed,
        faults=False,
    )
    recorder.header(header)
    unproven = replace(failure, detail=f"before any case: {failure.detail}")
    for contract in contracts:
        for planned in plan_of(contract):
            recorder.result(CaseResult(planned.id, planned.clauses, unproven, (), (), 0.0), excused=None)
    recorder.write(identity.conclude())
    recorder.finish(verdict=Verdict.NO_VERDICT.value, exit_status=int(_status_of(failure)))


def claimed(requested: Sequence[Contract], greeting: Greeting) -> list[Contract]:
    """The contracts to run: the requested ones, or all that it claims and this kit knows. Raises NeverStartedError."""
    known, wrong = usable()
    names = [claim.contract for claim in greeting.claims]
    if len(set(names)) != len(names):
        raise NeverStartedError(f"expected each contract to be claimed once in hello, got {', '.join(sorted(names))}")
    contracts = list(requested) or [load_contract(c.contract) for c in greeting.claims if c.contract in known]
    for claim in greeting.claims:
        if claim.contract not in known:
            why = f"cannot be used: {wrong[claim.contract]}" if claim.contract in wrong else "this kit does not know"
            err().print(f"holdfast: the adapter claims {claim.contract}, which {why}", style="yellow")
    if not contracts:
        raise NeverStartedError(
            f"the adapter claims no contract that this kit knows; known: {', '.join(sorted(known))}"
        )
    for contract in contracts:
        found = greeting.claim(contract.name)
        if found is None or found.version != contract.version:
            said = "does not claim it" if found is None else f"claims version {found.version}"
            raise NeverStartedError(
                f"expected the adapter to claim {contract.name} {contract.version}, it {said}",
                advice="Let hello list it under `claims`, or verify another --contract",
            )
    return contracts


def _known_clauses(names: Sequence[str], contracts: Sequence[Contract]) -> None:
    for name in names:
        if not any(name in contract.clauses for contract in contracts):
            near = meant(name, [clause for contract in contracts for clause in contract.clauses])
            text = f"--clause: expected the id of a clause, got {name!r}{near}; `holdfast list clauses` names them"
            stop(Exit.USAGE, text)


def _known_cases(options: Options, contracts: Sequence[Contract]) -> None:
    planned = {each.id: each for contract in contracts for each in plan_of(contract)}
    for name in options.case or ():
        if name not in planned:
            near = meant(name, planned)
            stop(Exit.USAGE, f"--case: expected the id of a case, got {name!r}{near}; `holdfast list cases` names them")
    if options.forms == QUICK and not any(each.form in QUICK for each in planned.values()):
        names = ", ".join(each.name for each in contracts)
        stop(Exit.USAGE, f"--quick selects nothing: {names} has no scripted cases; leave it out")
    if not any(map(options.selects, planned.values())):
        stop(Exit.USAGE, f"no case is selected by {options.narrowed}: each option narrows the others; leave one out")
