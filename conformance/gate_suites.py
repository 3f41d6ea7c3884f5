"""What the exchanges of a suite test must show before its verdict is taken as written. Pure.

A suite test is Python, so the gate cannot judge it again. What it can see is whether an adapter was really met: a
session that was opened fresh and closed in order, and answers in it that fit the contract.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.cases import expect as ex
from conformance.cases.record import Record
from conformance.verdict import Silence
from specs import Contract
from specs.schema import published_variants

_SILENT = frozenset(silence.value for silence in Silence)


def doubt_of_suite(contract: Contract, records: Sequence[Record], not_claimed: Mapping[str, str]) -> str | None:
    """Why these records cannot be those of a suite test that conforms; None if they can."""
    opened: set[int] = set()
    awaited: defaultdict[int, deque[Mapping[str, Any]]] = defaultdict(deque)
    sessions = calls = 0
    for record in records:
        request, answer = record.request, record.answer
        if record.event is not None and record.event.get("kind") in _SILENT:
            return f"record {record.n} is a silence, which ends a test"
        if request is None and answer is not None:
            if not awaited[record.worker]:
                return f"record {record.n} answers worker {record.worker}, which was asked nothing"
            request = awaited[record.worker].popleft()
        elif request is not None and answer is None and record.event is None:
            awaited[record.worker].append(request)
        if request is None or answer is None:
            continue
        if request.get("op") == "open":
            # What a worker owed before it was killed is owed by nobody.
            awaited[record.worker].clear()
        problem = published_variants("protocol-answer").explain({**answer, "id": "0"})
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


def _ends(request: Mapping[str, Any], worker: int, opened: set[int]) -> int:
    """Takes note of an open or close that went well; 1 where a session that began fresh ends."""
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
    return "no such method" if method is None else ex.broken_answer(method, answer, not_claimed)
