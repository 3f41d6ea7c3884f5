"""Judging a case from its records alone. Used when the run ends, and again by the gate from the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.conformance.cases.action import Action, Verb
from holdfast.conformance.cases.interpret import interpret
from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.cases.seen import TELLING, SeenError, read
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.verdict import EVENT_KINDS, Silence, Verdict
from holdfast.specs import Case, Contract
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.strictjson import canonical

_ANSWERED = frozenset({Verb.EXCHANGE, Verb.RACE, Verb.FINISH})
_LOCAL = frozenset({"done", "failed"})


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
        # The twin came first, and no worker was left for the case itself.
        alone = judge_side(contract, case, Side.TWIN, twin, seed=seed, not_claimed=not_claimed)
        if alone.verdict is not Verdict.CONFORMS:
            return alone
    judgement = judge_side(contract, case, Side.MAIN, main, seed=seed, not_claimed=not_claimed)
    if judgement.verdict is not Verdict.CONFORMS or case.twin is None:
        return judgement
    return both(judgement, judge_side(contract, case, Side.TWIN, twin, seed=seed, not_claimed=not_claimed))


def both(main: Judgement, twin: Judgement) -> Judgement:
    """The judgement of a case whose main side conforms; why that ended early is not lost over the twin."""
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
    reading = interpret(contract, case, side, seed=seed, not_claimed=not_claimed)
    position = 0
    given: Sequence[Record] | None = None
    try:
        while True:
            action = next(reading) if given is None else reading.send(given)
            given = records[position : position + action.record_count]
            if len(given) < action.record_count:
                return Judgement(
                    Verdict.NO_VERDICT,
                    Silence.MISSING,
                    f"the records of the {side.value} side end before step [{action.note}]",
                    advice="Run the case again.",
                    side=side,
                )
            for index, record in enumerate(given):
                why = unlike(action, index, record)
                if why is not None:
                    return foreign(side, record, why)
            position += action.record_count
    except StopIteration as stop:
        judgement: Judgement = stop.value
    except CaseError as error:
        return Judgement(Verdict.KIT_FAULT, detail=str(error), side=side)
    if position != len(records):
        return foreign(side, records[position], "the case had ended before it")
    return judgement


def unlike(action: Action, index: int, record: Record) -> str | None:
    """Why the record cannot be what came of the action; None if it can."""
    if record.action != action.note:
        return f"it is of [{record.action}], the case is at [{action.note}]"
    worker, request = action.requests[index] if action.requests else (action.worker, None)
    if record.worker != worker:
        return f"it is of worker {record.worker}, the case turns to worker {worker}"
    if request is None and record.request is not None:
        return "the case makes no request there"
    if request is not None and (record.request is None or not _equal(request, record.request)):
        return "its request is not the one that the case makes"
    kind = None if record.event is None else record.event.get("kind")
    if record.answer is not None:
        if kind is not None:
            return "it has an answer and an event, which exclude each other"
        if action.verb not in _ANSWERED:
            return "the case awaits no answer there"
        problem = explain(published_validator("protocol-answer"), {**record.answer, "id": "0"})
        return None if problem is None else f"its answer does not fit the protocol: {problem}"
    if kind is None:
        return None if action.verb is Verb.START else "it has neither an answer nor an event"
    if action.verb.value in TELLING and kind == "done":
        try:
            read(action.verb, record.event.get("detail") if record.event else None, action.operand)
        except SeenError as error:
            return str(error)
    if kind == "done" and action.verb.value not in TELLING and record.event and record.event.get("detail"):
        return f"{action.verb.value} reports nothing, and this record does"
    awaited = EVENT_KINDS if action.verb in _ANSWERED or action.verb is Verb.START else _LOCAL
    return None if kind in awaited else f"an event of kind {kind!r} cannot come of {action.verb.value}"


def _equal(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    return canonical(left) == canonical(right)


def foreign(side: Side, record: Record, why: str) -> Judgement:
    """The judgement where a record cannot be of the case."""
    return Judgement(
        Verdict.KIT_FAULT,
        detail=f"record {record.n} of the {side.value} side does not belong to this case: {why}",
        advice="The evidence was changed, or was made with another version of the case.",
        side=side,
        n=record.n,
    )
