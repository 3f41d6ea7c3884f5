"""`holdfast crash -- CMD…`: what kills, power loss and failing calls do to a store, without its help."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.adapter.folders import temp_folders_in
from conformance.adapter.janitor import Janitor
from conformance.cli.console import Format, err, out, print_json, stop
from conformance.cli.places import unusable
from conformance.cli.target import found_here
from conformance.faults.dependencies import Dependencies, Promise
from conformance.faults.layers import DEPRIVED, RECORDED
from conformance.faults.lines import Limits, Lines, puts
from conformance.faults.oracle import Kind
from conformance.faults.probe import probe
from conformance.faults.recording import RecordingError
from conformance.faults.story import draw
from conformance.faults.sweep import Finding, Layer, Report, RunError, Sweep, self_test
from conformance.verdict import Exit

_OUTPUT = Path("holdfast-out/crash")
# Under the tracer a store takes three to seven times as long, on a busy machine more.
_SLOWER = 10.0
# A disk becomes full by pages of 4,096 bytes, so for it a value has so many characters.
_LARGE = 2000


@dataclass(frozen=True, slots=True)
class _Store:
    """What the layers are run on: with the tracer, without, and with larger values."""

    sweep: Sweep
    without: Dependencies
    large: Dependencies


# By their names on the command line, in the order in which they run.
_LAYERS: dict[str, Layer] = {
    "power": Layer.POWER,
    "kill": Layer.KILL,
    "torn": Layer.TORN_KILL,
    "recovery": Layer.RECOVERY,
    "errors": Layer.ERRORS,
    "short": Layer.SHORT,
    "sync": Layer.SYNC_ERRORS,
    "missing": Layer.MISSING,
    "truncated": Layer.TRUNCATED,
    "corrupt": Layer.CORRUPT,
    "foreign": Layer.FOREIGN,
    "locked": Layer.LOCKED,
    "readonly": Layer.READ_ONLY,
    "full": Layer.FULL,
    "damage": Layer.DAMAGE,
    "down": Layer.DOWN,
    "slow": Layer.SLOW,
}
_TRACED = frozenset(name for name, layer in _LAYERS.items() if layer in RECORDED)
# What is taken away while it works: these do not begin with what a finished run has left.
_BY_THEMSELVES = frozenset({Layer.FULL, Layer.DOWN, Layer.SLOW})


def crash(
    context: typer.Context,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", help=f"only this one of {', '.join(_LAYERS)}; repeat. All by default")
    ] = None,
    ops: Annotated[int, typer.Option("--ops", min=1, max=100, help="writes of the workload")] = 6,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="time for each layer")] = 10.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed tries the same, in the same order")] = 0,
    scratch: Annotated[
        list[str] | None, typer.Option("--scratch", metavar="PATTERN", help="files no promise is about; repeat")
    ] = None,
    results: Annotated[Path, typer.Option("--out", help="states of the disk that broke a promise go here")] = _OUTPUT,
    detects: Annotated[
        bool, typer.Option("--detects", help="the store promises to notice damaged bytes: no older state will do")
    ] = False,
    slow: Annotated[float, typer.Option(min=0.01, max=1000, help="factor on every limit of time")] = 1.0,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Find out what a crash, a power loss or a full disk costs a store: `holdfast crash -- COMMAND…`.

    COMMAND gets its work directory as its last argument and speaks lines (docs/crash.md): it says READY, answers
    `PUT name value` with OK once both facts of the write are durable, and `DUMP` with a JSON object. It is run under a
    tracer that needs no root and no help of it. The exit status is 0 only if every layer was tried and kept every
    promise.
    """
    wanted = list(dict.fromkeys(layer or _LAYERS))
    unknown = [name for name in wanted if name not in _LAYERS]
    if unknown:
        stop(Exit.USAGE, f"unknown layer {unknown[0]!r}; known layers: {', '.join(_LAYERS)}")
    command = tuple(context.args)
    if not command:
        stop(Exit.USAGE, "expected `-- COMMAND…`, got nothing behind the options; see docs/crash.md")
    words = found_here(command)
    if why := unusable(results):
        stop(Exit.USAGE, f"--out: {why}; give a folder that you may write to")
    limits = Limits().scaled(slow)
    try:
        with Janitor() as janitor, ExitStack() as stack:
            environment = {**os.environ, **janitor.mark}
            parent = janitor.make_folder()
            stack.enter_context(temp_folders_in(parent))
            unable = probe().tracer.reason or self_test() if set(wanted) & set(_TRACED) else ""
            if unable:
                err().print(f"kills and power loss NOT TESTED: {unable}", markup=False)

            def swept(size: int) -> Sweep:
                sweep = Sweep(
                    lambda: Lines(words, limits=limits, environment=environment),
                    puts(ops, seed=seed, size=size),
                    traced=lambda: Lines(words, limits=limits.scaled(_SLOWER), environment=environment),
                    seed=seed,
                    scratch=scratch or (),
                    parent=parent,
                    keep=results,
                )
                return stack.enter_context(sweep)

            small, promise = swept(0), Promise.DETECTS if detects else Promise.NEVER_WRONG
            store = _Store(small, Dependencies(small, promise=promise), Dependencies(swept(_LARGE)))
            running = _Running(store, seconds, format_, unable)
            reports = [running.run(_LAYERS[name]) for name in wanted]
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    left_out = [name for name in _LAYERS if name not in wanted]
    status = _status(reports, whole=not left_out)
    if format_ is Format.JSON:
        print_json(_json(reports, status, command, seed))
    else:
        _print(reports, status, left_out)
        again = ["holdfast", "crash", *_each("--layer", layer), *_each("--scratch", scratch)]
        again += ["--detects"] if detects else []
        again += ["--slow", f"{slow:g}"] if slow != 1.0 else []
        again += ["--out", str(results)] if results != _OUTPUT else []
        again += ["--ops", str(ops), "--seed", str(seed), "--seconds", f"{seconds:g}", "--", *command]
        out().print(f"again: {shlex.join(again)}", markup=False)
    raise typer.Exit(int(status))


