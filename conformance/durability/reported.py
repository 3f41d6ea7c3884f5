"""The report of a layer in the evidence: everything that its judgement rests on, as one object. Pure.

It travels as the detail of an event, in its RFC 8785 text, so that the gate can judge the fault again from it.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import SweepReport
from holdfast.conformance.verdict import FailureMode
from holdfast.specs import typed
from holdfast.specs.strictjson import canonical, loads
from holdfast.specs.typed import Count, Form, Text, one_of, written

# How the layer observed what it judges.
BY_PTRACE, BY_RESTARTS, BY_SIGNALS = "recorded by ptrace", "by restarts", "by signals"


class ReportError(ValueError):
    """A text that is no report of a layer; it says why."""


class ReportedFinding(Form, frozen=True):
    """A promise that was broken: its class, what was expected, what came, and how it came about."""

    kind: CrashClass
    expected: str
    came: str
    words: str


class LayerReport(Form, frozen=True):
    """A report as it stands in the evidence.

    `words` say how much was tried, as people read it. `beside` says why the layer does not apply, `untested` why this
    machine cannot try it and a weaker one was tried in its place; both are None where that is not so. `silence` is the
    failure mode of what kept it from proving anything: `fault` where the adapter said that it failed itself, `busy`
    where the machine was too busy; None where there is none.
    """

    layer: str
    how: str
    tried: Count
    total: Count
    seed: Count
    words: str
    beside: Text | None
    untested: Text | None
    unproven: tuple[str, ...]
    silence: Annotated[str, one_of(FailureMode.BUSY.value, FailureMode.FAULT.value)] | None
    findings: tuple[ReportedFinding, ...]
    # How many tries a pass needs, and how many were made in a second session. Older evidence does not have them.
    floor: Count = 0
    later: Count = 0

    @property
    def is_short(self) -> bool:
        """Whether fewer were tried than a pass needs."""
        return self.tried < min(self.floor, self.total)

    def detail(self) -> str:
        """The text of the event."""
        return canonical(written(self)).decode()

    def sentence(self) -> str:
        """For a person."""
        if self.beside is not None:
            return f"{self.layer}: {self.beside}"
        parts = [f"{self.layer}: {self.words}; {self.how}"]
        parts += [f"{one.kind.value}: expected {one.expected}; got {one.came}. {one.words}" for one in self.findings]
        parts += [f"not proven: {words}" for words in self.unproven]
        return "; ".join(parts)


def report_of(
    report: SweepReport, *, how: str, seed: int, untested: str = "", silence: FailureMode | None = None
) -> LayerReport:
    """The report as the evidence has it; `silence` is the failure mode for which it proves nothing, if it does not."""
    return LayerReport(
        layer=report.layer.value,
        how=how,
        tried=report.tried,
        total=report.total,
        seed=seed,
        words=_text(report.tally),
        beside=_text(report.beside) or None,
        untested=_text(untested) or None,
        unproven=tuple(map(_text, report.unproven)),
        silence=None if silence is None or not report.unproven else silence.value,
        findings=tuple(
            ReportedFinding(
                one.verdict.kind,
                _text(one.verdict.expected),
                _text(one.verdict.came),
                _text(one.story if one.kept is None else f"{one.story} The state is kept as {one.kept}."),
            )
            for one in report.findings
        ),
        floor=report.floor,
        later=report.later,
    )


def _text(text: str) -> str:
    """Without lone surrogates, which an adapter may print and no JSON may hold."""
    return text.encode("utf-8", "replace").decode()


def read(detail: object) -> LayerReport:
    """Read it from the event. Raises ReportError for any text but the one that `detail` makes."""
    try:
        data = loads(detail if isinstance(detail, str) else "")
    except ValueError as error:
        raise ReportError(f"it is no JSON text ({error})") from error
    if not isinstance(data, dict) or canonical(data).decode() != detail:
        raise ReportError("it is not the RFC 8785 text of an object")
    try:
        report = typed.read(data, LayerReport)
    except typed.InvalidError as error:
        raise ReportError(str(error)) from error
    if any(finding.kind is CrashClass.CLEAN for finding in report.findings):
        raise ReportError(f"{CrashClass.CLEAN.value!r} is no class of a finding")
    if report.silence is not None and not report.unproven:
        raise ReportError(f"it names the failure mode {report.silence!r}, and nothing that is not proven")
    if report.later > report.tried:
        raise ReportError(f"{report.later} tries in a second session are more than the {report.tried} that were made")
    if not report.words.startswith(f"{report.tried} of {report.total}"):
        raise ReportError(f"{report.tried} of {report.total} is contradicted by its words, {report.words!r}")
    return report


def in_words(detail: str) -> str:
    """The detail of an event of any kind, for a person."""
    try:
        return read(detail).sentence()
    except ReportError:
        return detail
