"""A case that failed, for a person: what was judged, the exchanges around it, and the command that repeats it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.rule import Rule

from holdfast.conformance.cases.record import CaseResult, Judgement, Record, Side
from holdfast.conformance.cases.values import at_path, is_missing
from holdfast.conformance.cli.console import PlainConsole, style_of, styled
from holdfast.conformance.durability.verdicts import in_words
from holdfast.conformance.gallery.timeline import curls, timeline
from holdfast.conformance.run.findings import Finding, Group, encoded_in, texts_in
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.run.settings import FAULT_SECONDS
from holdfast.conformance.verdict import Verdict, harm_of
from holdfast.reports.evidence import MARK
from holdfast.reports.plain import cut
from holdfast.servers.wires.profile import CONTRACT, read
from holdfast.specs import Case, Contract
from holdfast.specs.strictjson import canonical

if TYPE_CHECKING:
    from holdfast.conformance.cli.verify.options import Options

# The numbers of exchanges that are shown: directly before the judged one, from earlier steps, and after it.
_BEFORE, _STEPS_BEFORE, _BEHIND = 6, 6, 2
# The step that an exchange belongs to, as its action begins or names it.
_STEP = re.compile(r"\b(given|when|then)\.([0-9]+)\b")
# What the harness observes around a call is no step of its own.
_AROUND = re.compile(r"\b(before|after) \[")
# Of the lines of a service's timeline.
_TIMELINE = 14
_CURLS = 2
_LOG_LINES = 6
# Of the findings of one cause after the first.
_ALSO = 12
_SHOWN, _SHOWN_VALUE, _SHOWN_TEXT = 220, 80, 2000


def print_group(console: PlainConsole, group: Group, result: CaseResult, contract: Contract, options: Options) -> None:
    """Print findings of one cause: its heading, the gravest of them in full, and the others below."""
    first, *others = group.members
    console.print(Rule(style=style_of(first.verdict)))
    if others or group.remedy is not None:
        number = f"{len(group.members)} cases: " if others else ""
        console.print(f"{number}{group.cause}", style="bold")
    if group.remedy is not None:
        console.print(f"mends    {group.remedy.mends}")
    print_failure(console, first, result, contract, options)
    for each in others[:_ALSO]:
        console.print(styled(each.verdict), each.planned.id, sep="  ")
        console.print(f"         {each.clause}: {cut(each.detail, _SHOWN)}", style="dim")
    if len(others) > _ALSO:
        console.print(f"         and {len(others) - _ALSO} more; all are in {options.evidence}")
    console.print()


def print_failure(
    console: PlainConsole, finding: Finding, result: CaseResult, contract: Contract, options: Options
) -> None:
    """Print one finding in full."""
    judged, planned = result.judgement, finding.planned
    console.print(styled(finding.verdict), planned.id, sep="  ")
    console.print(planned.title, style="bold")
    clause = contract.clauses[finding.clause]
    console.print(f"clause   {clause.id} ({clause.level.value}, {clause.basis.value}): {clause.text}")
    console.print(f"harm     {harm_of(clause, judged.verdict)}")
    case = contract.case(result.case)
    if case is not None and case.twin is not None:
        console.print(f"twin     {twin_text(case)}")
    kind = "" if judged.silence is None else f" ({judged.silence.value})"
    records = result.judged_side
    for name, text in (
        ("detail", finding.detail + kind),
        ("expected", finding.expected),
        ("received", finding.received),
        ("judged", _place(judged, records, case)),
        ("advice", judged.advice),
    ):
        if text:
            console.print(f"{name:<8} {cut(text, _SHOWN_TEXT)}")
    for line in log_tail(result):
        console.print(f"stderr   {line}")
    lines = timeline(records, judged.n) if contract.name == CONTRACT else []
    if lines:
        console.print("what happened:", style="bold")
        if len(lines) > _TIMELINE:
            console.print(f"  (the last {_TIMELINE} of {len(lines)} lines)")
        console.print_lines(lines[-_TIMELINE:])
        sent = curls(records, judged.n, credentials_of(options))
        if len(sent) > _CURLS or len(lines) > len(sent):
            console.print(
                "  (requests alone, at most the last two: what befell sink, store, clock and processes is above)"
            )
        console.print_lines([f"         {line}" for line in sent[-_CURLS:]], style="dim")
    shown = [] if lines else around(records, judged.n)
    if shown:
        side = (judged.side or Side.MAIN).value
        console.print(f"transcript of the {side} side, {len(shown)} of {len(records)} exchanges:", style="dim")
    for before, record in zip((None, *shown), shown, strict=False):
        if before is not None and record.n != before.n + 1:
            console.print("      …", style="dim")
        is_judged = record.n == judged.n
        style = "bold" if is_judged else "dim"
        console.print_lines(transcribed(record, case, mark="=>" if is_judged else "  "), style=style)
        method = contract.methods.get((record.request or {}).get("method", ""))
        for name, text in texts_in([record.request, record.answer], encoded_in(method)):
            console.print(f"        = {name}: {cut(text, _SHOWN)}", style=style)
    if judged.verdict is Verdict.NOT_REACHED and not (result.main or result.twin):
        console.print("again    it was not started; repeat the first failing case")
        return
    command, gaps = again(planned, options)
    # Unbroken on a terminal too: it is there to be copied.
    console.print(f"again    {command}", soft_wrap=True)
    for gap in gaps:
        console.print(f"fill in  {gap}", soft_wrap=True)


def credentials_of(options: Options) -> Mapping[str, Mapping[str, str]]:
    """The headers of each principal of a service, a secret as the name of a shell variable."""
    if options.target.typed[:1] != ("--service",):
        return {}
    found: dict[str, Mapping[str, str]] = {}
    for principal, headers in read(Path(options.target.typed[1])).credentials.items():
        shown = options.redactor.named(headers)
        found[principal] = {
            name: value if shown[name] == value else f"$CREDENTIAL_{principal.upper()}"
            for name, value in headers.items()
        }
    return found


def _place(judged: Judgement, records: Sequence[Record], case: Case | None) -> str:
    """The step whose exchange was judged, as the case file has it."""
    record = next((record for record in records if record.n == judged.n), None)
    return judged.place if record is None else f"{judged.place}: {record.action}{_label(record, case)}"


def _label(record: Record, case: Case | None) -> str:
    """The label that the case file gives the step of an exchange, if it gives one."""
    found = _STEP.search(record.action)
    if case is None or found is None:
        return ""
    steps: Sequence[Mapping[str, Any]] = getattr(case, found[1])
    number = int(found[2])
    label = steps[number].get("label") if number < len(steps) else None
    return "" if label is None else f" (label {label})"


def log_tail(result: CaseResult) -> list[str]:
    """The last lines that the adapter wrote to standard error, where it failed to answer."""
    if result.judgement.silence is None:
        return []
    lines = [line for _, text in result.logs for line in text.splitlines() if line.strip()]
    return [cut(line, _SHOWN) for line in lines[-_LOG_LINES:]]


def around(records: Sequence[Record], n: int | None) -> list[Record]:
    """The exchanges that explain the one with number `n` (the last if None), in order.

    Those directly before it, a few after it, and of the rest the steps that lead to it, without what the harness
    observed around them. All are of its session: a history that is made shorter is played in one after the other.
    """
    place = next((index for index, record in enumerate(records) if record.n == n), len(records) - 1)
    first = next((index for index in range(place, -1, -1) if records[index].is_fresh), 0)
    near = range(max(first, place - _BEFORE), min(len(records), place + _BEHIND + 1))
    steps = [index for index in range(first, near.start) if not _AROUND.search(records[index].action)]
    return [records[index] for index in (*steps[-_STEPS_BEFORE:], *near)]


def twin_text(case: Case) -> str:
    """What the twin changes."""
    was, becomes = _twin_values(case)
    assert case.twin is not None
    return f"{case.twin.step}: {case.twin.path} is {becomes} instead of {was}"


def _twin_values(case: Case) -> tuple[str, str]:
    """What the twin changes, as the case has it and as the twin has it."""
    assert case.twin is not None
    steps = (*case.given, *case.when, *case.then)
    step: Any = next((step for step in steps if step.get("label") == case.twin.step), None)
    opened = {"open": {"surface": case.surface, "config": dict(case.config)}}
    source = opened if case.twin.step == "open" else step
    path = case.twin.path
    if path.startswith("args.") and isinstance(step, Mapping):
        # The place may lie inside a copied value, of which the step only says what it sets.
        changes = step.get("args", {}).get("set", {}) if isinstance(step.get("args"), Mapping) else {}
        if path.removeprefix("args.") in changes:
            return _short_value(changes[path.removeprefix("args.")]), _short_value(case.twin.value)
    found = at_path(source, path)
    return "what the case says" if is_missing(found) else _short_value(found), _short_value(case.twin.value)


def _short_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Blanks and marks that look like one another are written out.
    shown = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
    return cut(shown, _SHOWN_VALUE)


def transcribed(record: Record, case: Case | None, *, mark: str = "  ") -> list[str]:
    """The lines of one exchange. What is long is cut: the evidence has it whole."""
    lines = [f"{mark}{record.n:>3} w{record.worker} [{record.action}]{_label(record, case)}"]
    if record.request is not None:
        lines.append(f"        > {_short(record.request)}")
    if record.answer is not None:
        lines.append(f"        < {_short(record.answer)}")
    elif record.event is not None:
        kind, words = str(record.event["kind"]), in_words(str(record.event["detail"]))
        # What the harness has read itself may be a whole file; how an adapter ended is never long.
        lines.append(f"        ! {kind} {cut(words, _SHOWN) if kind == 'done' else words}")
    return lines


def _short(value: Mapping[str, Any]) -> str:
    return cut(canonical(value).decode(), _SHOWN)


def again(planned: PlannedCase, options: Options) -> tuple[str, tuple[str, ...]]:
    """The command that repeats a case, and what has to be filled in there because it is secret."""
    settings, redactor = options.settings, options.redactor
    words = [*_program(), "verify", "--contract", planned.contract, "--case", planned.id, "--seed", settings.seed]
    # The evidence of the whole run stays.
    words += ["--evidence", str(options.evidence.with_name(f"again-{options.evidence.name.removeprefix('again-')}"))]
    if settings.fault_seconds != FAULT_SECONDS:
        words += ["--fault-seconds", repr(settings.fault_seconds)]
    if settings.thorough != 1.0:
        words += ["--thorough", repr(settings.thorough)]
    if settings.slow != 1.0:
        words += ["--slow", repr(settings.slow)]
    if settings.workdir is not None:
        words += ["--workdir", settings.workdir]
    for name in settings.passed_environment:
        words += ["--pass-env", name]
    config = redactor.named(settings.config)
    for name, value in config.items():
        words += ["--config", f"{name}={value}"]
    gaps = [f"the secret of --config {name}" for name in config if config[name] != settings.config[name]]
    if options.target.is_reference:
        return shlex.join([*words, "reference"]), tuple(gaps)
    if settings.launcher:
        launcher = redactor.command(settings.launcher)
        words += ["--launcher", shlex.join(launcher)]
        gaps += _gaps("--launcher", launcher, settings.launcher)
    if options.target.typed:
        typed = redactor.command(options.target.typed)
        return shlex.join([*words, *typed]), (*gaps, *_gaps("what names the server", typed, options.target.typed))
    adapter = redactor.command(settings.adapter)
    gaps += _gaps("the adapter's command", adapter, settings.adapter)
    return shlex.join([*words, "--", *adapter]), tuple(gaps)


def _gaps(what: str, shown: Sequence[str], real: Sequence[str]) -> Iterator[str]:
    """What of a command is not shown."""
    if list(shown) != list(real):
        yield f"the secret that stands as {MARK} in {what}"


def _program() -> list[str]:
    """The command line that starts this program again from here."""
    started, installed = Path(sys.argv[0]), Path(sys.executable).with_name("holdfast")
    as_module = started.name == "__main__.py"
    script = installed if as_module else started
    if as_module and not installed.exists():
        return [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", "holdfast.conformance.cli"]
    found = shutil.which("holdfast")
    if script.name != "holdfast" or (found is not None and Path(found).resolve() == script.resolve()):
        return ["holdfast"]
    return [str(script)]
