"""`holdfast verify`: run every case of the claimed contracts against an adapter, and say what was shown."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.adapter.pool import Exhausted
from holdfast.conformance.adapter.worker import Greeting, GreetingError
from holdfast.conformance.cases.failure import no_verdict
from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.cli.console import Format, OutputFormat, err, stop
from holdfast.conformance.cli.outermost.older_runs import EVIDENCE
from holdfast.conformance.cli.places import current_folder, unusable
from holdfast.conformance.cli.target import (
    Config,
    Launcher,
    PassEnv,
    Service,
    Slow,
    Start,
    Url,
    config_of,
    known_contracts,
    target_of,
)
from holdfast.conformance.cli.verify.options import MOST, QUICK, WITHOUT_FAULTS, Options
from holdfast.conformance.cli.verify.verification import Verification
from holdfast.conformance.run import xfail
from holdfast.conformance.run.artefacts import ArtefactError, Identity
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import ALL_FORMS, plan_of
from holdfast.conformance.run.recorder import Recorder, header_of
from holdfast.conformance.run.results import results_of
from holdfast.conformance.run.settings import FAULT_SECONDS, Caller, RunSettings
from holdfast.conformance.verdict import Exit, Silence, Verdict
from holdfast.reports.earlier import (
    PARTIAL,
    PREVIOUS,
    EarlierError,
    is_junit,
    is_remnant,
    set_aside,
    set_results_aside,
)
from holdfast.reports.evidence import EvidenceError, Run, SeedOrigin, seed_of_nonce
from holdfast.reports.junit import junit_xml
from holdfast.servers.errors import StartError
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.errors import meant

# What `holdfast verify` writes beside the evidence, and whether it can: asked before the run, written after it


class ReportError(Exception):
    """A report cannot be written though the run came to its end: the text says what was expected and what came."""


def unusable_outputs(options: Options) -> str:
    """Why the outputs that are asked for cannot be written, with what to do; empty if all can.

    The file of the evidence itself is asked for by `holdfast.reports.evidence.Place`.
    """
    return next(filter(None, _problems(options)), "")


def publish(run: Run, contracts: Sequence[Contract], options: Options, *, problem: str = "") -> None:
    """Draw the reports of a run and put them in their places. `run` is what stands on the disk, complete.

    `problem` says why the adapter did not come as far as a case. Every process of the adapter is gone.
    Raises ReportError.
    """
    if options.junitxml is None and options.alluredir is None:
        return
    status = Exit.INCOMPLETE if run.footer is None else Exit(run.footer.exit)
    plan = [planned for contract in contracts for planned in plan_of(contract)]
    results = results_of(run, contracts, plan, status=status, problem=problem)
    try:
        if options.junitxml is not None:
            _put_file(junit_xml(results), options.junitxml)
        if options.alluredir is not None:
            # Its library takes a tenth of the time in which this command starts.
            from holdfast.reports.allure import write_allure

            set_results_aside(options.alluredir)
            write_allure(results, options.alluredir)
    except (OSError, EarlierError) as error:
        raise ReportError(
            f"expected to write {options.junitxml or options.alluredir} at the end of the run, got: {error}; "
            "the evidence is complete"
        ) from error


def _put_file(made: bytes, path: Path) -> None:
    """Raises OSError, EarlierError."""
    set_aside(path)
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    partial = real.with_name(real.name + PARTIAL)
    try:
        partial.write_bytes(made)
        partial.replace(real)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _problems(options: Options) -> Iterator[str]:
    """Each thing that stands in the way of an output."""
    junit, allure = options.junitxml, options.alluredir
    for option, path in (("--evidence", options.evidence), ("--junitxml", junit), ("--alluredir", allure)):
        if path is not None and str(path).startswith("-"):
            yield f"{option}: expected a path, got {str(path)!r}, which reads like an option; say ./{path} if it is one"
    if junit is not None:
        yield _no_file("--junitxml", junit)
    if allure is not None:
        yield _no_folder("--alluredir", allure)
    yield _collision(options)


def _no_file(option: str, path: Path) -> str:
    real, advice = os.path.realpath(path), "name another file"
    if real.endswith((PREVIOUS, PARTIAL)):
        return f"{option}: expected another name than {path}; {PREVIOUS} and {PARTIAL} stand for files of other runs"
    if os.path.islink(real):
        return f"{option}: expected a file, got links that lead to each other at {path}; {advice}"
    if os.path.isdir(real):
        return f"{option}: expected a file name, got the folder {path}; name a file in it"
    if os.path.lexists(real) and not os.path.isfile(real):
        return f"{option}: expected a file that keeps what is written, got a device or a pipe at {path}; {advice}"
    for name in (real, real + PARTIAL):
        if os.path.lexists(name) and not (is_remnant(name) or is_junit(name)):
            return f"{option}: {name} is there and is no JUnit file of holdfast's; it is left alone: {advice}"
    problem = unusable(Path(real).parent)
    return f"{option}: {problem}; {advice}" if problem else ""


def _no_folder(option: str, path: Path) -> str:
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        return f"{option}: expected a folder, got links that lead to each other at {path}; name another folder"
    problem = unusable(real)
    return f"{option}: expected a folder for results, but {problem}; name another folder" if problem else ""


def _collision(options: Options) -> str:
    """Two outputs under one name, or one below the file of another."""
    named = {"--evidence": options.evidence, "--junitxml": options.junitxml, "--alluredir": options.alluredir}
    real = {option: os.path.realpath(path) for option, path in named.items() if path is not None}
    if options.settings.keep is not None:
        real["states of a broken disk"] = os.path.realpath(options.settings.keep)
    for option, file in real.items():
        for other, path in real.items():
            same = path == file and option < other
            below = option in ("--evidence", "--junitxml") and path.startswith(file + os.sep)
            if same or below:
                return f"expected outputs in places of their own, got {file} for {option} and {path} for {other}"
    return ""


DEFAULT_EVIDENCE = Path(EVIDENCE)
# Beside the evidence: states of a disk that broke a promise, as tar files with their recordings.
_STATES = "faults"
# What a caller may say of a run: enough for any revision, and for any random number in any spelling.
MAX_NONCE, MAX_COMMIT = 128, 64


def verify(
    context: typer.Context,
    contract: Annotated[
        list[str] | None, typer.Option("--contract", help="only this contract; repeat for more")
    ] = None,
    expression: Annotated[str | None, typer.Option("-k", help="only cases whose id or clause fits (pytest -k)")] = None,
    clause: Annotated[
        list[str] | None, typer.Option("--clause", help="only cases of this clause; repeat for more")
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option("--case", help="only this case; repeat for more"),
    ] = None,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults/--no-faults",
            help="let faults strike; without, the gate will not take the run",
        ),
    ] = True,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="only the scripted cases, within seconds; the gate will not take the run"),
    ] = False,
    evidence: Annotated[Path, typer.Option(help="where the evidence goes")] = DEFAULT_EVIDENCE,
    xfail_file: Annotated[Path | None, typer.Option("--xfail", help="file of expected failures")] = None,
    config: Config = None,
    seed: Annotated[
        str | None, typer.Option(help="fixes every random suffix; the gate takes such a run only with --allow-seed")
    ] = None,
    nonce: Annotated[
        str | None, typer.Option(help="known to you alone before; the seed is derived from it, the gate can ask for it")
    ] = None,
    commit: Annotated[str | None, typer.Option(metavar="REV", help="revision that the adapter was built from")] = None,
    adapter_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="file or folder that is part of the adapter; its digest counts; repeat"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="processes that run cases; by default one more than there are processors"),
    ] = None,
    slow: Slow = 1.0,
    exit_first: Annotated[bool, typer.Option("-x", help="stop at the first failure")] = False,
    fault_seconds: Annotated[
        float,
        typer.Option(min=0, max=1_000_000, help="time for each layer of faults; its floor is tried in any case"),
    ] = FAULT_SECONDS,
    thorough: Annotated[
        float, typer.Option(min=1, max=1000, metavar="FACTOR", help="factor on floors of faults, and histories")
    ] = 1.0,
    pass_env: PassEnv = None,
    workdir: Annotated[Path | None, typer.Option(help="parent of the workdirs; must lie on a disk")] = None,
    launcher: Launcher = None,
    url: Url = None,
    start: Start = None,
    service: Service = None,
    junitxml: Annotated[Path | None, typer.Option(help="JUnit XML goes here")] = None,
    alluredir: Annotated[Path | None, typer.Option(help="Allure results go into this folder")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="also print why cases are not claimed")] = False,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Verify an adapter: `holdfast verify reference`, `holdfast verify -- COMMAND…`, or an HTTP service (--service)."""
    if not current_folder():
        stop(
            Exit.USAGE,
            "expected a working directory, got one that has been removed; go to another one (cd) and run again",
        )
    parsed = config_of(config or [])
    if expression is not None and not expression.isprintable():
        stop(Exit.USAGE, f"-k: expected words joined by and, or, not and brackets, got {expression!r}")
    target = target_of(context.args, launcher=launcher, url=url, start=start, service=service)
    used, origin = _seed(seed, nonce)
    settings = RunSettings(
        adapter=target.adapter,
        contracts=known_contracts(contract or []),
        seed=used,
        launcher=target.launcher,
        config=parsed,
        slow=slow,
        passed_environment=tuple(pass_env or ()),
        workdir=None if workdir is None else str(_usable(workdir)),
        fault_seconds=fault_seconds,
        thorough=thorough,
        keep=str((evidence.parent / _STATES).absolute()),
        nursery=target.nursery,
    )
    options = Options(
        settings=settings,
        evidence=evidence,
        expression=expression,
        clauses=tuple(clause or ()),
        cases=tuple(case or ()),
        forms=QUICK if quick else ALL_FORMS if faults else WITHOUT_FAULTS,
        xfail=xfail_file,
        jobs=jobs,
        exit_first=exit_first,
        junitxml=junitxml,
        alluredir=alluredir,
        caller=Caller(origin, nonce, commit),
        adapter_files=tuple(adapter_file or ()),
        format=format_,
        reference=target.is_reference,
        is_server=target.is_server,
        typed=target.typed,
        verbose=verbose,
    )
    _publishable(options)
    raise typer.Exit(int(run(options)))


