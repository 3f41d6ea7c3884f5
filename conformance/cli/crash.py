"""`holdfast crash -- CMD…`: what kills, power loss and failing calls do to a store, without its help."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Column, Table
from rich.text import Text

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    PlainConsole,
    err,
    in_style,
    members,
    out,
    print_json,
    stop,
)
from holdfast.conformance.cli.console import table_of as console_table
from holdfast.conformance.cli.places import unusable
from holdfast.conformance.cli.target import found_here
from holdfast.conformance.faults.dependencies import Dependencies, Promise
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.recording import RecordingError
from holdfast.conformance.faults.report import (
    BrokenPromise,
    Deadline,
    Layer,
    OutOfTimeError,
    RunError,
    SweepReport,
    Trial,
)
from holdfast.conformance.faults.story import draw
from holdfast.conformance.faults.sweep import Sweep, self_test
from holdfast.conformance.verdict import Exit
from holdfast.servers.folders import temp_folders_in
from holdfast.servers.janitor import Janitor
from holdfast.servers.pace import paced

_OUTPUT = Path("holdfast-out/crash")
# Under the tracer a store takes three to seven times as long, on a busy machine more.
_SLOWER = 10.0
# This number of the states after those at the acknowledgements has to be tried as well.
_FURTHER = 16
# The time counts from the start of the process, if that was not longer ago.
_MOST_START = 1.0
# Crash states are generated until this share of the time after the end.
_DRAWN_LATE = 0.05
# A margin over the tries so far, because later ones may take longer.
_MARGIN = 1.25
# The length of a value in characters for a full disk, which becomes full by pages of 4,096 bytes.
_LARGE = 2000
# How many writes a session has at most that is to meet a file of a new name; after the first of them, large ones.
_LONGEST, _SMALL = 128, 64


# Where the picture of a finding is put, if one is.
_Timeline: TypeAlias = Callable[[Layer, BrokenPromise], str | None]


# By their names on the command line, in the order in which they run.
_LAYERS = {layer.option: layer for layer in Layer if layer.option}
# Faults that remove something during the work: these do not start from the state of a finished run.
_BY_THEMSELVES = frozenset({Layer.FULL, Layer.DOWN, Layer.SLOW})


def crash(
    context: typer.Context,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", help=f"only this one of {', '.join(_LAYERS)}; repeat. All by default")
    ] = None,
    ops: Annotated[int, typer.Option("--ops", min=1, max=100, help="writes of the workload")] = 6,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="time for the whole command; what is under way then is ended")
    ] = 120.0,
    least: Annotated[
        bool, typer.Option("--least", help="end as soon as every layer has reached its floor: the same on any machine")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="the same seed tries the same, in the same order")] = 0,
    scratch: Annotated[
        list[str] | None, typer.Option("--scratch", metavar="PATTERN", help="files no promise is about; repeat")
    ] = None,
    results: Annotated[Path, typer.Option("--out", help="states of the disk that broke a promise go here")] = _OUTPUT,
    detects: Annotated[
        bool, typer.Option("--detects", help="the store promises to notice damaged bytes: no older state will do")
    ] = False,
    slow: Annotated[float, typer.Option(min=0.01, max=1000, help="factor on every limit of time")] = 1.0,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Find out what a crash, a power loss or a full disk costs a store: `holdfast crash -- COMMAND…`.

    COMMAND gets its work directory as its last argument and speaks lines (docs/crash.md): it says READY, answers
    `PUT name value` with OK once both facts of the write are durable, and `DUMP` with a JSON object. It is run under a
    tracer that needs no root and no help of it. The exit status is 0 only if every layer that was asked for reached its
    floor, a number of tries, and kept every promise; 12 if the time was too short for that; 13 if it shows something
    else than it was asked for while nothing is done to it, or does not start.
    """
    deadline = Deadline(max(0.0, seconds - _start_took()))
    wanted = list(dict.fromkeys(layer or _LAYERS))
    for name in wanted:
        if name not in _LAYERS:
            from holdfast.specs.errors import unknown

            stop(Exit.USAGE, unknown("layer", name, _LAYERS))
    command = tuple(context.args)
    if not command:
        stop(Exit.USAGE, "expected `-- COMMAND…`, got nothing after the options; see docs/crash.md")
    words = found_here(command)
    if why := unusable(results):
        stop(Exit.USAGE, f"--out: {why}; give a folder that you may write to")
    try:
        with Janitor() as janitor, ExitStack() as stack:
            environment = {**os.environ, **janitor.mark}
            parent = janitor.make_folder()
            limits = Limits().scaled(paced(slow, parent))
            stack.enter_context(temp_folders_in(parent))

            def swept(size: int) -> Sweep:
                sweep = Sweep(
                    lambda: Lines(words, limits=limits, environment=environment, deadline=deadline),
                    puts(ops, seed=seed, size=size),
                    traced=lambda: Lines(
                        words, limits=limits.scaled(_SLOWER), environment=environment, deadline=deadline
                    ),
                    further=_FURTHER,
                    deadline=deadline,
                    seed=seed,
                    scratch=scratch or (),
                    parent=parent,
                    keep=results,
                    longer=puts(max(ops, _LONGEST), seed=seed, size=_LARGE, after=max(ops, _SMALL)),
                )
                return stack.enter_context(sweep)

            small = swept(0)
            _controlled(small, command)
            unable = probe().tracer or self_test() if any(_LAYERS[name].is_recorded for name in wanted) else ""
            if unable:
                err().print(f"kills and power loss NOT TESTED: {unable}")

            promise = Promise.DETECTS if detects else Promise.NEVER_WRONG
            without, large = Dependencies(small, promise=promise), Dependencies(swept(_LARGE))
            running = _Running(small, without, large, format_, unable, deadline)
            reports = running.reports([_LAYERS[name] for name in wanted], is_least=least)
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    left_out = [name for name in _LAYERS if name not in wanted]
    status, needed = _status(reports), _needed(reports, seconds)
    timeline = partial(_timeline, until=Deadline(deadline.left + seconds * _DRAWN_LATE))
    if format_ is Format.JSON:
        said = {"command": list(command), "seed": seed, "seconds": seconds, "needed": needed, "left_out": left_out}
        print_json({**said, **_json(reports, status, timeline)})
    else:
        _print(reports, timeline)
        out().print(_conclusion(reports, status, wanted, left_out, needed))
        again = ["holdfast", "crash", *_each("--layer", layer), *_each("--scratch", scratch)]
        again += ["--detects"] if detects else []
        again += ["--least"] if least else []
        again += ["--slow", f"{slow:g}"] if slow != 1.0 else []
        again += ["--out", str(results)] if results != _OUTPUT else []
        again += ["--ops", str(ops), "--seed", str(seed), "--seconds", f"{seconds:g}", "--", *command]
        out().print(f"again: {shlex.join(again)}")
    return status


