"""`holdfast repro` and `holdfast minimise`: a case of a run once more, beside what was recorded, or shorter."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cli.console import ending, out, stop, styled
from holdfast.conformance.cli.greeted import greeted
from holdfast.conformance.cli.target import (
    Launcher,
    found_here,
    known_contracts,
    reference_target,
    require_reference,
    target_of,
    words_of,
)
from holdfast.conformance.cli.verify.transcript import log_tail, transcribed
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.run.shrink import ShrinkError, shorter_script, shorter_session
from holdfast.conformance.verdict import Exit, Verdict, exit_of
from holdfast.reports.evidence import MARK, EvidenceError, Header, read_evidence
from holdfast.reports.plain import plain
from holdfast.specs import Contract, load_contract
from holdfast.specs.errors import meant

RunFile = Annotated[Path, typer.Argument(help="evidence of a run, as `holdfast verify` wrote it")]
CaseName = Annotated[str, typer.Argument(help="a case of that run")]
Recorded = Annotated[
    bool,
    typer.Option("--run-recorded-command", help="start the command that stands in the run's file without asking"),
]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A case of a run: what was judged, and its records by side."""

    contract: Contract
    planned: PlannedCase
    judged: Judgement
    sides: Mapping[str, Sequence[Record]]


def repro(
    context: typer.Context, run: RunFile, case: CaseName, launcher: Launcher = None, recorded_command: Recorded = False
) -> Exit:
    """Run a case of a run once more, with its seed and its adapter, and show both transcripts side by side."""
    recorded, settings = _read(context, run, case, launcher, allowed=recorded_command)
    with greeted(settings, [recorded.contract]) as (engine, _):
        found = engine.run_planned(recorded.contract, recorded.planned)
    console = out()
    for side in ("main", "twin"):
        before, now = recorded.sides.get(side, ()), found.main if side == "main" else found.twin
        if before or now:
            console.print(f"{side} side: recorded, and now", style="bold")
            console.print(_beside(before, now, marked=found.judgement.n))
    for line in log_tail(found):
        console.print(f"stderr:   {line}")
    console.print("recorded:", styled(recorded.judged.verdict), recorded.judged.detail)
    console.print("now:     ", styled(found.judgement.verdict), found.judgement.detail)
    return exit_of(found.judgement.verdict)


def minimise(
    context: typer.Context, run: RunFile, case: CaseName, launcher: Launcher = None, recorded_command: Recorded = False
) -> Exit:
    """Make a case that failed shorter, as long as it fails in the same way, and show what is left."""
    recorded, settings = _read(context, run, case, launcher, allowed=recorded_command)
    if recorded.judged.verdict is Verdict.CONFORMS:
        stop(Exit.USAGE, f"expected a case that failed, got {case}, which conforms")
    script = recorded.contract.case(case)
    side = "main" if recorded.judged.side is None else recorded.judged.side.value
    try:
        with greeted(settings, [recorded.contract]) as (engine, _):
            if script is not None:
                before = [len(part) for part in (script.given, script.when, script.then)]
                shorter, found = shorter_script(engine, recorded.contract, script, recorded.judged)
                kept = [len(part) for part in (shorter.given, shorter.when, shorter.then)]
                said = f"{sum(kept)} of {sum(before)} steps are needed"
            elif recorded.planned.form is Form.FAULT:
                raise ShrinkError(
                    "a fault strikes at every place of its workload; its state is kept beside the evidence"
                )
            else:
                records = recorded.sides.get(side, ())
                found = shorter_session(engine, recorded.contract, recorded.planned, records, recorded.judged.n)
                said = f"{len(found.main)} of {len(records)} exchanges bring the same answer"
    except ShrinkError as error:
        stop(Exit.INCOMPLETE, f"{case}: {error}; `holdfast repro {run} {case}` shows it whole")
    console = out()
    console.print(f"{case}: {said}", style="bold")
    for record in found.twin if side == "twin" and found.twin else found.main:
        console.print_lines(transcribed(record, None))
    console.print("verdict: ", styled(recorded.judged.verdict), recorded.judged.detail)
    return exit_of(recorded.judged.verdict)