def _seed(text: str | None, nonce: str | None) -> tuple[str, SeedOrigin]:
    """The seed of the run, and where it came from."""
    if text is not None:
        _must_be_printable("--seed", text, most=128)
        return text, SeedOrigin.CHOSEN
    if nonce is not None:
        _must_be_printable("--nonce", nonce, most=MAX_NONCE)
        return seed_of_nonce(nonce), SeedOrigin.NONCE
    return secrets.token_hex(16), SeedOrigin.FRESH


def _publishable(options: Options) -> None:
    """What the caller says stands in the evidence as it was said, so it must be short text and no secret."""
    for option, text, most in (
        ("--nonce", options.caller.nonce, MAX_NONCE),
        ("--commit", options.caller.commit, MAX_COMMIT),
    ):
        if text is None:
            continue
        _must_be_printable(option, text, most=most)
        if options.redactor.free(text) != text:
            stop(Exit.USAGE, f"{option}: expected something that may be published, got what looks like a secret")


def _must_be_printable(option: str, text: str, *, most: int) -> None:
    if not text.strip() or not text.isascii() or not text.isprintable() or len(text) > most:
        stop(Exit.USAGE, f"{option}: expected 1 to {most} printable ASCII characters, got {text!r}")


def _usable(folder: Path) -> Path:
    if not folder.is_dir():
        stop(Exit.USAGE, f"--workdir: expected a folder, got {folder}; make it first")
    if why := unusable(folder):
        stop(Exit.USAGE, f"--workdir: {why}; give a folder you may write to")
    return folder.resolve()


