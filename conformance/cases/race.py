"""Judging a race: one call from every worker at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import Verdict
from holdfast.specs.model import Kind

Records = Sequence[Record]


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """A race that went as it must: one winner, and losers that answered as they may."""

    winner: Record
    losers: tuple[Record, ...]


def judge_race(records: Records, step: Mapping[str, Any], scope: Scope, *, kind: Kind) -> RaceOutcome | Judgement:
    """The outcome of well-formed answers to one race, or the judgement that ends the case."""

    def judged(record: Record, expect: Mapping[str, Any]) -> Judgement | None:
        return ex.judge_answer(record, expect, scope, step=step, kind=kind)

    one, rest = step["expect"]["one"], step["expect"]["rest"]
    winners = [record for record in records if judged(record, one) is None]
    losers = [record for record in records if record not in winners]
    if len(winners) > 1:
        who = ", ".join(str(winner.worker) for winner in winners)
        detail = f"{len(winners)} of {len(records)} concurrent calls won, those of workers {who}; at most one may"
        return Judgement(Verdict.FAIL_OPEN, None, detail, "exactly one winner", _tally(records), n=winners[1].n)
    lost = rest[0] if len(rest) == 1 else {"any": rest}
    if winners:
        # What a loser is told of the winner can be compared with what the winner was told.
        scope = scope.bind("winner", dict(winners[0].answer or {}))
    else:
        lost = {"any": [_without_details(option) for part in rest for option in ex.alternatives(part)]}
    # Without a winner one of them stands for the missing one, and the others must still be proper losers.
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
    """What kind of answer is expected, without what it must hold: that may name the winner."""
    return {name: part for name, part in expect.items() if name not in {"value", "data"}}


def _overlapped(records: Records) -> bool:
    """Whether at least half of the calls, and two of them, were under way before the first answer came."""
    sent = [record.sent_us for record in records if record.sent_us is not None]
    received = [record.received_us for record in records if record.received_us is not None]
    if not (len(sent) == len(received) == len(records)):
        return False
    under_way = sum(moment < min(received) for moment in sent)
    return under_way >= max(2, (len(records) + 1) // 2)


def _tally(records: Records) -> str:
    counts: dict[str, int] = {}
    for record in records:
        answer = record.answer or {}
        key = " ".join(str(answer[part]) for part in ("outcome", "effect", "reason") if part in answer) or "no answer"
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{count} x {key}" for key, count in sorted(counts.items()))
