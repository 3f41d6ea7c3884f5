"""What the report of a fault layer means for the case that asked for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.cases.record import Judgement
from conformance.faults.layers import DEPRIVED, RECORDED
from conformance.faults.oracle import Kind
from conformance.faults.report import Finding, Layer, Report
from conformance.verdict import Verdict
from specs.model import FaultCase, FaultLayer

# What the layers of contracts are called where they are run.
LAYERS: Mapping[FaultLayer, Layer] = {
    FaultLayer.POWER_LOSS: Layer.POWER,
    FaultLayer.KILL: Layer.KILL,
    FaultLayer.KILL_WITHIN_WRITE: Layer.TORN_KILL,
    FaultLayer.CRASH_IN_RECOVERY: Layer.RECOVERY,
    FaultLayer.FULL_CALLS: Layer.ERRORS,
    FaultLayer.SHORT_WRITES: Layer.SHORT,
    FaultLayer.FAILED_SYNC: Layer.SYNC_ERRORS,
    FaultLayer.STORE_MISSING: Layer.MISSING,
    FaultLayer.STORE_TRUNCATED: Layer.TRUNCATED,
    FaultLayer.STORE_CORRUPT: Layer.CORRUPT,
    FaultLayer.STORE_FOREIGN: Layer.FOREIGN,
    FaultLayer.STORE_LOCKED: Layer.LOCKED,
    FaultLayer.STORE_READ_ONLY: Layer.READ_ONLY,
    FaultLayer.DISK_FULL: Layer.FULL,
    FaultLayer.DAMAGED_BYTES: Layer.DAMAGE,
    FaultLayer.DEPENDENCY_KILLED: Layer.DOWN,
    FaultLayer.DEPENDENCY_STOPPED: Layer.SLOW,
    FaultLayer.CLOCK_BACK: Layer.CLOCK_BACK,
    FaultLayer.CLOCK_FORWARD: Layer.CLOCK_FORWARD,
}
# Where the store is out of reach, to answer that nothing is there is to admit it again.
_OUT_OF_REACH = frozenset({*DEPRIVED, Layer.CLOCK_BACK, Layer.CLOCK_FORWARD} - {Layer.FULL, Layer.DAMAGE})


def is_recorded(layer: FaultLayer) -> bool:
    """Whether it is judged from recordings, which need the tracer."""
    return LAYERS[layer] in RECORDED


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
    if kind is Kind.INVENTED or (kind in (Kind.LOST, Kind.TORN) and LAYERS[fault.layer] in _OUT_OF_REACH):
        return Verdict.FAIL_OPEN
    return Verdict.LOST_DURABILITY
