"""Judges a case from its records alone, for the gate. A run joins both sides of a case with `both` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.conformance.cases.record import Judgement, NonConformance, Record, Side
from holdfast.conformance.cases.session import Action, carried_out
from holdfast.conformance.run.interpret import interpret
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import Case, Contract
from holdfast.specs.strictjson import canonical


def judge_case(
    contract: Contract,
    case: Case,
    main: Sequence[Record],
    twin: Sequence[Record],
    *,
    seed: str,
    not_claimed: Mapping[str, str] | None = None,
) -> Judgement:
    """The judgement of `case` from the records of its two sides. Pure.

    KIT_FAULT when the records are not those of this case and seed; NO_VERDICT (missing) when they end too early.
    """
    if twin and not main:
        # The twin ran first, and left no worker for the case itself.
        alone = judge_side(contract, case, Side.TWIN, twin, seed=seed, not_claimed=not_claimed)
        if alone.verdict is not Verdict.CONFORMS:
            return alone
    judgement = judge_side(contract, case, Side.MAIN, main, seed=seed, not_claimed=not_claimed)
    if judgement.verdict is not Verdict.CONFORMS or case.twin is None:
        return judgement
    return both(judgement, judge_side(contract, case, Side.TWIN, twin, seed=seed, not_claimed=not_claimed))


def both(main: Judgement, twin: Judgement) -> Judgement:
    """The judgement of a case whose main side conforms. A note on an early end of that side is kept."""
    return main if twin.verdict is Verdict.CONFORMS and main.detail else twin


def judge_side(
    contract: Contract,
    case: Case,
    side: Side,
    records: Sequence[Record],
    *,
    seed: str,
    not_claimed: Mapping[str, str] | None = None,
) -> Judgement:
    """The judgement of one side from its records."""
    if not records:
        return Judgement(Verdict.NOT_REACHED, detail=f"the {side.value} side was not run")
    recorded = Recorded(records, side)
    try:
        reading = interpret(contract, case, side, seed=seed, not_claimed=not_claimed)
        judgement = carried_out(reading, recorded.execute)
    except NonConformance as finding:
        return finding.judgement
    left = recorded.left()
    return judgement if left is None else foreign(side, left, "the case had ended before it")


class Recorded:
    """Takes the place of a driver: the records of each action are there already."""

    def __init__(self, records: Sequence[Record], side: Side) -> None:
        self._records, self._side, self._at = records, side, 0

    def execute(self, action: Action) -> Sequence[Record]:
        """The records of the action. Raises NonConformance where they cannot be those."""
        given = self._records[self._at : self._at + action.record_count]
        if len(given) < action.record_count:
            text = f"the records of the {self._side.value} side end before step [{action.note}]"
            raise NonConformance(Judgement(Verdict.NO_VERDICT, FailureMode.MISSING, text, side=self._side))
        for index, record in enumerate(given):
            why = unlike(action, index, record)
            if why is not None:
                raise NonConformance(foreign(self._side, record, why))
        self._at += action.record_count
        return given

    @property
    def workdir(self) -> Path:
        """Raises LookupError: only a test that cannot be judged again asks for the folder itself."""
        raise LookupError("the folder of a session that is over")

    def take_time(self) -> None:
        """There is no deadline."""

    def finish(self, judgement: Judgement) -> None:
        """There is no process to end."""

    def left(self) -> Record | None:
        """The first record that no action yielded."""
        return self._records[self._at] if self._at < len(self._records) else None


def unlike(action: Action, index: int, record: Record) -> str | None:
    """Why the record cannot come from the action; None if it can."""
    if record.action != action.note:
        return f"it is of [{record.action}], the case is at [{action.note}]"
    worker, request = action.requests[index] if action.requests else (action.worker, None)
    if record.worker != worker:
        return f"it is of worker {record.worker}, the case turns to worker {worker}"
    if request is None and record.request is not None:
        return "the case makes no request there"
    if request is not None and (record.request is None or canonical(request) != canonical(record.request)):
        return "its request is not the one that the case makes"
    if record.answer is not None and record.event is not None and record.event.get("kind") is not None:
        return "it has an answer and an event, which exclude each other"
    return action.act.unlike(record, action.operand)


def foreign(side: Side, record: Record, why: str) -> Judgement:
    """The judgement where a record cannot belong to the case."""
    return Judgement(
        Verdict.KIT_FAULT,
        detail=f"record {record.n} of the {side.value} side is of no such case, or of another version of it: {why}",
        side=side,
        n=record.n,
    )
