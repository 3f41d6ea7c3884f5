"""The report of a fault layer in the evidence, and what it means for its case. Pure: the run and the gate judge alike.

A report has everything that its judgement rests on, as one object. It travels as the detail of an event, in its RFC
8785 text, so that the gate can judge the fault again from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from holdfast.conformance.cases.expect import failure_of, no_verdict
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import IN_ONE, Layer, SweepReport
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import typed
from holdfast.specs.faults import FaultCase, FaultLayer
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


# The contract's layers in the package `faults`.
LAYERS: Mapping[FaultLayer, Layer] = {FaultLayer(layer.contract): layer for layer in Layer if layer.contract}
# The member of a run's header that says whether recording was possible, and how its text begins if it was.
ABILITY, ABLE = "power loss and kills", "by ptrace"
# What a store may lack: processes of its own, files that no process of its own keeps, and calls that write or sync, as
# one has that works through mappings. The rest applies.
_MAY_NOT_APPLY = frozenset(
    {
        FaultLayer.DEPENDENCY_KILLED,
        FaultLayer.DEPENDENCY_STOPPED,
        FaultLayer.DAMAGED_BYTES,
        FaultLayer.STORE_LOST_RUNNING,
        FaultLayer.KILL_WITHIN_WRITE,
        FaultLayer.SHORT_WRITES,
        FaultLayer.FAILED_SYNC,
    }
)
# Where the store is out of reach, an answer that nothing is there would admit it again.
OUT_OF_REACH = frozenset(
    layer for layer in LAYERS.values() if not layer.is_recorded and layer not in (Layer.FULL, Layer.DAMAGE)
)


def is_recorded(layer: FaultLayer) -> bool:
    """Whether it is judged from recordings, which need the tracer."""
    return LAYERS[layer].is_recorded


def strikes_twice(fault: FaultCase) -> bool:
    """Whether it strikes in a second session of the store, too."""
    return is_recorded(fault.layer) and LAYERS[fault.layer] not in IN_ONE and fault.operations is None


def how_of(layer: FaultLayer) -> str:
    """How a layer judges where everything that it needs is there."""
    return BY_PTRACE if is_recorded(layer) else BY_RESTARTS


def judged(fault: FaultCase, report: LayerReport) -> Judgement:
    """The judgement on a layer's report for its case. Raises ReportError where the report is of another layer."""
    is_weaker = report.how == BY_SIGNALS and fault.layer is FaultLayer.KILL and report.untested is not None
    due = (Layer.SIGNALS.value, BY_SIGNALS) if is_weaker else (LAYERS[fault.layer].value, how_of(fault.layer))
    if (report.layer, report.how) != due or (report.untested is not None) is not is_weaker:
        raise ReportError(f"it tells of {report.layer}, {report.how}, and {due[0]}, {due[1]} is due")
    tally = f"{report.layer}, {report.words}"
    if report.findings:
        worst = min(report.findings, key=lambda one: _graveness(fault, one))
        others = f"; {len(report.findings) - 1} more" if len(report.findings) > 1 else ""
        return Judgement(
            _verdict_of(fault, worst),
            detail=f"{worst.kind.value} ({tally}{others}). {worst.words}",
            expected=worst.expected,
            received=worst.came,
        )
    if report.unproven:
        detail = f"{tally}: {'; '.join(report.unproven)}"
        if report.silence is not None:
            return no_verdict(FailureMode(report.silence), detail)
        return Judgement(Verdict.INDETERMINATE, detail=detail)
    if report.beside is not None:
        # Beside something that was tried, or for a layer that always applies, it is no reason to pass.
        if report.tried or report.total or fault.layer not in _MAY_NOT_APPLY:
            return Judgement(Verdict.NOT_REACHED, detail=f"{tally}: {report.beside}, which cannot be for this layer")
        return Judgement(Verdict.CONFORMS, detail=report.sentence())
    if not report.tried:
        return Judgement(Verdict.NOT_REACHED, detail=f"{tally}: nothing could be tried")
    if report.is_short and not is_weaker:
        return Judgement(Verdict.INDETERMINATE, detail=f"{tally}: a pass needs {report.floor}")
    if is_weaker:
        return not_tested(fault, f"{report.untested}; by signals, a weaker layer, nothing was found in {report.words}")
    return Judgement(Verdict.CONFORMS)


def failure_in(records: Iterable[Record]) -> Judgement | None:
    """The first failure of the adapter while the workload was prepared, where the records show it."""
    return next(filter(None, map(failure_of, records)), None)


def not_tested(fault: FaultCase, why: str) -> Judgement:
    """The judgement where the machine does not allow the layer."""
    return Judgement(
        Verdict.NOT_REACHED,
        detail=f"{fault.layer.value} NOT TESTED: {why} (docs/crash.md says what it needs)",
    )


def _graveness(fault: FaultCase, finding: ReportedFinding) -> tuple[int, bool]:
    """Of two that are equally grave, the one after an acknowledgement is told."""
    return _verdict_of(fault, finding).rank, finding.kind is CrashClass.INIT


def _verdict_of(fault: FaultCase, finding: ReportedFinding) -> Verdict:
    """An invented fact is open. So is a lost one while the store is out of reach: it means "not seen yet"."""
    kind = finding.kind
    if kind is CrashClass.INVENTED or (
        kind in (CrashClass.LOST, CrashClass.TORN) and LAYERS[fault.layer] in OUT_OF_REACH
    ):
        return Verdict.FAIL_OPEN
    return Verdict.LOST_DURABILITY
