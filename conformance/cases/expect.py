"""Compares an answer with an expectation. Pure: the same answer always gives the same judgement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.conformance.cases.failure import failure_of, has_died, shown
from holdfast.conformance.cases.match import declared, mismatches
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import Verdict, worst
from holdfast.specs.leaves import leaves
from holdfast.specs.model import CaseKind, Method, Reason

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
    order = list(Verdict)
    best = max(judged, key=lambda item: order.index(item.verdict))
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
