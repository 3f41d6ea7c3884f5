"""`holdfast fuzz`: requests over HTTP that no client should send, against an implementation at a URL (docs/fuzz.md)."""

from __future__ import annotations

import os
import secrets
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.cli.console import Format, OutputFormat, PlainConsole, members, out, print_json, stop, styled
from holdfast.conformance.cli.greeted import greeted
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.cli.outermost.older_runs import EVIDENCE
from holdfast.conformance.cli.target import TargetOptions, known_contracts
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


@dataclass(frozen=True, kw_only=True)
class Options(TargetOptions):
    """What the command line asks for."""

    contract: Annotated[list[str], typer.Option("--contract", help="contract to ask for; repeat for more")]
    requests: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="requests that are drawn for each contract, beside the others")
    ] = 1000
    case: Annotated[list[str] | None, typer.Option("--case", help="only this case; repeat for more")] = None
    seed: Annotated[str | None, typer.Option(help="decides what is drawn")] = None
    evidence: Annotated[Path, typer.Option(help="where the evidence goes")] = _EVIDENCE
    workdir: Annotated[Path | None, typer.Option(help="parent of the workdirs")] = None
    format_: OutputFormat = Format.TEXT

    def again(self, settings: RunSettings) -> str:
        """The command that sends the same once more, without the case."""
        redactor = settings.redactor
        words = ["holdfast", "fuzz", "--seed", settings.seed, "--requests", str(self.requests)]
        for option, text in (("--url", self.url), ("--start", self.start), ("--launcher", self.launcher)):
            words += [] if text is None else [option, shlex.join(redactor.command(shlex.split(text)))]
        for name, value in redactor.named(settings.config).items():
            words += ["--config", f"{name}={value}"]
        words += [] if self.slow == 1.0 else ["--slow", repr(self.slow)]
        return shlex.join(words + [word for name in settings.passed_environment for word in ("--pass-env", name)])


@with_options(Options)
def fuzz(options: Options) -> Exit:
    """Send what no client should send to an implementation that is asked over HTTP."""
    names = known_contracts(options.contract)
    if options.url is None and options.start is None:
        stop(Exit.USAGE, "expected --start COMMAND or --url URL, got neither; holdfast fuzz asks over HTTP alone")
    if options.workdir is not None and not options.workdir.is_dir():
        stop(Exit.USAGE, f"--workdir: expected a folder, got {options.workdir}; make it first")
    parent = None if options.workdir is None else str(options.workdir.resolve())
    settings = options.settings_for(names, seed=options.seed or secrets.token_hex(16), workdir=parent)
    return _run(options, settings)


def _run(options: Options, settings: RunSettings) -> Exit:
    from holdfast.conformance.fuzz.cases import fuzz_cases

    contracts = [load_contract(name) for name in settings.contracts]
    started, cases = datetime.now(UTC), options.case or ()
    origin = SeedOrigin.FRESH if options.seed is None else SeedOrigin.CHOSEN
    redactor = settings.redactor
    identity = Identity(settings.adapter, started=started, named=(), redactor=redactor)
    results: list[CaseResult] = []
    try:
        with Recorder(options.evidence, redactor=redactor) as recorder:
            with greeted(settings, contracts) as (engine, greeting):
                # It would lie in the user's folder.
                os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(engine.root / "hypothesis")
                identity.saw(engine.pool.loaded(), scratch=engine.root)
                lacking = {each.name: engine.not_claimed(each) for each in contracts}
                missing = {each.name: unclaimed(each, lacking[each.name]) for each in contracts}
                planned = [
                    (each, *pair)
                    for each in contracts
                    for pair in fuzz_cases(each, count=options.requests, lacking=lacking[each.name])
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
                    if options.format_ is Format.TEXT:
                        _say(out(), each, result, options.again(settings))
                identity.saw(engine.pool.loaded())
                for name, methods in missing.items():
                    if methods and options.format_ is Format.TEXT:
                        out().print(f"not asked, for it is not claimed: {name}: {', '.join(methods)}")
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
    if options.format_ is Format.JSON:
        names = ("verdict", "detail", "expected", "received", "advice")
        judged = [{"case": each.case, **members(each.judgement, *names)} for each in results]
        print_json({"verdict": verdict.value, "exit": int(final), "cases": judged})
    else:
        out().print(f"evidence: {options.evidence}")
        out().print("verdict: ", styled(verdict), f"  exit {int(final)}")
    return final


def _say(console: PlainConsole, contract: Contract, result: CaseResult, again: str) -> None:
    judged = result.judgement
    console.print(styled(judged.verdict), result.case, judged.detail)
    if judged.verdict is Verdict.CONFORMS:
        return
    for name, text in (("expected", judged.expected), ("received", judged.received), ("advice", judged.advice)):
        if text:
            console.print(f"  {name}: {text}", soft_wrap=True)
    for line in log_tail(result):
        console.print(f"  stderr: {line}")
    more = f"--contract {contract.name} --case {result.case}"
    console.print(f"  the same again: {again} {more}", soft_wrap=True)