def _each(option: str, values: Sequence[str] | None) -> list[str]:
    """An option that is repeated, as words of a command line."""
    return [word for value in values or () for word in (option, value)]


class _Running:
    """Runs one layer after the other. What the first could not begin with the others do not wait for again."""

    def __init__(self, store: _Store, seconds: float, format_: Format, unable: str) -> None:
        self._store, self._seconds, self._format, self._unable = store, seconds, format_, unable
        # Why the run in which nothing goes wrong could not be recorded, and why there is none without the tracer.
        self._unrecorded: tuple[str, ...] = ()
        self._unfinished: tuple[str, ...] = ()

    def run(self, layer: Layer) -> Report:
        """The report of the layer; who waits is told which one is at work."""
        if self._format is Format.TEXT:
            err().print(f"{layer.value}: at work", markup=False)
        report = self._recorded(layer) if layer in RECORDED else self._deprived(layer)
        if self._format is Format.TEXT:
            err().print(f"{report.layer.value}: {report.tally}, {report.seconds:.1f} s", markup=False)
        return report

    def _recorded(self, layer: Layer) -> Report:
        if self._unable:
            return Report(layer, 0, 0, "not tested", unproven=(f"NOT TESTED: {self._unable}",))
        if self._unrecorded:
            return Report(layer, 0, 0, "not tried", unproven=self._unrecorded)
        report = RECORDED[layer](self._store.sweep, self._seconds)
        self._unrecorded = () if self._store.sweep.recorded else report.unproven
        return report

    def _deprived(self, layer: Layer) -> Report:
        if layer is Layer.FULL:
            return DEPRIVED[layer](self._store.large, self._seconds)
        if layer not in _BY_THEMSELVES:
            began = time.monotonic()
            try:
                if not self._unfinished:
                    self._store.without.finished()
            except (RunError, OSError) as error:
                self._unfinished = (str(error),)
            if self._unfinished:
                seconds = time.monotonic() - began
                return Report(layer, 0, 0, "not tried", unproven=self._unfinished, seconds=seconds)
        return DEPRIVED[layer](self._store.without, self._seconds)