def _controlled(sweep: Sweep, command: Sequence[str]) -> None:
    """End the command where the store does not do what the protocol asks although nothing is done to it."""
    wrong = ""
    # That the time is over the layers say.
    with suppress(OutOfTimeError):
        try:
            wrong = sweep.control().came
        except RunError as error:
            wrong = str(error)
    if wrong:
        stop(Exit.ADAPTER, f"{shlex.join(command)} does not speak the protocol (docs/crash.md): {wrong}")


def _start_took() -> float:
    """Seconds that the start of this process has taken, at most `_MOST_START`; 0 where it is unknown."""
    with suppress(OSError, ValueError, IndexError):
        # proc_pid_stat(5): field 22 is when it began, in ticks since the machine did; the second may have blanks in it.
        began = int(Path("/proc/self/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")
        return min(max(0.0, age), _MOST_START)
    return 0.0


def _each(option: str, values: Sequence[str] | None) -> list[str]:
    """A repeated option, as arguments of a command line."""
    return [word for value in values or () for word in (option, value)]


@dataclass(slots=True)
class _Running:
    """Runs all layers to their floors, one after the other, and shares the remaining time among them.

    If the first layer could not start the store, the others do not wait for it again. `large` has larger values.
    """

    sweep: Sweep
    without: Dependencies
    large: Dependencies
    format: Format
    unable: str
    deadline: Deadline
    # Why the run without faults could not be recorded, and why there is none without the tracer.
    unrecorded: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    def reports(self, layers: Sequence[Layer], *, is_least: bool) -> Sequence[SweepReport]:
        """The report of each layer; standard error says which one runs."""
        begun = {layer: self._begin(layer) for layer in layers}
        trials = [one for one in begun.values() if isinstance(one, Trial)]
        while not is_least and self.deadline.left and (going := [one for one in trials if not one.is_over]):
            for place, trial in enumerate(going):
                # The others get the time that one layer leaves.
                self._go_on(trial, self.deadline.left / (len(going) - place))
        return [one.report() if isinstance(one, Trial) else one for one in begun.values()]

    def _begin(self, layer: Layer) -> Trial | SweepReport:
        """The layer, at its floor; or why it cannot be tried."""
        if layer.is_recorded:
            if self.unable:
                return SweepReport(layer, 0, 0, "not tested", unproven=(f"NOT TESTED: {self.unable}",))
            if self.unrecorded:
                return SweepReport(layer, 0, 0, "not tried", unproven=self.unrecorded)
            trial = self._go_on(self.sweep.trial(layer))
            self.unrecorded = () if self.sweep.recorded else tuple(trial.tally.unproven)
            return trial
        if layer in _BY_THEMSELVES:
            return self._go_on((self.large if layer is Layer.FULL else self.without).trial(layer))
        if self.unfinished:
            return SweepReport(layer, 0, 0, "not tried", unproven=self.unfinished)
        trial = self._go_on(self.without.trial(layer))
        self.unfinished = () if self.without.begun else tuple(trial.tally.unproven)
        return trial

    def _go_on(self, trial: Trial, seconds: float = 0.0) -> Trial:
        name = trial.tally.layer.value
        if self.format is Format.TEXT:
            err().print(f"{name}: at work, {self.deadline.left:.0f} s left for all")
        trial.go_on(seconds)
        if self.format is Format.TEXT:
            err().print(f"{name}: {trial.tally.words}")
        return trial


def _status(reports: Sequence[SweepReport]) -> Exit:
    """10 if a promise was broken; 12 if a layer that was asked for is no pass, or none of them applies."""
    kinds = {finding.verdict.kind for report in reports for finding in report.findings}
    if kinds - {CrashClass.INIT}:
        return Exit.FAIL_OPEN
    is_shown = all(report.clean for report in reports) and any(report.tried for report in reports)
    return Exit.OK if is_shown else Exit.INCOMPLETE


def _needed(reports: Sequence[SweepReport], seconds: float) -> float | None:
    """How many seconds all floors would take, by the tries that were made; None if that is not known, or they did."""
    tried = sum(report.tried for report in reports)
    short = [report for report in reports if report.short]
    if not short or not tried:
        return None
    usual = sum(report.seconds for report in reports) / tried
    each = ((report, report.seconds / report.tried if report.tried else usual) for report in short)
    return float(math.ceil(seconds + _MARGIN * sum(report.short * took for report, took in each)))


def _conclusion(
    reports: Sequence[SweepReport], status: Exit, wanted: Sequence[str], left_out: Sequence[str], needed: float | None
) -> str:
    """The overall result, in a sentence."""
    if status is Exit.FAIL_OPEN:
        return "promises were broken"
    if status is Exit.OK:
        if not left_out:
            return "every promise was kept"
        layers = f"layer {wanted[0]}" if len(wanted) == 1 else f"layers {', '.join(wanted)}"
        return f"conforms in {layers}; the other layers were not asked for: {', '.join(left_out)}"
    if any(report.short for report in reports):
        if needed is None:
            return "not proven: the time was over before anything was tried; give several times as many --seconds"
        return f"not proven: the time was too short for the floor of every layer; it takes about --seconds {needed:g}"
    if all(report.clean for report in reports):
        return "not proven: no layer that was asked for applies"
    return "not proven"


def _json(reports: Sequence[SweepReport], status: Exit, timeline: _Timeline) -> dict[str, Any]:
    """The reports as JSON (`specs/schemas/crash.schema.json`)."""
    return {
        "exit": int(status),
        "layers": [
            {
                **members(report, "layer", "clean", "tried", "total", "floor", "tally", "unproven", "beside"),
                "seconds": round(report.seconds, 3),
                "findings": [
                    {
                        "at": finding.what,
                        "number": finding.point,
                        "class": finding.verdict.kind.value,
                        **members(finding.verdict, "expected", "came"),
                        "story": finding.story,
                        "state": None if finding.kept is None else str(finding.kept),
                        "timeline": timeline(report.layer, finding),
                    }
                    for finding in report.findings
                ],
            }
            for report in reports
        ],
    }


def _explain(console: PlainConsole, layer: Layer, finding: BrokenPromise, timeline: _Timeline) -> None:
    """The first finding of a class; the others of a layer say the same of other points."""
    console.print(f"{layer.value}: {finding.verdict.kind.value}", style="bold red")
    console.print(f"    expected  {finding.verdict.expected}")
    console.print(f"    got       {finding.verdict.came}")
    console.print(f"    because   {finding.story}")
    if finding.kept is not None:
        recording = finding.kept.with_suffix(".jsonl")
        recorded = f", recorded in {recording}" if finding.what == "operation" else ""
        console.print(f"    state     {finding.kept}{recorded}")
    if (picture := timeline(layer, finding)) is not None:
        console.print(f"    timeline  {picture}")


def _timeline(layer: Layer, finding: BrokenPromise, *, until: Deadline) -> str | None:
    """Where the picture is put, None without one; the text of the report has everything that it shows."""
    try:
        picture = draw(layer, finding, until)
    except (OSError, RecordingError, OutOfTimeError) as error:
        err().print(f"no timeline: {error}")
        return None
    return None if picture is None else str(picture)


def _state(report: SweepReport) -> Text:
    """The finding as a cell of the table, with its colour."""
    found = ", ".join(dict.fromkeys(finding.verdict.kind.value for finding in report.findings))
    if found:
        return in_style(found, "bold red")
    if not report.clean:
        return in_style("not proven", "yellow")
    return in_style("does not apply", "") if report.beside else in_style("nothing", "green")


def _print(reports: Sequence[SweepReport], timeline: _Timeline) -> None:
    console = out()
    for report in reports:
        shown: set[CrashClass] = set()
        for finding in report.findings:
            if finding.verdict.kind not in shown:
                _explain(console, report.layer, finding, timeline)
            shown.add(finding.verdict.kind)
        for words in report.unproven:
            console.print(f"{report.layer.value}: NOT PROVEN: {words}", style="yellow")
    console.print_table(table_of(reports))


def table_of(reports: Sequence[SweepReport]) -> Table:
    """What each layer tried and found."""
    rows = (
        (each.layer.value, each.beside or each.tally, "" if each.beside else str(each.floor), _state(each))
        for each in reports
    )
    return console_table(Column("layer", overflow="fold", no_wrap=True), "tried", "floor", "found", rows=rows)
