"""Matchers: the form that a value must have. Equality is equality as JSON, without coercion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from holdfast.conformance.cases.values import CaseError, Literal, at_path, is_missing
from holdfast.conformance.verdict import Verdict, worst
from holdfast.specs import Method
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.schema import found
from holdfast.specs.strictjson import canonical, loads

_FORMS = frozenset({"$in", "$not", "$count", "$absent", "$any", "$matches", "$contains", "$all", "$rows"})


def same(left: Any, right: Any) -> bool:
    """Equality as JSON: true is not 1, and 1 is 1.0."""
    if type(left) is str:
        return bool(left == right)
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


def gravity(
    expected: Mapping[str, Any],
    value: Any,
    *,
    permits: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    rows: Mapping[str, str] = MappingProxyType({}),
    refusals: Sequence[str] = (),
) -> Verdict | None:
    """What a value that is not as expected means by what is declared of it, whatever the case is about.

    `expected` is as in `mismatches`; `permits`, `rows` and `refusals` are as in `Method`. FAIL_OPEN where a member
    permits and nothing that permits was due, and where a refusal is missing. Of a list of rows the declared verdict
    where it has one too many, LOST_DURABILITY where it lacks one. None for every other difference. A path may lead into
    a text that holds JSON.
    """
    found: list[Verdict | None] = []
    for path, grants in permits.items():
        got = _within(value, path)
        if any(same(got, grant) for grant in grants):
            due = [matcher for matcher in _due_at(expected, path) if mismatch(matcher, got) is not None]
            opened = any(all(mismatch(matcher, grant) is not None for grant in grants) for matcher in due)
            found.append(Verdict.FAIL_OPEN if opened else None)
    for path, surplus in (*rows.items(), *((path, None) for path in refusals)):
        inside = {path: [*_due_at(expected, path)]}
        inside |= {place: [matcher] for place, matcher in expected.items() if place.startswith(f"{path}.")}
        for place, matchers in inside.items():
            for matcher in matchers:
                more = Verdict.OVER_REFUSAL if surplus is None else Verdict(surplus)
                verdict = of_rows(matcher, _within(value, place), surplus=more)
                lacks = surplus is None and verdict is Verdict.LOST_DURABILITY
                found.append(Verdict.FAIL_OPEN if lacks else None if verdict is Verdict.OVER_REFUSAL else verdict)
    graver = [verdict for verdict in found if verdict is not None]
    return worst(graver) if graver else None


def declared(method: Method, expected: Mapping[str, Any], value: Any) -> Verdict | None:
    """The `gravity` of a value by what its method declares."""
    return gravity(expected, value, permits=method.permits, rows=method.rows, refusals=method.refusals)


def _due_at(expected: Mapping[str, Any], path: str) -> Iterator[Any]:
    """What is due at a path: a matcher of that place, or what a whole value that is due has there."""
    for place, matcher in expected.items():
        if place == path:
            yield matcher
        elif not place or path.startswith(f"{place}."):
            inner = _within(matcher, path[len(place) :].lstrip("."))
            yield from () if is_missing(inner) else (inner,)


def _within(value: Any, path: str) -> Any:
    """The same as `at_path`, and into a text that holds JSON."""
    for part in path.split(".") if path else ():
        try:
            value = at_path(loads(value) if isinstance(value, str) else value, part)
        except StrictJsonError:
            return at_path(None, part)
    return value


def of_rows(due: Any, got: Any, *, surplus: Verdict = Verdict.FAIL_OPEN, key: Sequence[str] = ()) -> Verdict | None:
    """What rows mean beside what is due: `surplus` for one too many, LOST_DURABILITY for a missing one.

    Rows are a list, a number of them, or numbers by name; `due` may be a matcher. None where they only differ in a
    value: where each has the same members `key` as one that is due, or without a key, where there are as many as due.
    """
    more = fewer = 0
    due = due.get("$rows", due) if isinstance(due, Mapping) else due
    have, want = _counted(got, key), _counted(due, key)
    if have is not None and want is not None:
        more, fewer = (have - want).total(), (want - have).total()
        paired = min(more, fewer) if isinstance(got, list) and not key else 0
        more, fewer = more - paired, fewer - paired
    elif isinstance(got, list) and isinstance(due, Mapping) and mismatch(due, got) is not None:
        form, operand = next(iter(due.items()))
        if form == "$count":
            more, fewer = len(got) - operand, operand - len(got)
        elif form == "$contains":
            fewer = 1
        elif form == "$not" and isinstance(operand, Mapping):
            more, fewer = int("$contains" in operand), int(operand == {"$count": 0})
    return surplus if more > 0 else Verdict.LOST_DURABILITY if fewer > 0 else None


def _counted(rows: Any, key: Sequence[str]) -> Counter[Any] | None:
    if isinstance(rows, int) and not isinstance(rows, bool):
        return Counter({"": rows})
    if isinstance(rows, list):
        return Counter(canonical({name: row.get(name) for name in key} if key else row) for row in rows)
    if isinstance(rows, Mapping) and rows and all(isinstance(number, int) for number in rows.values()):
        return Counter(rows)
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
    if form == "$rows":
        alike = sorted(map(canonical, operand)) == sorted(map(canonical, value))
        return None if alike else f"expected in any order {operand!r}, got {value!r}"
    fitting = [item for item in value if mismatches(operand, item, under="") is None]
    if form == "$contains":
        return None if fitting else f"expected an element with {operand!r} among {len(value)}"
    return (
        None if value and len(fitting) == len(value) else f"expected all of {len(value)} elements to have {operand!r}"
    )
