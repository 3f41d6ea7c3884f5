"""Steps that call a method and judge its answer, at once or later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.expect import shown
from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, LABEL, LABELLED, METHOD, OF_A_WORKER, form, one_of
from holdfast.conformance.cases.inertness import NOTHING_SHOWN, STORE, TREE, judge_changed, judge_inert, shows_nothing
from holdfast.conformance.cases.match import mismatch, same
from holdfast.conformance.cases.reading import CaseInterpreter, raise_if_failed
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.session import (
    EXCHANGE,
    Action,
    Asking,
    Local,
    SessionScript,
    call_request,
    end_unless_ok,
    judge_ok,
)
from holdfast.conformance.cases.values import Scope, names_in
from holdfast.conformance.steps import kind
from holdfast.conformance.steps.files import LIST
from holdfast.conformance.steps.stores import INSPECT, store_operand
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Method
from holdfast.specs.model import Group, Observer

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
        detail = f"{name} cannot be observed {when} the call, so nothing shows that a refusal is inert"
        end_unless_ok(judge_ok(record), detail)
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
    raise _unobserved("inspected", note, "a database that can be read", value["error"] or "it is not there")


def files_of(value: Mapping[str, Any], note: str) -> list[Any]:
    """What a listing shows, for comparison with another's; nothing for a folder that is not there.

    Folders are left out: an empty one holds nothing, and a failed write may have made the folder of its file.
    Raises NonConformance where it cannot be listed.
    """
    if value["error"] is None:
        return [entry for entry in value["files"] if entry["kind"] != "folder"]
    raise _unobserved("listed", note, "a folder that can be listed", value["error"])


def _unobserved(how: str, when: str, expected: str, why: str) -> NonConformance:
    detail = f"the store cannot be {how} {when}, so nothing shows that a refusal is inert: {why}"
    return NonConformance(Judgement(Verdict.NOT_REACHED, None, detail, expected, why))


_MALFORMED: Mapping[str, Any] = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}


def _expected(step: Mapping[str, Any]) -> Mapping[str, Any]:
    expect: Mapping[str, Any] = step.get("expect", _MALFORMED if step.get("malformed") else ex.ACCEPTED)
    return expect


@kind(
    form(
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
    observes_around=lambda step: bool(step.get("malformed")) or ex.expects_refusal(step.get("expect", {})),
    method="operation",
    accepts=True,
)
def call(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Call an operation. The state is observed around a call that must be refused: a refusal changes nothing."""
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
            raise_if_failed(judge_inert(reading.contract, method, [str(answer["reason"])], before, after, at=at))
    elif proof and answer.get("effect") == "new":
        after = yield from observed(reading, method, worker, note, "after")
        raise_if_failed(judge_changed(reading.contract, method, before, after, at=at))
    return record


def ask(reading: CaseInterpreter, step: Mapping[str, Any], name: str, note: str) -> SessionScript[None]:
    """Call a method that is not an operation. An observation may show nothing while a commit is open."""
    worker, scope = step.get("worker", 0), reading.state.scope
    method, request = reading.request(step, name, scope)
    (record,) = yield Action(EXCHANGE, note, ((worker, request),), worker=worker)
    if reading.may_wait(record) and method.group is Group.OBSERVATION and "bind" not in step:
        return
    yield from reading.settle(record, method, {**ex.OK, **step.get("expect", {})}, step, scope)
    reading.bind(step, record)


