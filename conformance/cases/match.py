"""Matchers: the form that a value must have. Equality is equality as JSON, without coercion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.values import CaseError, Literal, at_path, is_missing
from holdfast.specs.pattern import found

_FORMS = frozenset({"$in", "$not", "$count", "$absent", "$any", "$matches", "$contains", "$all"})


def same(left: Any, right: Any) -> bool:
    """Equality as JSON: true is not 1, and 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def mismatch(matcher: Any, value: Any) -> str | None:
    """Why `value` does not fit, or None. `value` may be the missing marker of `at_path`."""
    if isinstance(matcher, Mapping) and not isinstance(matcher, Literal) and (forms := _FORMS & matcher.keys()):
        if len(matcher) != 1:
            raise CaseError(f"a matcher has one form, not {sorted(matcher)}")
        return _form(next(iter(forms)), next(iter(matcher.values())), value)
    if is_missing(value):
        return f"expected {matcher!r}, nothing is there"
    return None if same(matcher, value) else f"expected {matcher!r}, got {value!r}"


def mismatches(expected: Mapping[str, Any], value: Any, *, under: str) -> str | None:
    """The first path of `expected` (dotted path to matcher) that does not fit, as a sentence; None if all fit."""
    for path, matcher in expected.items():
        problem = mismatch(matcher, at_path(value, path))
        if problem is not None:
            return f"{under}.{path}: {problem}"
    return None


def _form(form: str, operand: Any, value: Any) -> str | None:
    if form == "$absent":
        if is_missing(value) is bool(operand):
            return None
        return f"expected nothing there, got {value!r}" if operand else "expected something there, nothing is"
    if form == "$not" and (not is_missing(value) or operand == {"$absent": True}):
        return f"expected anything but {operand!r}" if mismatch(operand, value) is None else None
    if is_missing(value):
        # A missing value does not meet "anything but": an absent value proves nothing.
        return f"expected {form} {operand!r}, nothing is there"
    if form == "$any":
        return None
    if form == "$in":
        return (
            None
            if any(mismatch(item, value) is None for item in operand)
            else f"expected one of {operand!r}, got {value!r}"
        )
    if form == "$matches":
        fits = isinstance(value, str) and found(operand, value)
        return None if fits else f"expected text like /{operand}/, got {value!r}"
    if not isinstance(value, list):
        return f"expected an array, got {value!r}"
    if form == "$count":
        return None if same(operand, len(value)) else f"expected {operand} elements, got {len(value)}"
    fitting = [item for item in value if mismatches(operand, item, under="") is None]
    if form == "$contains":
        return None if fitting else f"expected an element with {operand!r} among {len(value)}"
    return (
        None if value and len(fitting) == len(value) else f"expected all of {len(value)} elements to have {operand!r}"
    )
