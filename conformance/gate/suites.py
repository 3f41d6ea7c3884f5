"""What the exchanges of a suite test prove about its verdict. Pure.

A suite test depends on the seed, the answers and the observations of the harness. The evidence holds all of them, so
the gate runs the test again, at a bench where the records replace the adapter. A test that is marked `drawn` cannot run
again. Of it the gate checks only that the run met an adapter: a session was opened fresh and closed in order, and its
answers fit the contract.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.conformance.cases.failure import broken
from holdfast.conformance.cases.judge import Recorded, foreign
from holdfast.conformance.cases.record import Finding, Judgement, Record, Side
from holdfast.conformance.cases.report import ReportError
from holdfast.conformance.run.plan import PlannedCase, suite_case_id, suite_tests
from holdfast.conformance.steps import kinds
from holdfast.conformance.suites.bench import Bench, Limits
from holdfast.conformance.verdict import EVENT_KINDS, Verdict
from holdfast.specs import Contract
from holdfast.specs.schema import explain, published_validator

# More workers than any suite test asks for: the records show how many the adapter allowed.
_WORKERS = 1000


def judge_suite(
    contract: Contract,
    planned: PlannedCase,
    records: Sequence[Record],
    *,
    seed: str,
    not_claimed: Mapping[str, str],
    thorough: float = 1.0,
) -> Judgement:
    """The judgement of a suite test from its records; not of one that `is_randomised`.

    KIT_FAULT when the records are not those of this test and seed; NO_VERDICT (missing) when they end too early.
    """
    tests = {suite_case_id(contract.name, function.__name__): function for function, _ in suite_tests(contract.name)}
    recorded = Recorded(records, Side.MAIN)
    bench = Bench(
        contract=contract,
        case=planned.id,
        seed=seed,
        make_driver=lambda _: recorded,
        not_claimed=not_claimed,
        limits=Limits(_WORKERS, None),
        thorough=thorough,
    )
    try:
        tests[planned.id](bench)
        judgement = bench.conclude()
    except Finding as finding:
        judgement = finding.judgement
    judgement = bench.gravest(judgement).placed(Side.MAIN, None)
    left = recorded.left()
    if left is not None and judgement.verdict is not Verdict.KIT_FAULT:
        return foreign(Side.MAIN, left, "the test had ended before it")
    return judgement


def is_randomised(contract: Contract, planned: PlannedCase) -> bool:
    """Whether it is a suite test that may ask something else the second time."""
    marks = {suite_case_id(contract.name, function.__name__): mark for function, mark in suite_tests(contract.name)}
    return planned.id in marks and marks[planned.id].drawn


def inconclusive_suite(contract: Contract, records: Sequence[Record], not_claimed: Mapping[str, str]) -> str | None:
    """Why these records cannot belong to a suite test that conforms; None if they can."""
    opened: set[int] = set()
    awaited: defaultdict[int, deque[Mapping[str, Any]]] = defaultdict(deque)
    sessions = calls = 0
    for record in records:
        request, answer = record.request, record.answer
        if record.event is not None and record.event.get("kind") in EVENT_KINDS:
            return f"record {record.n} is a silence, which ends a test"
        unreadable = _unreadable(record)
        if unreadable is not None:
            return f"record {record.n} tells nothing: {unreadable}"
        if request is None and answer is not None:
            if not awaited[record.worker]:
                return f"record {record.n} answers worker {record.worker}, which was asked nothing"
            request = awaited[record.worker].popleft()
        elif request is not None and answer is None and record.event is None:
            awaited[record.worker].append(request)
        if request is None or answer is None:
            continue
        if request.get("op") == "open":
            # An answer that a worker owed before it was killed is not awaited any longer.
            awaited[record.worker].clear()
        problem = explain(published_validator("protocol-answer"), {**answer, "id": "0"})
        if problem is not None:
            return f"the answer in record {record.n} does not fit the protocol: {problem}"
        if request.get("op") == "call":
            calls += 1
            problem = _broken(contract, request, answer, not_claimed)
            if problem is not None:
                return f"the answer in record {record.n} does not fit the contract: {problem}"
        elif answer.get("outcome") == "ok":
            sessions += _ends(request, record.worker, opened)
    if not sessions or not calls:
        return f"they hold {sessions} sessions that were opened fresh and closed, and {calls} answered calls"
    return None


def _unreadable(record: Record) -> str | None:
    """Why a record does not show what the harness observed; None if it does, or holds something else."""
    kind = kinds().get(record.action.partition(" ")[0])
    if kind is None or kind.report is None or record.request is not None or record.answer is not None:
        return None
    event = record.event or {}
    if event.get("kind") != "done":
        return f"an event of kind {event.get('kind')!r} ends a test"
    try:
        kind.report.read(event.get("detail"))
    except ReportError as error:
        return str(error)
    return None


def _ends(request: Mapping[str, Any], worker: int, opened: set[int]) -> int:
    """Note an open or close that succeeded; 1 where a session that began fresh ends."""
    if request.get("op") == "open" and request.get("state") == "fresh":
        opened.add(worker)
    elif request.get("op") == "close" and worker in opened:
        opened.discard(worker)
        return 1
    return 0


def _broken(
    contract: Contract, request: Mapping[str, Any], answer: Mapping[str, Any], not_claimed: Mapping[str, str]
) -> str | None:
    method = contract.methods.get(str(request.get("method")))
    return "no such method" if method is None else broken(method, answer, not_claimed)