class _NeverStartedError(Exception):
    """The adapter did not come as far as a case, and `failure` says why."""

    def __init__(self, detail: str, *, silence: Silence | None = None, advice: str = "") -> None:
        super().__init__(detail)
        self.failure = _silent(detail, silence=silence, advice=advice)


def run(options: Options) -> Exit:
    """Run as the options say and print the summary; the exit status of the command."""
    settings = options.settings
    try:
        expectations = () if options.xfail is None else xfail.read_xfail(options.xfail)
        requested = [load_contract(name) for name in settings.contracts]
        started = datetime.now(UTC)
        identity = Identity(settings.adapter, started=started, named=options.adapter_files, redactor=options.redactor)
    except (SpecError, xfail.XfailError) as error:
        stop(Exit.USAGE, str(error))
    except ArtefactError as error:
        stop(Exit.USAGE, f"--adapter-file: {error}")
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
        options = replace(options, settings=engine.settings)
        try:
            greeting = _greet(engine, is_server=options.is_server)
            identity.saw(engine.loaded(), scratch=engine.root)
            contracts = _claimed(requested, greeting)
            _known_clauses(options.clauses, contracts)
            _known_cases(options, contracts)
            for contract in contracts:
                engine.provision(contract.name)
                if options.is_server:
                    _preflight(engine, contract)
        except (StartError, _NeverStartedError) as error:
            failure = error.failure if isinstance(error, _NeverStartedError) else _silent(str(error))
        else:
            verification = Verification(options, contracts, greeting, expectations, engine, identity, recorder)
            verification.go()
    if verification is None:
        _record_failure(options, contracts, greeting, failure, identity, recorder)
    # Only now is every process of the adapter gone, which could have changed what it reads.
    run = recorder.reread()
    publish(run, contracts, options, problem=failure.detail if verification is None else "")
    if verification is None:
        stop(_status_of(failure), f"{failure.detail}. {failure.advice}" if failure.advice else failure.detail)
    return verification.say(run)