def _status(reports: Sequence[Report], *, whole: bool) -> Exit:
    """10 if a promise was broken; 12 if a layer is no pass, or not all of them ran."""
    kinds = {finding.verdict.kind for report in reports for finding in report.findings}
    if kinds - {Kind.INIT}:
        return Exit.FAIL_OPEN
    return Exit.OK if whole and all(report.clean for report in reports) else Exit.INCOMPLETE


def _json(reports: Sequence[Report], status: Exit, command: Sequence[str], seed: int) -> dict[str, Any]:
    """The reports as JSON (`specs/schemas/crash.schema.json`)."""
    return {
        "command": list(command),
        "seed": seed,
        "exit": int(status),
        "layers": [
            {
                "layer": report.layer.value,
                "clean": report.clean,
                "tried": report.tried,
                "total": report.total,
                "tally": report.tally,
                "unproven": list(report.unproven),
                "beside": report.beside,
                "seconds": round(report.seconds, 3),
                "findings": [
                    {
                        "at": finding.what,
                        "number": finding.point,
                        "class": finding.verdict.kind.value,
                        "expected": finding.verdict.expected,
                        "came": finding.verdict.came,
                        "story": finding.story,
                        "state": None if finding.kept is None else str(finding.kept),
                        "timeline": _timeline(report.layer, finding),
                    }
                    for finding in report.findings
                ],
            }
            for report in reports
        ],
    }


def _explain(console: Console, layer: Layer, finding: Finding) -> None:
    """The first finding of a class; the others of a layer say the same of other points."""
    console.print(f"{layer.value}: {finding.verdict.kind.value}", style="bold red", markup=False)
    console.print(f"    expected  {finding.verdict.expected}", markup=False)
    console.print(f"    got       {finding.verdict.came}", markup=False)
    console.print(f"    because   {finding.story}", markup=False)
    if finding.kept is not None:
        recording = finding.kept.with_suffix(".jsonl")
        recorded = f", recorded in {recording}" if finding.what == "operation" else ""
        console.print(f"    state     {finding.kept}{recorded}", markup=False)
    if (picture := _timeline(layer, finding)) is not None:
        console.print(f"    timeline  {picture}", markup=False)


def _timeline(layer: Layer, finding: Finding) -> str | None:
    """Where the picture is put; without one everything that it shows is said in words all the same."""
    try:
        picture = draw(layer, finding)
    except (OSError, RecordingError) as error:
        err().print(f"no timeline: {error}", markup=False)
        return None
    return None if picture is None else str(picture)


def _state(report: Report) -> str:
    """What was found, as the table has it, with its colour."""
    found = ", ".join(dict.fromkeys(finding.verdict.kind.value for finding in report.findings))
    if found:
        return f"[bold red]{found}[/]"
    if not report.clean:
        return "[yellow]not proven[/]"
    return "does not apply" if report.beside else "[green]nothing[/]"


def _print(reports: Sequence[Report], status: Exit, left_out: Sequence[str]) -> None:
    console = out()
    for report in reports:
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
    for report in reports:
        table.add_row(report.layer.value, escape(report.beside or report.tally), _state(report))
    console.print(table)
    said = {Exit.OK: "every promise was kept", Exit.FAIL_OPEN: "promises were broken"}.get(status, "not proven")
    if status is Exit.INCOMPLETE and left_out and all(report.clean for report in reports):
        said += f": nothing was found, but not all layers were asked for: {', '.join(left_out)} are left out"
    console.print(said, markup=False)
