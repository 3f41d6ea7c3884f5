"""How an adapter fails to answer, and its verdict: the same for cases, suites and fault workloads. Pure.

An answer `fault` is a failure mode like a crash or a hang: it is neither accepted nor refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.reports.plain import cut
from holdfast.specs import Method
from holdfast.specs.schema import explain

_MODES = {mode.value: mode for mode in FailureMode}
# How the report of an answer `fault` begins.
FAULTED = "the adapter answered `fault`"
# The ends of a process where a case expects its death.
_DEATHS = frozenset({FailureMode.CRASH.value, FailureMode.EOF.value})


def failure_of(record: Record) -> Judgement | None:
    """The judgement where there is no answer, or where the adapter failed or lacks a capability; None otherwise."""
    if record.answer is None:
        event = record.event or {"kind": "missing", "detail": "no record of an answer"}
        mode = _MODES.get(str(event["kind"]), FailureMode.MISSING)
        return replace(no_verdict(mode, str(event["detail"])), received=shown(record), n=record.n)
    outcome = record.answer["outcome"]
    if outcome == "fault":
        detail = f"{FAULTED}, it says that it failed itself: {record.answer.get('detail', '')}"
        return replace(no_verdict(FailureMode.FAULT, detail), received=shown(record), n=record.n)
    if outcome == "unsupported":
        detail = f"the adapter does not support {record.answer['capability']}"
        return Judgement(Verdict.UNSUPPORTED, detail=detail, received=shown(record), n=record.n)
    return None


def has_died(record: Record) -> bool:
    """Whether the process of the worker ended in place of an answer."""
    return record.answer is None and record.event is not None and record.event["kind"] in _DEATHS


def shown(record: Record) -> str:
    """A text that describes what came back."""
    if record.answer is None:
        event = record.event or {"kind": "missing", "detail": "no record"}
        return f"no answer ({event['kind']}: {event['detail']})"
    answer = record.answer
    words = [str(answer.get("outcome"))]
    words += [str(answer[key]) for key in ("effect", "reason", "capability") if key in answer]
    words += [f"{key} {answer[key]!r}" for key in ("value", "data") if key in answer]
    return cut(", ".join(words), 600)


def no_verdict(mode: FailureMode, detail: str) -> Judgement:
    """NO_VERDICT with this failure mode, and what to do about it."""
    advice = {
        FailureMode.CRASH: "The adapter's standard error is in the evidence; run it by hand with `holdfast doctor`.",
        FailureMode.HANG: "An adapter answers every request, with `fault` if need be; --slow FACTOR grants more time.",
        FailureMode.GARBAGE: "Standard output carries protocol lines only; log to standard error.",
        FailureMode.EOF: "An adapter stays until `bye` or end of file on its standard input.",
        FailureMode.BUDGET: "Each answer came in its time, all together did not; --slow FACTOR grants more time.",
        FailureMode.BUSY: "Run it while the machine is quieter, with fewer --jobs, or with more time (--slow FACTOR).",
        FailureMode.FAULT: "A fault is neither accepted nor refused. If the adapter gave up waiting, --slow FACTOR "
        "grants more time (HOLDFAST_SLOW).",
    }.get(mode, "")
    return Judgement(Verdict.NO_VERDICT, mode, detail, advice=advice)


def garbled(record: Record, problem: str) -> Judgement:
    """The judgement on an answer that is not valid."""
    due = "a well-formed answer, by the method's result schema and its list of reasons"
    return Judgement(Verdict.NO_VERDICT, FailureMode.GARBAGE, problem, due, shown(record), n=record.n)


def undeclared(answer: Mapping[str, Any], not_claimed: Mapping[str, str]) -> str | None:
    """Why an answer `unsupported` may not be given; None if it may, or is another answer."""
    if answer["outcome"] != "unsupported" or answer["capability"] in not_claimed:
        return None
    return f"{answer['capability']} is unsupported but not listed under not_claimed in hello"


def broken(method: Method, answer: Mapping[str, Any], not_claimed: Mapping[str, str]) -> str | None:
    """Why an answer breaks the method's own schemas or lists; None if it is well-formed."""
    outcome = answer["outcome"]
    operation = bool(method.effects)
    if outcome == "ok" and operation:
        return f"{method.name} is an operation and answers accepted or refused, not ok"
    if outcome in {"accepted", "indeterminate"} and not operation:
        return f"{method.name} is no operation and answers ok, not {outcome}"
    if outcome == "refused":
        if answer["reason"] not in method.reasons:
            listed = ", ".join(method.reasons) or "none"
            return f"{method.name} may not refuse with {answer['reason']}; its reasons: {listed}"
        if "data" in answer and method.refusal_data is not None:
            problem = explain(method.refusal_data, answer["data"])
            return None if problem is None else f"data does not fit the schema {problem}"
    if outcome == "unsupported":
        return undeclared(answer, not_claimed)
    if outcome in {"accepted", "ok"}:
        if outcome == "accepted" and answer["effect"] not in method.effects:
            return f"{method.name} cannot have effect {answer['effect']}"
        if method.result is not None:
            problem = explain(method.result, answer.get("value"))
            return None if problem is None else f"value does not fit the schema {problem}"
    return None