def _read(
    context: typer.Context, path: Path, case: str, launcher: str | None, *, allowed: bool
) -> tuple[_Recorded, RunSettings]:
    with ending(Exit.USAGE, EvidenceError):
        run = read_evidence(path)
    header = run.header
    if header is None:
        stop(Exit.USAGE, f"{path}: expected the evidence of a run, got a file without a header")
    if run.vectors:
        words = [found.reproduce for each in run.vectors for found in each.counterexamples] or ["nothing differed"]
        stop(
            Exit.USAGE,
            f"{path} is of `holdfast vectors verify`; one document is asked again by: {'; '.join(words[:3])}",
        )
    line = next((each for each in run.verdicts if each.case == case), None)
    if line is None:
        near = meant(case, [each.case for each in run.verdicts])
        failed = [each.case for each in run.verdicts if each.verdict != Verdict.CONFORMS.value]
        stop(Exit.USAGE, f"expected a case of {path}, got {case!r}{near}; failed there: {', '.join(failed) or 'none'}")
    name = case.partition("/")[0]
    known_contracts([name])
    contract = load_contract(name)
    plan = plan_of(contract)
    planned = next((each for each in plan if each.id == case), None)
    if planned is None and "/http/" in case:
        stop(
            Exit.USAGE, f"{case} is one of `holdfast fuzz`, which has printed the words that repeat it: the same again"
        )
    if planned is None:
        near = meant(case, [each.id for each in plan])
        stop(Exit.USAGE, f"this kit has no case {case!r}{near}; `holdfast list cases` names them")
    records = {side: [Record.of(each) for each in found] for side, found in run.sides().get(case, {}).items()}
    settings = _settings(context, path, header, name, launcher, allowed=allowed)
    return _Recorded(contract, planned, Judgement.of(line), records), settings


def _settings(
    context: typer.Context, path: Path, header: Header, contract: str, launcher: str | None, *, allowed: bool
) -> RunSettings:
    """Those of the run. A secret of it, which the evidence does not hold, has to be given again."""
    command = header.adapter.command
    reference = reference_target()
    if context.args:
        target = target_of(context.args, launcher=launcher)
        if target.is_reference:
            require_reference([contract])
        adapter, starts, forkserver = target.adapter, target.launcher, target.forkserver
    elif tuple(command) == reference.adapter and launcher is None:
        require_reference([contract])
        adapter, starts, forkserver = reference.adapter, reference.launcher, reference.forkserver
    else:
        _must_be_allowed(path, command, allowed=allowed)
        starts = () if launcher is None else words_of("--launcher", launcher)
        adapter, forkserver = tuple(command), ()
    secret = [word for word in (*adapter, *header.config.values()) if MARK in word]
    if secret:
        stop(
            Exit.USAGE, "the run had secrets, which its evidence does not hold; repeat it with `holdfast verify --case`"
        )
    return RunSettings(
        adapter=found_here(adapter),
        contracts=(contract,),
        seed=header.seed,
        launcher=starts,
        config=dict(header.config),
        thorough=header.thorough,
        forkserver=forkserver,
    )


def _must_be_allowed(path: Path, command: Sequence[str], *, allowed: bool) -> None:
    """The file may be of others, and its command starts only if the user allows it."""
    shown = plain(shlex.join(command))
    if allowed or (
        sys.stdin.isatty() and typer.confirm(f"{plain(str(path))} names this command: {shown}\nStart it?", err=True)
    ):
        return
    stop(
        Exit.USAGE,
        f"nothing was started: {path} names the command {shown}; allow it with --run-recorded-command, or give yours "
        "after `--`",
    )


def _beside(before: Sequence[Record], now: Sequence[Record], *, marked: int | None) -> Table:
    table = Table(show_edge=False)
    for column in ("", "recorded", "now"):
        table.add_column(column, overflow="fold", ratio=0 if not column else 1)
    matched = SequenceMatcher(None, [each.action for each in before], [each.action for each in now], autojunk=False)
    for _, first, last, from_, to in matched.get_opcodes():
        for at in range(max(last - first, to - from_)):
            left = before[first + at] if first + at < last else None
            right = now[from_ + at] if from_ + at < to else None
            differs = left is None or right is None or _said(left) != _said(right)
            mark = "≠" if differs else "=>" if right is not None and right.n == marked else ""
            cells = [[] if each is None else transcribed(each, None) for each in (left, right)]
            for number, pair in enumerate(zip_longest(*cells, fillvalue="")):
                texts = (text.strip() for text in pair)
                table.add_row("" if number else mark, *texts, style="bold" if differs else "dim")
    return table


def _said(record: Record) -> tuple[Any, ...]:
    answer = record.answer or {}
    event = record.event or {}
    return (*(answer.get(name) for name in ("outcome", "effect", "reason", "value")), event.get("kind"))
