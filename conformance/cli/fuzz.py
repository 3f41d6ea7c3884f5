"""`holdfast fuzz`: requests over HTTP that no client should send, against an implementation at a URL (docs/fuzz.md)."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from holdfast import install_line
from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.cli.console import Format, OutputFormat, out, print_json, stop, styled
from holdfast.conformance.cli.greeted import greeted
from holdfast.conformance.cli.outermost.older_runs import EVIDENCE
from holdfast.conformance.cli.target import (
    Config,
    Launcher,
    PassEnv,
    Slow,
    Start,
    Url,
    known_contracts,
    settings_of,
    target_of,
)
from holdfast.conformance.cli.verify.transcript import log_tail
from holdfast.conformance.run.artefacts import Identity
from holdfast.conformance.run.plan import unclaimed
from holdfast.conformance.run.recorder import Recorder, header_of
from holdfast.conformance.run.settings import Caller, RunSettings
from holdfast.conformance.verdict import Exit, Verdict, exit_of, gravest, gravest_finding
from holdfast.reports.evidence import EvidenceError, SeedOrigin
from holdfast.specs import Contract, load_contract
from holdfast.specs.errors import unknown

_EVIDENCE = Path(EVIDENCE).with_name("fuzz.jsonl")
_NARROWED = "holdfast fuzz"


def fuzz(
    context: typer.Context,
    contract: Annotated[list[str], typer.Option("--contract", help="contract to ask for; repeat for more")],
    url: Url = None,
    start: Start = None,
    launcher: Launcher = None,
    requests: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="requests that are drawn for each contract, beside the others")
    ] = 1000,
    case: Annotated[list[str] | None, typer.Option("--case", help="only this case; repeat for more")] = None,
    seed: Annotated[str | None, typer.Option(help="decides what is drawn")] = None,
    evidence: Annotated[Path, typer.Option(help="where the evidence goes")] = _EVIDENCE,
    config: Config = None,
    slow: Slow = 1.0,
    pass_env: PassEnv = None,
    workdir: Annotated[Path | None, typer.Option(help="parent of the workdirs")] = None,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Send what no client should send to an implementation that is asked over HTTP."""
    contracts = known_contracts(contract)
    if url is None and start is None:
        stop(Exit.USAGE, "expected --start COMMAND or --url URL, got neither; holdfast fuzz asks over HTTP alone")
    if workdir is not None and not workdir.is_dir():
        stop(Exit.USAGE, f"--workdir: expected a folder, got {workdir}; make it first")
    target = target_of(context.args, launcher=launcher, url=url, start=start)
    parent = None if workdir is None else str(workdir.resolve())
    fixed = seed or secrets.token_hex(16)
    settings = settings_of(target, contracts, seed=fixed, config=config, slow=slow, pass_env=pass_env, workdir=parent)
    origin = SeedOrigin.FRESH if seed is None else SeedOrigin.CHOSEN
    redactor = settings.redactor
    words = ["holdfast", "fuzz", "--seed", settings.seed, "--requests", str(requests)]
    for option, text in (("--url", url), ("--start", start), ("--launcher", launcher)):
        words += [] if text is None else [option, shlex.join(redactor.command(shlex.split(text)))]
    for name, value in redactor.named(settings.config).items():
        words += ["--config", f"{name}={value}"]
    words += [] if slow == 1.0 else ["--slow", repr(slow)]
    words += [word for name in settings.passed_environment for word in ("--pass-env", name)]
    again = shlex.join(words)
    raise typer.Exit(int(_run(settings, origin, evidence, requests, tuple(case or ()), format_, again)))


def _run(
    settings: RunSettings,
    origin: SeedOrigin,
    evidence: Path,
    count: int,
    cases: Sequence[str],
    format_: Format,
    again: str,
) -> Exit:
    try:
        from holdfast.conformance.fuzz.cases import fuzz_cases
    except ImportError as error:
        stop(Exit.INCOMPLETE, f"not proven: {error}; holdfast fuzz needs `{install_line('fuzz')}`")
    contracts = [load_contract(name) for name in settings.contracts]
    started = datetime.now(UTC)
    redactor = settings.redactor
    identity = Identity(settings.adapter, started=started, named=(), redactor=redactor)
    results: list[CaseResult] = []
    try:
        with Recorder(evidence, redactor=redactor) as recorder:
            with greeted(settings, contracts) as (engine, greeting):
                # It would lie in the user's folder.
                os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(engine.root / "hypothesis")
                identity.saw(engine.pool.loaded(), scratch=engine.root)
                lacking = {each.name: engine.not_claimed(each) for each in contracts}
                missing = {each.name: unclaimed(each, lacking[each.name]) for each in contracts}
                planned = [
                    (each, *pair)
                    for each in contracts
                    for pair in fuzz_cases(each, count=count, lacking=lacking[each.name])
                ]
                known = [each.id for _, each, _ in planned]
                for name in cases:
                    if name not in known:
                        stop(Exit.USAGE, f"--case: {unknown('case', name, known)}")
                chosen = [each for each in planned if not cases or each[1].id in cases]
                header = header_of(
                    settings,
                    contracts,
                    greeting,
                    caller=Caller(origin, None, None),
                    started=started,
                    expression=_NARROWED,
                    faults=False,
                    plan=known,
                )
                recorder.header(header)
                for each, case, test in chosen:
                    result = engine.run_suite_test(each, case, test)
                    recorder.result(result, excused=None)
                    results.append(result)
                    if format_ is Format.TEXT:
                        _say(out(), each, result, again)
                identity.saw(engine.pool.loaded())
                for name, methods in missing.items():
                    if methods and format_ is Format.TEXT:
                        out().print(f"not asked, for it is not claimed: {name}: {', '.join(methods)}", markup=False)
            verdict = gravest_finding(result.judgement.verdict for result in results)
            # Of what was not asked nothing is said, as with `holdfast verify`: other cases, methods that are not there.
            is_whole = len(chosen) == len(planned) and not any(missing.values())
            exits = [exit_of(each.judgement.verdict) for each in results]
            final = gravest([exit_of(verdict), *exits, *([] if is_whole else [Exit.INCOMPLETE])])
            recorder.write(identity.conclude())
            recorder.finish(verdict=verdict.value, exit_status=int(final))
            recorder.confirm()
    except EvidenceError as error:
        stop(Exit.INCOMPLETE, str(error))
    if format_ is Format.JSON:
        members = ("verdict", "detail", "expected", "received", "advice")
        judged = [(each.case, msgspec.to_builtins(each.judgement)) for each in results]
        cases_json = [{"case": case, **{name: said[name] for name in members}} for case, said in judged]
        print_json({"verdict": verdict.value, "exit": int(final), "cases": cases_json})
    else:
        out().print(f"evidence: {evidence}", markup=False)
        out().print(f"verdict:  {styled(verdict)}   exit {int(final)}")
    return final


def _say(console: Console, contract: Contract, result: CaseResult, again: str) -> None:
    judged = result.judgement
    console.print(f"{styled(judged.verdict)} {result.case} {judged.detail}")
    if judged.verdict is Verdict.CONFORMS:
        return
    for name, text in (("expected", judged.expected), ("received", judged.received), ("advice", judged.advice)):
        if text:
            console.print(f"  {name}: {text}", markup=False, soft_wrap=True)
    for line in log_tail(result):
        console.print(f"  stderr: {line}", markup=False)
    more = f"--contract {contract.name} --case {result.case}"
    console.print(f"  the same again: {again} {more}", markup=False, soft_wrap=True)
