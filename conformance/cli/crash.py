"""`holdfast crash -- CMD…`: what kills, power loss and failing calls do to a store, without its help."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.adapter.janitor import Janitor
from conformance.cli.console import Format, err, out, plain, stop
from conformance.faults.lines import Limits, Lines, puts
from conformance.faults.oracle import Kind
from conformance.faults.probe import probe
from conformance.faults.sweep import Finding, Layer, Report, Sweep, self_test
from conformance.verdict import Exit

_OUTPUT = Path("holdfast-out/crash")
# Under the tracer a store takes three to seven times as long, on a busy machine more.
_SLOWER = 10.0
_RUN: dict[Layer, Callable[[Sweep, float], Report]] = {
    Layer.POWER: Sweep.power_loss,
    Layer.KILL: Sweep.kills,
    Layer.TORN_KILL: lambda sweep, seconds: sweep.kills(seconds, torn=True),
    Layer.RECOVERY: Sweep.recovery,
    Layer.ERRORS: lambda sweep, seconds: sweep.errors(seconds, errno.ENOSPC),
    Layer.SHORT: Sweep.short_writes,
    Layer.SYNC_ERRORS: Sweep.sync_errors,
}
_NAMES = {
    "power": Layer.POWER,
    "kill": Layer.KILL,
    "torn": Layer.TORN_KILL,
    "recovery": Layer.RECOVERY,
    "errors": Layer.ERRORS,
    "short": Layer.SHORT,
    "sync": Layer.SYNC_ERRORS,
}


@dataclass(frozen=True, slots=True)
class _Outcome:
    """All reports, and the exit status that they amount to."""

    reports: tuple[Report, ...]
    status: Exit


def crash(
    context: typer.Context,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", help=f"only this one of {', '.join(_NAMES)}; repeat. All by default")
    ] = None,
    ops: Annotated[int, typer.Option("--ops", min=1, max=100, help="writes of the workload")] = 6,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="time for each layer")] = 10.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed tries the same, in the same order")] = 0,
    scratch: Annotated[
        list[str] | None, typer.Option("--scratch", metavar="PATTERN", help="files no promise is about; repeat")
    ] = None,
    results: Annotated[Path, typer.Option("--out", help="states of the disk that broke a promise go here")] = _OUTPUT,
    slow: Annotated[float, typer.Option(min=0.01, max=1000, help="factor on every limit of time")] = 1.0,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Find out what a crash, a power loss or a full disk costs a store: `holdfast crash -- COMMAND…`.

    COMMAND gets its work directory as its last argument and speaks lines (docs/crash.md): it says READY, answers
    `PUT name value` with OK once both facts of the write are durable, and `DUMP` with a JSON object. It is run under a
    tracer that needs no root and no help of it. The exit status is 0 only if every layer was tried and kept every
    promise.
    """
    wanted = _layers(layer or list(_NAMES))
    command = tuple(context.args)
    if not command:
        stop(Exit.USAGE, "expected `-- COMMAND…`, got nothing behind the options; see docs/crash.md")
    if shutil.which(command[0]) is None:
        stop(Exit.ADAPTER, f"{command[0]!r} is no program here; give a path (./my-store) or a program on PATH")
    words = (str(Path(command[0]).absolute()) if "/" in command[0] else command[0], *command[1:])
    unable = probe().tracer.reason or self_test()
    if unable:
        stop(Exit.INCOMPLETE, f"kills and power loss NOT TESTED: {unable}")
    limits = Limits().scaled(slow)
    try:
        with Janitor() as janitor:
            environment = {**os.environ, **janitor.mark}
            with Sweep(
                lambda: Lines(words, limits=limits, environment=environment),
                puts(ops, seed=seed),
                traced=lambda: Lines(words, limits=limits.scaled(_SLOWER), environment=environment),
                seed=seed,
                scratch=scratch or (),
                parent=janitor.make_folder(),
                keep=results,
            ) as sweep:
                reports = tuple(_run(sweep, one, seconds, format_) for one in wanted)
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    result = _Outcome(reports, _status(reports, whole=len(wanted) == len(_NAMES)))
    if format_ is Format.JSON:
        print(json.dumps(_json(result, command, seed), ensure_ascii=False))
    else:
        _print(result)
        again = ["holdfast", "crash", *(word for name in layer or () for word in ("--layer", name))]
        again += ["--ops", str(ops), "--seed", str(seed), "--seconds", f"{seconds:g}", "--", *command]
        out().print(f"again: {shlex.join(again)}", markup=False)
    raise typer.Exit(int(result.status))


