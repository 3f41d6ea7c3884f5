"""`call`: call an operation. The state is observed around a call that must be refused: a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.inertness import judge_changed, judge_inert, shows_nothing
from holdfast.conformance.cases.observing import observed
from holdfast.conformance.cases.reading import Reading, hold
from holdfast.conformance.cases.record import Finding, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.session import EXCHANGE, Talk
from holdfast.conformance.steps import Step

_MALFORMED: Mapping[str, Any] = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}


def _expected(step: Mapping[str, Any]) -> Mapping[str, Any]:
    expect: Mapping[str, Any] = step.get("expect", _MALFORMED if step.get("malformed") else ex.ACCEPTED)
    return expect


def _read(reading: Reading, step: Mapping[str, Any], note: str) -> Talk[None]:
    if "repeat" not in step:
        record = yield from _call(reading, step, note, reading.state.scope)
    else:
        times = step["repeat"]
        for index in range(times):
            scope = reading.state.scope.bind("i", index)
            try:
                record = yield from _call(reading, step, f"{note}, {index + 1} of {times}", scope)
            except Finding as finding:
                detail = f"call {index + 1} of {times}: {finding.judgement.detail}"
                raise Finding(replace(finding.judgement, detail=detail)) from finding
    reading.bind(step, record)


def _call(reading: Reading, step: Mapping[str, Any], note: str, scope: Scope) -> Talk[Record]:
    expect, worker = _expected(step), step.get("worker", 0)
    method, request = reading.request(step, step["call"], scope)
    guard = ex.expects_refusal(expect)
    proof = reading.is_twin_end(step) and not guard
    before = (yield from observed(reading, method, worker, note, "before")) if guard or proof else None
    (record,) = yield Action(EXCHANGE, note, ((worker, request),), worker=worker)
    yield from reading.settle(record, method, expect, step, scope)
    answer = record.answer
    if answer is None or before is None:
        return record
    at = reading.state.observed
    if answer["outcome"] == "refused":
        after = yield from observed(reading, method, worker, note, "after")
        # While a commit is open the store may be readable at one of the two moments only.
        if not (reading.state.under_way and (shows_nothing(before) or shows_nothing(after or {}))):
            hold(judge_inert(reading.contract, method, str(answer["reason"]), before, after, at=at))
    elif proof and answer.get("effect") == "new":
        after = yield from observed(reading, method, worker, note, "after")
        hold(judge_changed(reading.contract, method, before, after, at=at))
    return record


STEP = Step(
    name="call",
    form=form(
        {
            "call": METHOD,
            **OF_A_WORKER,
            "args": ANYTHING,
            "bind": BIND,
            "expect": EXPECT,
            "malformed": {"const": True},
            "repeat": {"type": "integer", "minimum": 2, "maximum": 1000},
        },
        ("call",),
    ),
    read=_read,
    observes_around=lambda step: bool(step.get("malformed")) or ex.expects_refusal(step.get("expect", {})),
    facts={"method": "operation", "accepts": True},
)
