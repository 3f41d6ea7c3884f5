"""Judges a fault again from the report of its layer, by the function that judged it in the run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.durability.verdicts import (
    ABILITY,
    ABLE,
    ReportError,
    failure_in,
    is_recorded,
    judged,
    not_tested,
    read,
)
from holdfast.conformance.durability.workload import scopes_of, seed_of
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.reports.evidence import Exchange
from holdfast.specs import Contract
from holdfast.specs.faults import FaultCase

# A fault has two sessions: one makes the store and one inspects it. A fault that is judged from recordings has a third,
# which is recorded without a fault.
_SESSIONS = 2


def _report_of(fault: FaultCase, records: Sequence[Record]) -> tuple[Record | None, str]:
    """The record with the report of the layer; or why these records have none."""
    reports = [record for record in records if record.action == fault.layer.value and record.event is not None]
    if len(reports) != 1 or (reports[0].event or {}).get("kind") != "done":
        return None, f"they hold {len(reports)} reports of the layer {fault.layer.value}, and one that is done is due"
    return reports[0], ""


def inconclusive_fault(fault: FaultCase, records: Sequence[Record]) -> str | None:
    """Why these records cannot show a fault that struck and was survived; None if they can."""
    report, why = _report_of(fault, records)
    if report is None:
        return why
    asked = sum((record.request or {}).get("op") == "open" for record in records)
    due = _SESSIONS + is_recorded(fault.layer)
    if asked < due:
        return f"they hold {asked} sessions, and {due} are due: to make the store, to look at it, to record it"
    return None


def tried_of(sides: Iterable[Mapping[str, Sequence[Exchange]]]) -> tuple[int, int]:
    """How much the layers of these cases tried, and of how much: points, states and variants."""
    tried = total = 0
    for exchanges in sides:
        for exchange in chain.from_iterable(exchanges.values()):
            with suppress(ReportError):
                layer = read(None if exchange.event is None else exchange.event.detail)
                tried, total = tried + layer.tried, total + layer.total
    return tried, total


def judge_fault(
    contract: Contract, fault: FaultCase, records: Sequence[Record], *, seed: str, environment: Mapping[str, str]
) -> Judgement:
    """The judgement of a fault from its records. KIT_FAULT where the records do not belong to it."""
    report, why = _report_of(fault, records)
    if report is None:
        # Where the workload could not be prepared, the records show the failure of the adapter.
        failure = failure_in(records) or Judgement(Verdict.NO_VERDICT, FailureMode.MISSING, why)
        return failure if failure.n is None else failure.placed(Side.MAIN, None)
    try:
        layer = read((report.event or {}).get("detail"))
        seed_due = int(seed_of(scopes_of(contract.work_of(fault), contract=contract.name, seed=seed)), 16)
        if layer.seed != seed_due:
            raise ReportError(f"its seed is {layer.seed}, and the run's seed makes it {seed_due}")
        judgement = judged(fault, layer).placed(Side.MAIN, report.n)
    except ReportError as error:
        return Judgement(Verdict.KIT_FAULT, detail=f"the report of the layer {fault.layer.value}: {error}")
    except Exception as error:
        # A changed file may hold anything, and must not open the gate.
        return Judgement(Verdict.KIT_FAULT, detail=f"they cannot be judged ({type(error).__name__}: {error})")
    able = environment.get(ABILITY, "nothing of it")
    if judgement.verdict is Verdict.CONFORMS and is_recorded(fault.layer) and not able.startswith(ABLE):
        return not_tested(fault, f"the header says of {ABILITY}: {able}")
    return judgement