def _layers(names: list[str]) -> list[Layer]:
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        stop(Exit.USAGE, f"unknown layer {unknown[0]!r}; known layers: {', '.join(_NAMES)}")
    return [_NAMES[name] for name in dict.fromkeys(names)]


def _run(sweep: Sweep, layer: Layer, seconds: float, format_: Format) -> Report:
    began = time.monotonic()
    report = _RUN[layer](sweep, seconds)
    if format_ is Format.TEXT:
        err().print(f"{layer.value}: {report.tally}, {time.monotonic() - began:.1f} s", markup=False)
    return report


def _status(reports: tuple[Report, ...], *, whole: bool) -> Exit:
    """10 if a promise was broken; 12 if a layer is no pass, or not all of them ran."""
    kinds = {finding.verdict.kind for report in reports for finding in report.findings}
    if kinds - {Kind.INIT}:
        return Exit.FAIL_OPEN
    return Exit.OK if whole and all(report.clean for report in reports) else Exit.INCOMPLETE


def _json(result: _Outcome, command: tuple[str, ...], seed: int) -> dict[str, Any]:
    return {
        "command": list(command),
        "seed": seed,
        "exit": int(result.status),
        "layers": [
            {
                "layer": report.layer.value,
                "clean": report.clean,
                "tried": report.tried,
                "total": report.total,
                "unproven": list(report.unproven),
                "seconds": round(report.seconds, 3),
                "findings": [
                    {
                        "operation": finding.point,
                        "class": finding.verdict.kind.value,
                        "expected": finding.verdict.expected,
                        "came": finding.verdict.came,
                        "story": finding.story,
                        "state": None if finding.kept is None else str(finding.kept),
                    }
                    for finding in report.findings
                ],
            }
            for report in result.reports
        ],
    }


def _explain(console: Console, layer: Layer, finding: Finding) -> None:
    """The first finding of a class; the others of a layer say the same of other points."""
    console.print(f"{layer.value}: {finding.verdict.kind.value}", style="bold red", markup=False)
    console.print(f"    expected  {finding.verdict.expected}", markup=False)
    console.print(f"    got       {finding.verdict.came}", markup=False)
    console.print(f"    because   {finding.story}", markup=False)
    if finding.kept is not None:
        console.print(f"    state     {finding.kept}, recorded in {finding.kept.with_suffix('.jsonl')}", markup=False)


def _print(result: _Outcome) -> None:
    console = out()
    for report in result.reports:
        shown: set[Kind] = set()
        for finding in report.findings:
            if finding.verdict.kind not in shown:
                _explain(console, report.layer, finding)
            shown.add(finding.verdict.kind)
        for words in report.unproven:
            console.print(f"{report.layer.value}: NOT PROVEN: {words}", style="yellow", markup=False)
    table = Table(show_edge=False)
    for column in ("layer", "tried", "found"):
        table.add_column(column, overflow="fold")
    for report in result.reports:
        found = ", ".join(dict.fromkeys(finding.verdict.kind.value for finding in report.findings))
        state = f"[bold red]{found}[/]" if found else "[green]nothing[/]" if report.clean else "[yellow]not proven[/]"
        table.add_row(report.layer.value, escape(plain(report.tally)), state)
    console.print(table)
    console.print(
        {Exit.OK: "every promise was kept", Exit.FAIL_OPEN: "promises were broken"}.get(result.status, "not proven"),
        markup=False,
    )
