"""What the report of a fault layer means for the case that asked for it. Pure."""

from __future__ import annotations

from conformance.cases.record import Judgement
from conformance.faults.oracle import Kind
from conformance.faults.report import Finding, Report
from conformance.verdict import Verdict
from specs.model import FaultCase, FaultLayer

# Where the store is out of reach, to answer that nothing is there is to admit it again.
_DEPENDENCIES = frozenset(
    {
        FaultLayer.STORE_MISSING,
        FaultLayer.STORE_TRUNCATED,
        FaultLayer.STORE_CORRUPT,
        FaultLayer.STORE_FOREIGN,
        FaultLayer.STORE_LOCKED,
        FaultLayer.STORE_READ_ONLY,
        FaultLayer.DEPENDENCY_KILLED,
        FaultLayer.DEPENDENCY_STOPPED,
        FaultLayer.CLOCK_BACK,
        FaultLayer.CLOCK_FORWARD,
    }
)


def judged(fault: FaultCase, report: Report) -> Judgement:
    """What the report of a layer means for its case."""
    told = f"{report.layer.value}, {report.tally}"
    if report.findings:
        worst = min(report.findings, key=lambda one: _graveness(fault, one))
        verdict = worst.verdict
        others = f"; {len(report.findings) - 1} more" if len(report.findings) > 1 else ""
        kept = f" The state is kept as {worst.kept}." if worst.kept is not None else ""
        return Judgement(
            _verdict_of(fault, worst),
            detail=f"{verdict.kind.value} ({told}{others}). {worst.story}{kept}",
            expected=verdict.expected,
            received=verdict.came,
            advice="docs/crash.md says how a crash is judged, docs/crash-model.md what a disk may hold after one.",
        )
    if report.unproven:
        return Judgement(Verdict.INDETERMINATE, detail=f"{told}: {'; '.join(report.unproven)}")
    if not report.clean:
        return Judgement(Verdict.NOT_REACHED, detail=f"{told}: nothing could be tried")
    return Judgement(Verdict.CONFORMS)


def _graveness(fault: FaultCase, finding: Finding) -> int:
    return list(Verdict).index(_verdict_of(fault, finding))


def _verdict_of(fault: FaultCase, finding: Finding) -> Verdict:
    """Invented is open; so is lost while the store is out of reach, which is to say "not seen yet"."""
    kind = finding.verdict.kind
    if kind is Kind.INVENTED or (kind in (Kind.LOST, Kind.TORN) and fault.layer in _DEPENDENCIES):
        return Verdict.FAIL_OPEN
    return Verdict.LOST_DURABILITY
