"""What an answer means against an expectation. Pure: the same answer always gives the same judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases.match import mismatches
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import Silence, Verdict
from holdfast.specs import Method
from holdfast.specs.model import Kind
from holdfast.specs.schema import explain

ACCEPTED: Mapping[str, Any] = {"outcome": "accepted"}
OK: Mapping[str, Any] = {"outcome": "ok"}

_WRONG_VALUE = {
    Kind.REFUSAL: Verdict.FAIL_OPEN,
    Kind.RACE: Verdict.FAIL_OPEN,
    Kind.DURABILITY: Verdict.LOST_DURABILITY,
    Kind.BEHAVIOUR: Verdict.WRONG_REASON,
}
_SILENCES = {silence.value: silence for silence in Silence}


def wrong_value(kind: Kind, step: Mapping[str, Any]) -> Verdict:
    """What a mismatch of values means in this step."""
    return Verdict(step["else"]) if "else" in step else _WRONG_VALUE[kind]


def alternatives(expect: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The expectations any of which will do."""
    return tuple(expect["any"]) if "any" in expect else (expect,)


def expects_refusal(expect: Mapping[str, Any]) -> bool:
    """Whether a refusal is among what is expected."""
    return any(option.get("outcome") == "refused" for option in alternatives(expect))


def describe(expect: Mapping[str, Any]) -> str:
    """An expectation in words."""
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


def shown(record: Record) -> str:
    """What came back, in words."""
    if record.answer is None:
        event = record.event or {"kind": "missing", "detail": "no record"}
        return f"no answer ({event['kind']}: {event['detail']})"
    answer = record.answer
    words = [str(answer.get("outcome"))]
    words += [str(answer[key]) for key in ("effect", "reason", "capability") if key in answer]
    words += [f"{key} {answer[key]!r}" for key in ("value", "data") if key in answer]
    text = ", ".join(words)
    return text if len(text) <= 600 else text[:600] + "…"


def silence_of(record: Record) -> Judgement | None:
    """The judgement when no answer came; None when one did."""
    if record.answer is not None:
        return None
    event = record.event or {"kind": "missing", "detail": "no record of an answer"}
    return replace(silent(_SILENCES.get(str(event["kind"]), Silence.MISSING), str(event["detail"])), n=record.n)


def silent(mode: Silence, detail: str) -> Judgement:
    """NO_VERDICT with this failure mode, and what to do about it."""
    advice = {
        Silence.CRASH: "The adapter's standard error is in the evidence; run it by hand with `holdfast doctor`.",
        Silence.HANG: "An adapter answers every request, with `fault` if need be; --slow FACTOR grants more time.",
        Silence.GARBAGE: "Standard output carries protocol lines only; log to standard error.",
        Silence.EOF: "An adapter stays until `bye` or end of file on its standard input.",
        Silence.MISSING: "Run the case again; without a record nothing is proven.",
        Silence.BUDGET: "Each answer came in its time, all together did not; --slow FACTOR grants more time.",
        Silence.BUSY: "Run it while the machine is quieter, with fewer --jobs, or with more time (--slow FACTOR).",
        Silence.FAULT: "A fault is neither accepted nor refused; what the adapter wrote to standard error is in the "
        "evidence.",
    }[mode]
    return Judgement(Verdict.NO_VERDICT, mode, detail, advice=advice)


def garbled(record: Record, problem: str) -> Judgement:
    """The judgement on an answer that came and is no valid one."""
    advice = "Compare the answer with the method's result schema and its list of reasons."
    return Judgement(
        Verdict.NO_VERDICT, Silence.GARBAGE, problem, "a well-formed answer", shown(record), advice, n=record.n
    )


def faulted(answer: Mapping[str, Any]) -> Judgement | None:
    """The judgement where an adapter says itself that it failed; None for any other answer."""
    if answer["outcome"] != "fault":
        return None
    detail = f"the adapter answered `fault`, it says that it failed itself: {answer.get('detail', '')}"
    return silent(Silence.FAULT, detail)


def undeclared(answer: Mapping[str, Any], not_claimed: Mapping[str, str]) -> str | None:
    """Why an answer `unsupported` may not be given; None if it may, or is another answer."""
    if answer["outcome"] != "unsupported" or answer["capability"] in not_claimed:
        return None
    return f"{answer['capability']} is unsupported but not listed under not_claimed in hello"


def broken_answer(method: Method, answer: Mapping[str, Any], not_claimed: Mapping[str, str]) -> str | None:
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


def judge_answer(
    record: Record, expect: Mapping[str, Any], scope: Scope, *, step: Mapping[str, Any], kind: Kind
) -> Judgement | None:
    """None if the answer is as expected; otherwise the judgement, the mildest among the alternatives."""
    expect = scope.resolve(expect)
    verdict_of_value = wrong_value(kind, step)
    found = [_judge_one(record, option, verdict_of_value) for option in alternatives(expect)]
    if any(item is None for item in found):
        return None
    judged = [item for item in found if item is not None]
    # Verdict is ordered from worst to best: an answer is measured against the alternative it comes closest to.
    order = list(Verdict)
    best = max(judged, key=lambda item: order.index(item.verdict))
    return replace(best, expected=describe(expect), received=shown(record), n=record.n)


def _judge_one(record: Record, option: Mapping[str, Any], wrong: Verdict) -> Judgement | None:
    wanted = option.get("outcome")
    if wanted == "died":
        if record.answer is None and record.event is not None and record.event["kind"] in {"crash", "eof"}:
            return None
        return silence_of(record) or Judgement(Verdict.NOT_REACHED, detail="the worker was to die here and answered")
    silent = silence_of(record)
    if silent is not None:
        return silent
    answer = record.answer
    assert answer is not None
    outcome = answer["outcome"]
    if outcome != wanted:
        return _wrong_outcome(str(wanted), answer, wrong)
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
                return Judgement(wrong, detail=problem)
    return None


def _wrong_outcome(wanted: str, answer: Mapping[str, Any], wrong: Verdict) -> Judgement:
    outcome = answer["outcome"]
    detail = str(answer.get("detail", ""))
    failed = faulted(answer)
    if failed is not None:
        return failed
    if outcome == "unsupported":
        return Judgement(Verdict.UNSUPPORTED, detail=f"the adapter does not support {answer['capability']}")
    if outcome == "indeterminate":
        return Judgement(Verdict.INDETERMINATE, detail=detail or "the implementation does not know what happened")
    if outcome == "refused":
        reason = answer["reason"]
        verdict = wrong if wanted == "indeterminate" else Verdict.OVER_REFUSAL
        return Judgement(verdict, detail=f"refused with {reason} where {wanted} is due")
    if wanted == "refused":
        return Judgement(Verdict.FAIL_OPEN, detail="accepted where it must be refused")
    return Judgement(wrong, detail=f"answered {outcome} where {wanted} is due")
