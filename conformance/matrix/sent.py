"""How many pairs of an operation and an attack one case sent, from its exchanges. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast.conformance.durability.reported import ReportError, read
from holdfast.conformance.durability.verdicts import strikes_twice
from holdfast.conformance.matrix.boundaries import Near
from holdfast.conformance.matrix.shows import Shown
from holdfast.conformance.matrix.varied import varied
from holdfast.conformance.matrix.walk import Called, Changed, Walk
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.steps.tamper import CUT
from holdfast.reports.evidence import Exchange
from holdfast.specs import Case, Contract
from holdfast.specs.cells import row_of
from holdfast.specs.faults import FaultCase, FaultLayer, Promise
from holdfast.specs.matrix import LATER, Attack, Matrix, cell
from holdfast.specs.model import Group

Pairs = Counter[tuple[str, str]]
# The attacks of a fault layer. The matrix has no attack for a store that another holds or that is read-only.
_LAYERS: Mapping[FaultLayer, tuple[Attack, ...]] = {
    FaultLayer.POWER_LOSS: (Attack.POWER_LOSS,),
    FaultLayer.CRASH_IN_RECOVERY: (Attack.POWER_LOSS,),
    FaultLayer.KILL: (Attack.KILL,),
    FaultLayer.KILL_WITHIN_WRITE: (Attack.KILL,),
    # From some call on all fail with ENOSPC, as on a disk that is full.
    FaultLayer.FULL_CALLS: (Attack.FAILING_CALLS, Attack.FULL_DISK),
    FaultLayer.SHORT_WRITES: (Attack.FAILING_CALLS,),
    FaultLayer.FAILED_SYNC: (Attack.FAILING_CALLS,),
    FaultLayer.DISK_FULL: (Attack.FULL_DISK,),
    FaultLayer.STORE_MISSING: (Attack.MISSING,),
    FaultLayer.STORE_TRUNCATED: (Attack.DAMAGED,),
    FaultLayer.STORE_CORRUPT: (Attack.DAMAGED,),
    FaultLayer.DAMAGED_BYTES: (Attack.DAMAGED,),
    FaultLayer.STORE_FOREIGN: (Attack.REPLACED,),
    FaultLayer.STORE_LOST_RUNNING: (Attack.MISSING_WHILE, Attack.REPLACED_WHILE),
    FaultLayer.DEPENDENCY_KILLED: (Attack.MISSING_WHILE,),
    FaultLayer.DEPENDENCY_STOPPED: (Attack.MISSING_WHILE,),
    FaultLayer.CLOCK_BACK: (Attack.CLOCK_BACK,),
    FaultLayer.CLOCK_FORWARD: (Attack.CLOCK_FORWARD,),
}


def sent(contract: Contract, matrix: Matrix, planned: PlannedCase, sides: Mapping[str, Sequence[Exchange]]) -> Pairs:
    """What a case sent: how many pairs of each row and cell. `sides` are its exchanges."""
    fault = contract.fault(planned.id)
    if fault is not None:
        return _struck(contract, matrix, fault, sides.get("main", ()))
    walk, case = Walk(contract, matrix), contract.case(planned.id)
    shown = Shown(contract, matrix, change_of=lambda each: _change(contract, matrix, case, each), tells=_telling(case))
    near = Near(contract, matrix)
    calls: dict[str, list[Called]] = {"main": [], "twin": []}
    for side, found in calls.items():
        happened = list(near.read(walk.happenings(sides.get(side, ()))))
        shown.read(happened)
        found += [each for each in happened if isinstance(each, Called)]
    return shown.counts + near.counts() + varied(contract, planned, calls["main"], calls["twin"])


def _struck(contract: Contract, matrix: Matrix, fault: FaultCase, exchanges: Sequence[Exchange]) -> Pairs:
    """What a layer tried, by its report, of the operations that its workload asks for."""
    event = exchanges[-1].event if exchanges else None
    try:
        told = read(None if event is None else event.detail)
    except ReportError:
        return Counter()
    first, later = keys_of(contract, matrix, fault)
    return +Counter({**dict.fromkeys(first, told.tried - told.later), **dict.fromkeys(later, told.later)})


def keys_of(
    contract: Contract, matrix: Matrix, fault: FaultCase
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The row and the cells that a fault fills: in the first session of a store, and in a second one."""
    load = contract.work_of(fault)
    attacks = _LAYERS.get(fault.layer, ())
    in_two = strikes_twice(fault)
    # While the store is away each fact is asked for, too, and an operation that tells one has to refuse.
    asked = [fact["ask"] for fact in load.facts.values() if "ask" in fact]
    asked += [each["ask"] for step in load.steps for each in step.get("told", {}).values()]
    told = [name for name in asked if contract.methods[name].group is Group.OPERATION]
    called = [row_of(step, matrix) for step in load.steps]
    rows = [*filter(None, called), *(told if fault.promise is Promise.REFUSED else ())]
    # What may find nothing to do in a second session proves nothing there.
    idle = {row for row, step in zip(called, load.steps, strict=True) if "idle" in step}
    again = [row for row in rows if row not in idle]
    return (
        [(row, cell(attack)) for row in rows for attack in attacks],
        [(row, cell(LATER[attack])) for row in again for attack in attacks if in_two and attack in LATER],
    )


def _change(contract: Contract, matrix: Matrix, case: Case | None, each: Changed) -> Attack | None:
    """What a change of a file does to the store; None where the file is not of it."""
    places = matrix.store or ((contract.inspection.path,) if contract.inspection is not None else ())
    if not any(each.path.startswith(place) or place.startswith(f"{each.path}/") for place in places):
        return None
    if each.verb != "tamper":
        return Attack.REPLACED
    step = {} if case is None else _step(case, each.note)
    if "journal_mode" in step:
        return None
    # A suite test has no steps, and cuts or removes.
    return Attack.DAMAGED if {"flip", "truncate"} & step.keys() or each.note.endswith(CUT) else Attack.MISSING


def _step(case: Case, note: str) -> Mapping[str, object]:
    """The step of a note such as `given.0 tamper x`."""
    phase, _, number = note.partition(" ")[0].partition(".")
    steps = {"given": case.given, "when": case.when, "then": case.then}.get(phase, ())
    return steps[int(number)] if number.isdigit() and int(number) < len(steps) else {}


def _telling(case: Case | None) -> set[str]:
    """The notes of the calls of which a case says what a refusal may hold in its `data`."""
    if case is None:
        return set()
    return {
        f"{phase}.{index} {kind} {step[kind]}"
        for phase, steps in (("given", case.given), ("when", case.when), ("then", case.then))
        for index, step in enumerate(steps)
        for kind in ("call", "start")
        if kind in step and _judges_data(step.get("expect", {}))
    }


def _judges_data(expect: Mapping[str, object]) -> bool:
    options = expect.get("any", [expect])
    return isinstance(options, list) and any("data" in option for option in options)
