"""`race`: one call from every worker at once, after a barrier. At most one call may win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.conformance.adapter.worker import Prepared, Worker
from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.expect import failure_of
from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.session import Action, Asking, SessionScript
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.steps import kind
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs.model import CaseKind, Method


def _race(driver: Driver, action: Action) -> None:
    # The barrier: workers are up and idle, every line is ready beforehand, and no worker runs until all have theirs.
    workers: list[Worker] = []
    lines: list[Prepared] = []
    last: dict[Worker, Prepared] = {}
    for number, request in action.requests:
        worker = driver.worker(number)
        if worker is None or worker.dead is not None:
            driver.write_reply(action, number, request, driver.absent(FailureMode.MISSING, "the worker is gone"))
            return
        workers.append(worker)
    for worker, (_, request) in zip(workers, action.requests, strict=True):
        last[worker] = worker.prepare(driver.located(request), last.get(worker))
        lines.append(last[worker])
    for worker in workers:
        worker.process.pause()
    try:
        for worker, line in zip(workers, lines, strict=True):
            worker.send_prepared(line)
    finally:
        for worker in workers:
            worker.process.resume()
    for number, request in action.requests:
        driver.write_reply(action, number, request, driver.reply(number, driver.deadlines.op))


RACE = Asking("race", _race)


@kind(
    form(
        {
            "race": METHOD,
            **OF_A_WORKER,
            "args": ANYTHING,
            "bind": BIND,
            "expect": form({"one": EXPECT, "rest": {"type": "array", "items": EXPECT, "minItems": 1}}, ("one", "rest")),
        },
        ("race", "expect"),
    ),
    method="operation",
    workers=2,
    accepts=True,
)
def race(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Call an operation from every worker at once."""
    requests = []
    for worker in range(reading.case.workers):
        method, request = reading.request(step, step["race"], reading.state.scope.bind("i", worker))
        requests.append((worker, request))
    records = yield Action(RACE, note, tuple(requests))
    for record in records:
        reading.hold_well_formed(record, method)
        failure = failure_of(record)
        if failure is not None and record.answer is None:
            raise NonConformance(failure)
    outcome = judge_race(records, step, reading.state.scope, about=reading.case.kind, method=method)
    if isinstance(outcome, Judgement):
        raise NonConformance(outcome)
    scope = reading.state.scope.bind("winner", dict(outcome.winner.answer or {}))
    reading.state.scope = scope.bind("losers", [dict(record.answer or {}) for record in outcome.losers])
    reading.state.bound_at |= {"winner": outcome.winner.n, "losers": records[-1].n}
    reading.bind(step, outcome.winner)


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """The outcome of a race: one winner, and losers that answered as they may."""

    winner: Record
    losers: tuple[Record, ...]


def judge_race(
    records: Sequence[Record], step: Mapping[str, Any], scope: Scope, *, about: CaseKind, method: Method | None = None
) -> RaceOutcome | Judgement:
    """The outcome of well-formed answers to one race, or the judgement that ends the case."""

    def judged(record: Record, expect: Mapping[str, Any]) -> Judgement | None:
        return ex.judge_answer(record, expect, scope, step=step, kind=about, method=method)

    one, rest = step["expect"]["one"], step["expect"]["rest"]
    winners = [record for record in records if judged(record, one) is None]
    losers = [record for record in records if record not in winners]
    if len(winners) > 1:
        who = ", ".join(str(winner.worker) for winner in winners)
        detail = f"{len(winners)} of {len(records)} concurrent calls won, those of workers {who}; at most one may"
        return Judgement(Verdict.FAIL_OPEN, None, detail, "exactly one winner", _tally(records), n=winners[1].n)
    lost = rest[0] if len(rest) == 1 else {"any": rest}
    if winners:
        # So the winner's value that a loser reports can be compared with the winner's own answer.
        scope = scope.bind("winner", dict(winners[0].answer or {}))
    else:
        lost = {"any": [_without_details(option) for part in rest for option in ex.alternatives(part)]}
    # Without a winner one loser takes its place, and the others must still be proper losers.
    for loser in losers if winners else losers[1:]:
        problem = judged(loser, lost)
        if problem is not None:
            return problem
    if not winners:
        missing = judged(records[0], one)
        assert missing is not None
        detail = f"none of {len(records)} concurrent calls won: {missing.detail}"
        return replace(missing, detail=detail, expected="exactly one winner", received=_tally(records))
    if not _overlapped(records):
        detail = "the calls did not overlap, so nothing raced"
        return Judgement(Verdict.NOT_REACHED, None, detail, "overlapping calls", _tally(records), n=records[0].n)
    return RaceOutcome(winners[0], tuple(losers))


def _without_details(expect: Mapping[str, Any]) -> Mapping[str, Any]:
    """The kind of answer that is expected, without its content: the content may name the winner."""
    return {name: part for name, part in expect.items() if name not in {"value", "data"}}


def _overlapped(records: Sequence[Record]) -> bool:
    """Whether at least half of the calls, and at least two, had started before the first answer came."""
    sent = [record.sent_us for record in records if record.sent_us is not None]
    received = [record.received_us for record in records if record.received_us is not None]
    if not (len(sent) == len(received) == len(records)):
        return False
    under_way = sum(moment < min(received) for moment in sent)
    return under_way >= max(2, (len(records) + 1) // 2)


def _tally(records: Sequence[Record]) -> str:
    counts: dict[str, int] = {}
    for record in records:
        answer = record.answer or {}
        key = " ".join(str(answer[part]) for part in ("outcome", "effect", "reason") if part in answer) or "no answer"
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{count} x {key}" for key, count in sorted(counts.items()))
