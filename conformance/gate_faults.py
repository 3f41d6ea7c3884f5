"""What the record of a fault shows of its verdict: judged again by the function that judged it in the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.cases.record import Judgement, Record
from conformance.durability.told import ToldError, read
from conformance.durability.verdicts import ABILITY, ABLE, is_recorded, judged, not_tested
from conformance.durability.workload import scopes_of, seed_of
from conformance.verdict import Silence, Verdict
from specs import Contract
from specs.model import FaultCase


def judge_fault(
    contract: Contract, fault: FaultCase, records: Sequence[Record], *, seed: str, environment: Mapping[str, str]
) -> Judgement:
    """The judgement of a fault from what its records tell of the layer. KIT_FAULT where they are not those of it."""
    events = [record.event for record in records if record.action == fault.layer.value and record.event is not None]
    if len(events) != 1 or events[0].get("kind") != "done":
        text = f"they hold {len(events)} reports of the layer {fault.layer.value}, and one that is done is due"
        return Judgement(Verdict.NO_VERDICT, Silence.MISSING, text)
    try:
        told = read(events[0].get("detail"))
        drawn = int(seed_of(scopes_of(contract.workloads[fault.workload], contract=contract.name, seed=seed)), 16)
        if told.seed != drawn:
            raise ToldError(f"its seed is {told.seed}, and the run's seed makes it {drawn}")
        judgement = judged(fault, told)
    except ToldError as error:
        return Judgement(Verdict.KIT_FAULT, detail=f"the report of the layer {fault.layer.value}: {error}")
    except Exception as error:
        # A changed file may say anything, and must not open.
        return Judgement(Verdict.KIT_FAULT, detail=f"they cannot be judged ({type(error).__name__}: {error})")
    able = environment.get(ABILITY, "nothing of it")
    if judgement.verdict is Verdict.CONFORMS and is_recorded(fault.layer) and not able.startswith(ABLE):
        return not_tested(fault, f"the header says of {ABILITY}: {able}")
    return judgement
