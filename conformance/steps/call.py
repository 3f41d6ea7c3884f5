"""`call`: call an operation. The state is observed around a call that must be refused: a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.inertness import NOTHING_SHOWN, STORE, TREE, judge_changed, judge_inert, shows_nothing
from holdfast.conformance.cases.reading import CaseInterpreter, raise_if_failed
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.rows import store_operand
from holdfast.conformance.cases.session import EXCHANGE, Action, SessionScript, call_request
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.inspect import INSPECT
from holdfast.conformance.steps.tree import LIST
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Method
from holdfast.specs.model import Observer

# Observing the state around a call, to show that a refusal changes nothing


def observed(
    reading: CaseInterpreter, method: Method, worker: int, note: str, when: str
) -> SessionScript[dict[str, Any] | None]:
    """The observation around a call of `method`; None where the contract has no state for it."""
    inertness = reading.contract.inertness_of(method)
    if inertness is None:
        return None
    found: dict[str, Any] = {}
    at = reading.state.observed
    if inertness.by_harness:
        operand = store_operand(reading.contract)
        (record,) = yield Action(INSPECT, f"inspect {when} [{note}]", operand=operand)
        found[STORE] = state_of(INSPECT.value_of(record, operand), when, damaged=reading.state.damaged)
        at[STORE] = record.n
    if inertness.tree is not None:
        operand = {"path": inertness.tree}
        (record,) = yield Action(LIST, f"tree {when} [{note}]", operand=operand)
        found[TREE] = files_of(LIST.value_of(record, operand), when)
        at[TREE] = record.n
    # A worker that nothing else uses observes. An observation through the worker under test would refresh its caches,
    # make it write what it holds back, and disclose which calls must be refused.
    if reading.case.observer is Observer.APART:
        worker = reading.case.workers
    for name in filter(None, (inertness.observe, inertness.audit)):
        (record,) = yield Action(
            EXCHANGE, f"{name} {when} [{note}]", ((worker, call_request(name, {})),), worker=worker
        )
        reading.hold_well_formed(record, reading.contract.methods[name])
        at[name] = record.n
        if reading.shows_nothing(record):
            found[name] = NOTHING_SHOWN
            continue
        judgement = ex.judge_answer(record, ex.OK, reading.state.scope, step={}, kind=reading.case.kind)
        if judgement is not None:
            verdict = judgement.verdict if judgement.verdict.is_incomplete else Verdict.NOT_REACHED
            detail = f"{name} cannot be observed {when} the call, so nothing shows that a refusal is inert"
            why = f"{detail}: {judgement.detail}"
            raise NonConformance(replace(judgement, verdict=verdict, detail=why, expected="ok"))
        assert record.answer is not None
        found[name] = record.answer.get("value")
    return found


def state_of(value: Mapping[str, Any], note: str, *, damaged: bool) -> Mapping[str, Any]:
    """The state that an inspection shows, for comparison with another's: the rows of every table.

    A store that the case itself damaged or never provided is compared by its bytes, or by its absence. Any other store
    that cannot be read shows nothing. Raises NonConformance.
    """
    if value["exists"] and value["error"] is None:
        rows: Mapping[str, Any] = value["rows"]
        return rows
    if damaged and (value["digest"] is not None or not value["exists"]):
        return {"unreadable": value["digest"] or "not there"}
    why = value["error"] or "it is not there"
    detail = f"the store cannot be inspected {note}, so nothing shows that a refusal is inert: {why}"
    raise NonConformance(Judgement(Verdict.NOT_REACHED, None, detail, "a database that can be read", str(why)))


def files_of(value: Mapping[str, Any], note: str) -> list[Any]:
    """What a listing shows, for comparison with another's; nothing for a folder that is not there.

    Folders are left out: an empty one holds nothing, and a failed write may have made the folder of its file.
    Raises NonConformance where it cannot be listed.
    """
    if value["error"] is None:
        return [entry for entry in value["files"] if entry["kind"] != "folder"]
    detail = f"the store cannot be listed {note}, so nothing shows that a refusal is inert: {value['error']}"
    raise NonConformance(
        Judgement(Verdict.NOT_REACHED, None, detail, "a folder that can be listed", str(value["error"]))
    )


_MALFORMED: Mapping[str, Any] = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}


def _expected(step: Mapping[str, Any]) -> Mapping[str, Any]:
    expect: Mapping[str, Any] = step.get("expect", _MALFORMED if step.get("malformed") else ex.ACCEPTED)
    return expect


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    if "repeat" not in step:
        record = yield from _call(reading, step, note, reading.state.scope)
    else:
        times = step["repeat"]
        for index in range(times):
            scope = reading.state.scope.bind("i", index)
            try:
                record = yield from _call(reading, step, f"{note}, {index + 1} of {times}", scope)
            except NonConformance as finding:
                detail = f"call {index + 1} of {times}: {finding.judgement.detail}"
                raise NonConformance(replace(finding.judgement, detail=detail)) from finding
    reading.bind(step, record)


def _call(reading: CaseInterpreter, step: Mapping[str, Any], note: str, scope: Scope) -> SessionScript[Record]:
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
            raise_if_failed(judge_inert(reading.contract, method, str(answer["reason"]), before, after, at=at))
    elif proof and answer.get("effect") == "new":
        after = yield from observed(reading, method, worker, note, "after")
        raise_if_failed(judge_changed(reading.contract, method, before, after, at=at))
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
