"""Compares an answer with an expectation. Pure: the same answer always gives the same judgement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.conformance.cases.match import declared, mismatches
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import FailureMode, Verdict, worst
from holdfast.reports.plain import cut
from holdfast.specs.leaves import leaves
from holdfast.specs.model import CaseKind, Method, Reason
from holdfast.specs.schema import explain

ACCEPTED: Mapping[str, Any] = {"outcome": "accepted"}
OK: Mapping[str, Any] = {"outcome": "ok"}

_WRONG_VALUE = {
    CaseKind.REFUSAL: Verdict.FAIL_OPEN,
    CaseKind.RACE: Verdict.FAIL_OPEN,
    CaseKind.DURABILITY: Verdict.LOST_DURABILITY,
    CaseKind.BEHAVIOUR: Verdict.WRONG_REASON,
}


def wrong_value(kind: CaseKind, step: Mapping[str, Any], graver: Verdict | None = None) -> Verdict:
    """The verdict on a mismatch of values in this step, where `gravity` says `graver`.

    A missing row means what the step says itself, if it does: it may never have been written.
    """
    if "else" in step and graver is Verdict.LOST_DURABILITY:
        graver = None
    return worst(filter(None, (graver, Verdict(step["else"]) if "else" in step else _WRONG_VALUE[kind])))


def alternatives(expect: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The alternatives: an answer has to meet one of them."""
    return tuple(expect["any"]) if "any" in expect else (expect,)


def is_effect_as_due(record: Record, expect: Mapping[str, Any]) -> bool:
    """Whether an answer that is not as expected leaves the state as an expected one would: then the case can go on."""
    answer = record.answer or {}
    outcome, effect, options = answer.get("outcome"), answer.get("effect"), alternatives(expect)
    if any(option.get("outcome") == outcome and option.get("effect") in (None, effect) for option in options):
        return True
    # A refused retry changes nothing, as the prior result would not have.
    return outcome == "refused" and all(option.get("effect") == "prior" for option in options)


def expects_refusal(expect: Mapping[str, Any]) -> bool:
    """Whether a refusal is among the expected ones."""
    return any(option.get("outcome") == "refused" for option in alternatives(expect))


def describe(expect: Mapping[str, Any]) -> str:
    """A text that describes an expectation."""
    return " or ".join(_describe_one(option) for option in alternatives(expect))


def _describe_one(option: Mapping[str, Any]) -> str:
    words = [option.get("outcome", "any outcome")]
    if "effect" in option:
        words.append(f"effect {option['effect']}")
    if "reason" in option:
        reasons = option["reason"] if isinstance(option["reason"], list) else [option["reason"]]
        words.append(" or ".join(reasons))
    words += [f"{part} {dict(option[part])!r}" for part in ("value", "data") if part in option]
    return ", ".join(words)


def judge_answer(
    record: Record,
    expect: Mapping[str, Any],
    scope: Scope,
    *,
    step: Mapping[str, Any],
    kind: CaseKind,
    method: Method | None = None,
) -> Judgement | None:
    """None if the answer meets the expectation; otherwise the mildest judgement among the alternatives.

    `method` is the called one: it declares which wrong values are graver than the case says (`gravity`).
    """
    expect = scope.resolve(expect)
    options = alternatives(expect)
    if has_died(record) and any(option.get("outcome") == "died" for option in options):
        return None
    failure = failure_of(record)
    if failure is not None:
        return replace(failure, expected=describe(expect))
    found = [_judge_one(record, option, partial(_graver, kind, step, method)) for option in options]
    if any(item is None for item in found):
        return None
    judged = [item for item in found if item is not None]
    # Verdict is ordered from worst to best: the answer is compared with the alternative that is closest to it.
    best = max(judged, key=lambda item: item.verdict.rank)
    return replace(best, expected=describe(expect), received=shown(record), n=record.n)


def judge_field(record: Record, method: Method, reasons: Mapping[str, Reason], cause: str | None) -> Judgement | None:
    """None unless a refusal names a wrong field (docs/adapter-protocol.md). `cause` is the argument that is wrong.

    Only reasons of the contract that carry `field` are judged. Without `cause` every argument of the method will do.
    """
    answer = record.answer or {}
    reason, data = reasons.get(str(answer.get("reason"))), answer.get("data")
    if answer.get("outcome") != "refused" or reason is None or "field" not in reason.data:
        return None
    field = data.get("field") if isinstance(data, Mapping) else None
    if not isinstance(field, str):
        return None
    known = [cause] if cause is not None else sorted({place.path.split(".")[0] for place in leaves(method.args.schema)})
    # `/meta`, `$.meta` and `meta.key` name `meta` too.
    if re.split(r"[./\[]", field.lstrip("$./"))[0] in known:
        return None
    detail = f"refused with {reason.name} because of field {field!r}"
    return Judgement(Verdict.WRONG_REASON, None, detail, f"field {' or '.join(known)}", shown(record), n=record.n)


def _graver(
    kind: CaseKind, step: Mapping[str, Any], method: Method | None, expected: Mapping[str, Any], value: Any
) -> Verdict:
    graver = None if method is None else declared(method, expected, value)
    return wrong_value(kind, step, graver)


def _judge_one(record: Record, option: Mapping[str, Any], wrong: Callable[..., Verdict]) -> Judgement | None:
    wanted = option.get("outcome")
    if wanted == "died":
        return Judgement(Verdict.NOT_REACHED, detail="the worker was to die here and answered")
    answer = record.answer
    assert answer is not None
    outcome = answer["outcome"]
    if outcome != wanted:
        return _wrong_outcome(str(wanted), answer, wrong({}, None))
    if "effect" in option and answer["effect"] != option["effect"]:
        if option["effect"] == "prior":
            return Judgement(Verdict.FAIL_OPEN, detail="a second effect where the durable prior result is due")
        return Judgement(Verdict.OVER_REFUSAL, detail="an earlier result instead of the effect that was due")
    if "reason" in option:
        allowed = option["reason"] if isinstance(option["reason"], list) else [option["reason"]]
        if answer["reason"] not in allowed:
            return Judgement(Verdict.WRONG_REASON, detail=f"refused with {answer['reason']}")
    for part in ("value", "data"):
        if part in option:
            problem = mismatches(option[part], answer.get(part), under=part)
            if problem is not None:
                return Judgement(wrong(option[part], answer.get(part)), detail=problem)
    return None


def _wrong_outcome(wanted: str, answer: Mapping[str, Any], wrong: Verdict) -> Judgement:
    outcome = answer["outcome"]
    detail = str(answer.get("detail", ""))
    if outcome == "indeterminate":
        return Judgement(Verdict.INDETERMINATE, detail=detail or "the implementation does not know what happened")
    if outcome == "refused":
        reason = answer["reason"]
        verdict = wrong if wanted == "indeterminate" else Verdict.OVER_REFUSAL
        return Judgement(verdict, detail=f"refused with {reason} where {wanted} is due")
    if wanted == "refused":
        return Judgement(Verdict.FAIL_OPEN, detail="accepted where it must be refused")
    return Judgement(wrong, detail=f"answered {outcome} where {wanted} is due")


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
