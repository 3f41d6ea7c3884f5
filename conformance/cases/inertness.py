"""Judges what was observed around a call: a refusal changes nothing, an accepted twin changes something. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from holdfast.conformance.cases.match import same
from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract, Method
from holdfast.specs.strictjson import canonical

Seen = Mapping[str, Any]
_SHOWN = 4
# The member of an observation with the rows of the store, if the harness inspected the store itself.
STORE = "the store"
# The member with the files of the contract's folder.
TREE = "the files"
# In place of the value of an observation that was answered with `fault` where nothing may be readable.
NOTHING_SHOWN: Mapping[str, Any] = {"shown": "nothing"}


def shows_nothing(seen: Seen) -> bool:
    """Whether one of the observations was answered with `fault` at a moment when nothing may be readable."""
    return NOTHING_SHOWN in seen.values()


def judge_inert(
    contract: Contract,
    method: Method,
    reasons: Sequence[str],
    before: Seen,
    after: Seen | None,
    *,
    at: Mapping[str, int] = MappingProxyType({}),
) -> Judgement | None:
    """None if refusals with these reasons left the state as it was, and the audit grew by what the reasons declare.

    `at` says of each thing that was observed which record shows it afterwards. Where the observation showed nothing,
    it must show nothing again: a store that was gone and is there was made anew.
    """
    inertness = contract.inertness_of(method)
    reason = ", ".join(dict.fromkeys(reasons))
    assert inertness is not None
    assert after is not None
    state = inertness.observe or STORE
    if after[state] == NOTHING_SHOWN != before[state]:
        detail = f"refused with {reason}, and {state} shows nothing any more: whether that is inert is open"
        return Judgement(Verdict.NOT_REACHED, None, detail, "what it showed before", "fault", n=at.get(state))
    if canonical(before[state]) != canonical(after[state]):
        detail = f"refused with {reason}, yet the state changed: {_difference(before, after, state)}"
        return _leak(detail, "the same rows as before the refusal", at.get(state))
    if inertness.tree is not None and canonical(before[TREE]) != canonical(after[TREE]):
        detail = f"refused with {reason}, yet {inertness.tree} holds other files: {_moved(before[TREE], after[TREE])}"
        return _leak(detail, "the same files as before the refusal", at.get(TREE))
    if inertness.audit is None or inertness.audit_list is None:
        return None
    if NOTHING_SHOWN in (before[inertness.audit], after[inertness.audit]):
        return None
    old = before[inertness.audit][inertness.audit_list]
    new = after[inertness.audit][inertness.audit_list]
    audited = [each for each in reasons for _ in range(contract.reasons[each].audit_records)] if method.audited else []
    due = len(audited)
    if canonical(new[: len(old)]) != canonical(old) or len(new) - len(old) != due:
        detail = f"refused with {reason}: the audit must grow by {due}, it went from {len(old)} to {len(new)} records"
        return _leak(detail, f"{due} more, the others unchanged", at.get(inertness.audit))
    if inertness.audit_code is not None:
        codes = [record.get(inertness.audit_code) for record in new[len(old) :]]
        if codes != audited:
            detail = f"refused with {reason}, and the audit says {', '.join(map(str, codes))}"
            return _leak(detail, f"records with the code {reason}", at.get(inertness.audit))
    return None


def judge_changed(
    contract: Contract, method: Method, before: Seen, after: Seen | None, *, at: Mapping[str, int]
) -> Judgement | None:
    """None if the observation shows that the accepted twin changed the state; else it is blind and proves nothing."""
    inertness = contract.inertness_of(method)
    assert inertness is not None
    assert after is not None
    state = inertness.observe or STORE
    if canonical(before[state]) != canonical(after[state]):
        return None
    detail = f"{state} did not change although the twin was accepted with a new effect"
    return Judgement(
        Verdict.NOT_REACHED,
        None,
        f"{detail}; the observation is blind",
        "a change",
        "none",
        "Let the observation show every stored row of the contract's relations."
        if inertness.observe
        else "Keep the contract's relations in the database that the contract names, and commit before the answer.",
        n=at.get(state),
    )


def _leak(detail: str, expected: str, n: int | None) -> Judgement:
    return Judgement(Verdict.STATE_LEAK, None, detail, expected, detail, n=n)


def _moved(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> str:
    """The first paths that are new, gone, or of another size or kind."""
    old, new = ({entry["path"]: entry for entry in entries} for entries in (before, after))
    changed = [path for path in sorted({*old, *new}) if not same(old.get(path), new.get(path))]
    return ", ".join(changed[:_SHOWN]) + (f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    old, new = before[name], after[name]
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return "it is another value"
    changed = [key for key in sorted({*old, *new}) if not same(old.get(key), new.get(key))]
    counts = [
        f"{key} {len(old[key])} -> {len(new[key])} rows"
        for key in changed
        if isinstance(old.get(key), list) and isinstance(new.get(key), list)
    ]
    return "; ".join(counts) or ", ".join(changed)