@kind(
    form({"observe": METHOD, **OF_A_WORKER, "args": ANYTHING, "bind": BIND, "expect": EXPECT}, ("observe",)),
    method="observation",
    reports=True,
)
def observe(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Ask an observation, which answers `ok` with a value."""
    yield from ask(reading, step, step["observe"], note)


@kind(
    form({"provoke": METHOD, **OF_A_WORKER, "args": ANYTHING, "bind": BIND, "expect": EXPECT}, ("provoke",)),
    method="provocation",
    reports=True,
)
def provoke(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Call a test hook of the implementation, which answers `ok`."""
    yield from ask(reading, step, step["provoke"], note)
    if reading.contract.methods[step["provoke"]].damages:
        reading.state.damaged = True


START = Asking("start", lambda driver, action: driver.send(action), awaited=False)


def started(reading: CaseInterpreter, name: str) -> tuple[int, str]:
    """The worker and the method of the call that was started under this name."""
    worker, method = reading.state.scope.resolve(f"$__{name}")
    return worker, method


@kind(form({"start": METHOD, **OF_A_WORKER, "args": ANYTHING, "as": LABEL}, ("start", "as")), method="operation")
def start(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Send a call and do not wait for its answer; `finish` waits for it."""
    worker = step.get("worker", 0)
    _, request = reading.request(step, step["start"], reading.state.scope)
    yield Action(START, note, ((worker, request),), worker=worker)
    reading.state.scope = reading.state.scope.bind(f"__{step['as']}", [worker, step["start"]])
    reading.state.under_way[step["as"]] = worker


FINISH = Asking("finish", lambda driver, action: driver.receive(action))


@kind(form({"finish": LABEL, **OF_A_WORKER, "bind": BIND, "expect": EXPECT}, ("finish",)), accepts=True)
def finish(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Wait for the answer to a call that was started, and judge it."""
    worker, name = started(reading, step["finish"])
    (record,) = yield Action(FINISH, note, worker=worker)
    reading.state.under_way.pop(step["finish"], None)
    expect = step.get("expect", ex.ACCEPTED)
    yield from reading.settle(record, reading.contract.methods[name], expect, step, reading.state.scope)
    if step["finish"] in reading.state.hasty:
        detail = f"{step['finish']} was answered before the outcome was known that its answer rests on"
        wrong = ex.wrong_value(reading.case.kind, step)
        raise NonConformance(Judgement(wrong, None, detail, "an answer after that outcome", shown(record), n=record.n))
    reading.bind(step, record)


# How long the harness watches a call that waits for another's outcome. Long enough that a released call reaches its
# database on a busy machine, and well below the lock timeout of any implementation. An answer that comes sooner ends
# the wait. --slow does not stretch it: the waiting call has no more time on a slow machine.
UNANSWERED_S = 0.25


def _watch_unanswered(driver: Driver, action: Action) -> str | None:
    worker = driver.worker(action.worker)
    if worker is None or not worker.busy:
        return "the worker is gone, or has nothing to answer"
    return "it was answered already" if worker.has_answered(within=UNANSWERED_S) else None


UNANSWERED = Local("unanswered", _watch_unanswered)


@kind(form({"unanswered": LABEL, **LABELLED}, ("unanswered",)))
def unanswered(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """A call that was started has no answer yet, because it waits for the outcome of another."""
    worker, _ = started(reading, step["unanswered"])
    (record,) = yield Action(UNANSWERED, note, worker=worker)
    if record.event is None or record.event["kind"] != "done":
        # `finish` judges it by its answer.
        reading.state.hasty.add(step["unanswered"])


_FORMS = ("equals", "differs", "matches")


@kind(
    form(
        {"check": ANYTHING, **dict.fromkeys(_FORMS, ANYTHING), **OF_A_WORKER},
        ("check",),
        oneOf=one_of(*_FORMS),
    )
)
def check(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Compare values that earlier steps bound. The step sends no request."""
    del note
    scope = reading.state.scope
    value = scope.resolve(step["check"])
    if "equals" in step:
        other = scope.resolve(step["equals"])
        problem = None if same(value, other) else f"{step['check']} is {value!r}, expected {other!r}"
    elif "differs" in step:
        other = scope.resolve(step["differs"])
        problem = f"{step['check']} must differ from {other!r}" if same(value, other) else None
    else:
        problem = mismatch(scope.resolve(step["matches"]), value)
    if problem is not None:
        # The last of the compared answers.
        bound_at = reading.state.bound_at
        at = max((bound_at[name] for name in names_in(dict(step)) & {*bound_at}), default=None)
        wrong = ex.wrong_value(reading.case.kind, step)
        reading.go_on(Judgement(wrong, None, problem, "see detail", repr(value)[:600], n=at), step)
    yield from ()
