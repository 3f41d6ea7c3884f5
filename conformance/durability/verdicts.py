"""What the report of a fault layer means for its case. Pure: the run and the gate judge by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.conformance.cases.expect import failure_of, no_verdict
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.durability.reported import (
    BY_PTRACE,
    BY_RESTARTS,
    BY_SIGNALS,
    LayerReport,
    ReportedFinding,
    ReportError,
)
from holdfast.conformance.faults.layers import DEPRIVED, IN_ONE, RECORDED
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs.faults import FaultCase, FaultLayer

# The names of the contract's layers in the package `faults`.
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
    FaultLayer.STORE_LOST_RUNNING: Layer.LOST_RUNNING,
    FaultLayer.STORE_LOCKED: Layer.LOCKED,
    FaultLayer.STORE_READ_ONLY: Layer.READ_ONLY,
    FaultLayer.DISK_FULL: Layer.FULL,
    FaultLayer.DAMAGED_BYTES: Layer.DAMAGE,
    FaultLayer.DEPENDENCY_KILLED: Layer.DOWN,
    FaultLayer.DEPENDENCY_STOPPED: Layer.SLOW,
    FaultLayer.CLOCK_BACK: Layer.CLOCK_BACK,
    FaultLayer.CLOCK_FORWARD: Layer.CLOCK_FORWARD,
}
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
OUT_OF_REACH = frozenset({*DEPRIVED, Layer.CLOCK_BACK, Layer.CLOCK_FORWARD} - {Layer.FULL, Layer.DAMAGE})


def is_recorded(layer: FaultLayer) -> bool:
    """Whether it is judged from recordings, which need the tracer."""
    return LAYERS[layer] in RECORDED


def strikes_twice(fault: FaultCase) -> bool:
    """Whether it strikes in a second session of the store, too."""
    return is_recorded(fault.layer) and LAYERS[fault.layer] not in IN_ONE and fault.operations is None


def how_of(layer: FaultLayer) -> str:
    """How a layer judges where everything that it needs is there."""
    return BY_PTRACE if is_recorded(layer) else BY_RESTARTS


def judged(fault: FaultCase, told: LayerReport) -> Judgement:
    """The judgement on a layer's report for its case. Raises ReportError where the report is of another layer."""
    is_weaker = told.how == BY_SIGNALS and fault.layer is FaultLayer.KILL and told.untested is not None
    due = (Layer.SIGNALS.value, BY_SIGNALS) if is_weaker else (LAYERS[fault.layer].value, how_of(fault.layer))
    if (told.layer, told.how) != due or (told.untested is not None) is not is_weaker:
        raise ReportError(f"it tells of {told.layer}, {told.how}, and {due[0]}, {due[1]} is due")
    tally = f"{told.layer}, {told.words}"
    if told.findings:
        worst = min(told.findings, key=lambda one: _graveness(fault, one))
        others = f"; {len(told.findings) - 1} more" if len(told.findings) > 1 else ""
        return Judgement(
            _verdict_of(fault, worst),
            detail=f"{worst.kind.value} ({tally}{others}). {worst.words}",
            expected=worst.expected,
            received=worst.came,
        )
    if told.unproven:
        detail = f"{tally}: {'; '.join(told.unproven)}"
        if told.silence is not None:
            return no_verdict(FailureMode(told.silence), detail)
        return Judgement(Verdict.INDETERMINATE, detail=detail)
    if told.beside is not None:
        # Beside something that was tried, or for a layer that always applies, it is no reason to pass.
        if told.tried or told.total or fault.layer not in _MAY_NOT_APPLY:
            return Judgement(Verdict.NOT_REACHED, detail=f"{tally}: {told.beside}, which cannot be for this layer")
        return Judgement(Verdict.CONFORMS, detail=told.sentence())
    if not told.tried:
        return Judgement(Verdict.NOT_REACHED, detail=f"{tally}: nothing could be tried")
    if told.is_short and not is_weaker:
        return Judgement(Verdict.INDETERMINATE, detail=f"{tally}: a pass needs {told.floor}")
    if is_weaker:
        return not_tested(fault, f"{told.untested}; by signals, a weaker layer, nothing was found in {told.words}")
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
    """Of two that are equally grave, the one behind an acknowledgement is told."""
    return _verdict_of(fault, finding).rank, finding.kind is CrashClass.INIT


def _verdict_of(fault: FaultCase, finding: ReportedFinding) -> Verdict:
    """An invented fact is open. So is a lost one while the store is out of reach: it means "not seen yet"."""
    kind = finding.kind
    if kind is CrashClass.INVENTED or (
        kind in (CrashClass.LOST, CrashClass.TORN) and LAYERS[fault.layer] in OUT_OF_REACH
    ):
        return Verdict.FAIL_OPEN
    return Verdict.LOST_DURABILITY
