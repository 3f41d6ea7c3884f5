"""Observing the state around a call, to show that a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.inertness import NOTHING_SHOWN, STORE, TREE
from holdfast.conformance.cases.reading import Reading
from holdfast.conformance.cases.record import Finding, Judgement
from holdfast.conformance.cases.rows import store_operand
from holdfast.conformance.session import EXCHANGE, Talk, call_request
from holdfast.conformance.steps.inspect import INSPECT
from holdfast.conformance.steps.tree import LIST
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Method
from holdfast.specs.model import Observer


def observed(reading: Reading, method: Method, worker: int, note: str, when: str) -> Talk[dict[str, Any] | None]:
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
            raise Finding(replace(judgement, verdict=verdict, detail=why, expected="ok"))
        assert record.answer is not None
        found[name] = record.answer.get("value")
    return found


def state_of(value: Mapping[str, Any], note: str, *, damaged: bool) -> Mapping[str, Any]:
    """The state that an inspection shows, for comparison with another's: the rows of every table.

    A store that the case itself damaged or never provided is compared by its bytes, or by its absence. Any other store
    that cannot be read shows nothing. Raises Finding.
    """
    if value["exists"] and value["error"] is None:
        rows: Mapping[str, Any] = value["rows"]
        return rows
    if damaged and (value["digest"] is not None or not value["exists"]):
        return {"unreadable": value["digest"] or "not there"}
    why = value["error"] or "it is not there"
    detail = f"the store cannot be inspected {note}, so nothing shows that a refusal is inert: {why}"
    raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, "a database that can be read", str(why)))


def files_of(value: Mapping[str, Any], note: str) -> list[Any]:
    """What a listing shows, for comparison with another's; nothing for a folder that is not there.

    Folders are left out: an empty one holds nothing, and a failed write may have made the folder of its file.
    Raises Finding where it cannot be listed.
    """
    if value["error"] is None:
        return [entry for entry in value["files"] if entry["kind"] != "folder"]
    detail = f"the store cannot be listed {note}, so nothing shows that a refusal is inert: {value['error']}"
    raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, "a folder that can be listed", str(value["error"])))