def _silent(detail: str, *, silence: Silence | None = None, advice: str = "") -> Judgement:
    return Judgement(Verdict.NO_VERDICT, silence, detail, advice=advice)


def _greet(engine: Engine, *, is_server: bool) -> Greeting:
    try:
        return engine.greet()
    except GreetingError as error:
        log = error.log.strip()
        shown = f"; its standard error ends: {log[-400:]}" if log else ""
        if error.event.kind is Silence.BUSY:
            advice = no_verdict(error.event.kind, "").advice
            raise _NeverStartedError(error.event.detail, silence=error.event.kind, advice=advice) from error
        if is_server and "error: " in log:
            # The kit's own adapter says last what it met.
            said = log.rpartition("error: ")[2]
            advice = "Start it by hand; docs/http.md and docs/services.md say what it has to answer"
            raise _NeverStartedError(said, silence=error.event.kind, advice=advice) from error
        raise _NeverStartedError(
            f"the adapter failed before any case: {error.event.detail}{shown}",
            silence=error.event.kind,
            advice="Expected its answer to hello on standard output; `holdfast doctor -- COMMAND…` shows what it does",
        ) from error
    except Exhausted as error:
        raise _NeverStartedError("the adapter failed before any case: no worker could be started") from error


def _preflight(engine: Engine, contract: Contract) -> None:
    found = engine.preflight(contract)
    if found.verdict is not Verdict.CONFORMS:
        said = f"{contract.name} cannot be judged: {found.detail}"
        raise _NeverStartedError(said, silence=found.silence, advice=found.advice)


def _status_of(failure: Judgement) -> Exit:
    """The exit status where no case ran: of a machine that was too busy nothing follows for the adapter."""
    return Exit.INCOMPLETE if failure.silence is Silence.BUSY else Exit.ADAPTER


def _record_failure(
    options: Options,
    contracts: Sequence[Contract],
    greeting: Greeting | None,
    failure: Judgement,
    identity: Identity,
    recorder: Recorder,
) -> None:
    """The adapter failed before any case: no planned case has a verdict, and the evidence says so."""
    header = header_of(
        options.settings,
        contracts,
        greeting,
        caller=options.caller,
        started=identity.started,
        expression=options.narrowed,
        faults=False,
    )
    recorder.begin(header)
    unproven = replace(failure, detail=f"before any case: {failure.detail}")
    for contract in contracts:
        for planned in plan_of(contract):
            recorder.write(CaseResult(planned.id, planned.clauses, unproven, (), (), 0.0), excused=None)
    recorder.finish(identity.conclude(), verdict=Verdict.NO_VERDICT.value, exit_status=int(_status_of(failure)))


def _claimed(requested: Sequence[Contract], greeting: Greeting) -> list[Contract]:
    """The contracts to run: the requested ones, or all that the adapter claims and this kit knows."""
    known = set(contract_names())
    names = [claim.contract for claim in greeting.claims]
    if len(set(names)) != len(names):
        raise _NeverStartedError(f"expected each contract to be claimed once in hello, got {', '.join(sorted(names))}")
    contracts = list(requested) or [load_contract(c.contract) for c in greeting.claims if c.contract in known]
    for claim in greeting.claims:
        if claim.contract not in known:
            err().print(f"holdfast: the adapter claims {claim.contract}, which this kit does not know", style="yellow")
    if not contracts:
        raise _NeverStartedError(
            f"the adapter claims no contract that this kit knows; known: {', '.join(sorted(known))}"
        )
    for contract in contracts:
        found = greeting.claim(contract.name)
        if found is None or found.version != contract.version:
            said = "does not claim it" if found is None else f"claims version {found.version}"
            raise _NeverStartedError(
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
    for name in options.cases:
        if name not in planned:
            near = meant(name, planned)
            stop(Exit.USAGE, f"--case: expected the id of a case, got {name!r}{near}; `holdfast list cases` names them")
    if options.forms == QUICK and not any(each.form in QUICK for each in planned.values()):
        names = ", ".join(each.name for each in contracts)
        stop(Exit.USAGE, f"--quick selects nothing: {names} has no scripted cases; leave it out")
    if not any(map(options.selects, planned.values())):
        stop(Exit.USAGE, f"no case is selected by {options.narrowed}: each option narrows the others; leave one out")
