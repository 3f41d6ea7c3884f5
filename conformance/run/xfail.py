"""Expected failures: `xfail.toml` lists known failures, their owners and the day until which they are excused.

    [[expected]]
    id = "acme-store/key-1/a-key-is-taken-once"
    verdict = "wrong_reason"
    reason = "NONCE_UNBOUND"        # optional
    owner = "registrar team"
    issue = "https://example.org/issues/17"
    expires = 2026-03-31            # the last day

An entry is a problem of its own if it is no longer true (its case passes, fails otherwise, is not in the plan), if its
day is past, or if its day is more than 90 days away. A list of excuses that is never pruned hides the next failure.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import convert

from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.specs import schema
from holdfast.specs.files import read_regular
from holdfast.specs.typed import InvalidError

_ADVICE = "see specs/schemas/xfail.schema.json"
# A list of excuses that is kept by hand is a few kilobytes.
_LONGEST = 1024 * 1024
# A quarter of a year: after that time an unsolved failure is decided again.
MOST_DAYS = timedelta(days=90)


class XfailError(Exception):
    """An expected-failures file is missing, malformed or contradicts itself: the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected failure; `expires` is the last day on which it is excused."""

    id: str
    verdict: Verdict
    reason: str | None
    owner: str
    issue: str
    expires: date


@dataclass(frozen=True, slots=True)
class Applied:
    """Expectations against results: excused cases with their entries, and what to change of the other entries."""

    excused: Mapping[str, Expectation]
    problems: tuple[str, ...]

    @property
    def exit(self) -> Exit:
        """EXPECTATION if any entry is no longer true."""
        return Exit.EXPECTATION if self.problems else Exit.OK

    @property
    def listed(self) -> tuple[Expectation, ...]:
        """The excused cases, the gravest first; they stay at the top of every report."""
        return tuple(sorted(self.excused.values(), key=lambda entry: entry.verdict.rank))


def read_xfail(path: Path) -> tuple[Expectation, ...]:
    """Read an `xfail.toml`. Raises XfailError."""
    if path.exists() and not path.is_file():
        # A pipe would make the reader wait, and a device may have no end.
        raise XfailError(f"{path}: expected a plain file of expected failures, got something else; check --xfail")
    try:
        raw = tomllib.loads(read_regular(path, limit=_LONGEST).decode("utf-8"))
    except OSError as error:
        raise XfailError(
            f"{path}: expected a file of expected failures, got: {error.strerror}; check --xfail"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise XfailError(f"{path}: expected TOML, got: {error}") from error
    data = _with_dates_as_text(raw)
    problem = schema.explain(schema.published_validator("xfail"), data)
    if problem is not None:
        raise XfailError(f"{path}: does not fit xfail.schema.json: {problem}; {_ADVICE}")
    expectations = tuple(_expectation(entry, path) for entry in data["expected"])
    twice = [case for case, count in Counter(entry.id for entry in expectations).items() if count > 1]
    if twice:
        raise XfailError(f"{path}: expected one entry for each case, got several for {', '.join(twice)}; keep one")
    return expectations


def _with_dates_as_text(value: Any) -> Any:
    # A datetime is a date too; as text it has a time and so does not fit.
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _with_dates_as_text(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_dates_as_text(part) for part in value]
    return value


def _expectation(entry: Mapping[str, Any], path: Path) -> Expectation:
    try:
        return convert({"reason": None, **entry}, Expectation)
    except InvalidError as error:
        # The schema says all but this.
        raise XfailError(f"{path}: {entry['id']}: expected a day that exists, got {entry['expires']}") from error


def excuse_of(expectations: Iterable[Expectation], result: CaseResult, today: date) -> str | None:
    """The issue that excuses `result` in a run of the day `today`, in UTC."""
    last = today + MOST_DAYS
    return next((e.issue for e in expectations if _matches(e, result) and today <= e.expires <= last), None)


def apply(
    expectations: Sequence[Expectation],
    results: Iterable[CaseResult],
    today: date,
    *,
    not_run: Collection[str] = (),
) -> Applied:
    """Compare `expectations` with `results`. `today` is in UTC.

    Cases in `not_run` are in the plan, but the user left them out. Of their entries only the day is judged.
    """
    by_case = {result.case: result for result in results}
    excused: dict[str, Expectation] = {}
    problems: list[str] = []
    for entry in expectations:
        problem = _problem(entry, by_case.get(entry.id), today, left_out=entry.id in not_run)
        if problem is not None:
            problems.append(f"{entry.id}: {problem}")
        elif entry.id in by_case:
            excused[entry.id] = entry
    return Applied(excused, tuple(problems))


def _matches(entry: Expectation, result: CaseResult) -> bool:
    """Whether the result is the expected failure, on any day."""
    judged = result.judgement
    if (entry.id, entry.verdict) != (result.case, judged.verdict):
        return False
    # Whole words: NONCE_CONSUMED must not be found in REPLAY_NONCE_CONSUMED.
    words = rf"(?<!\w){re.escape(entry.reason or '')}(?!\w)"
    return entry.reason is None or any(re.search(words, text) for text in (judged.detail, judged.received))


def _problem(entry: Expectation, result: CaseResult | None, today: date, *, left_out: bool) -> str | None:
    if result is None and not left_out:
        return "no case of this run has this id; correct or remove the entry"
    if result is not None and result.judgement.verdict is Verdict.CONFORMS:
        return f"expected {entry.verdict.value}, but it conforms; remove the entry"
    if result is not None and not _matches(entry, result):
        wanted = entry.verdict.value + (f" with {entry.reason!r}" if entry.reason else "")
        came = " ".join(result.judgement.detail.split())[:160]
        return f"expected {wanted}, got {result.judgement.verdict.value}: {came}; it fails otherwise than was excused"
    if today > entry.expires:
        return f"excused until {entry.expires}, today is {today}; {entry.owner} mends it ({entry.issue}) or extends it"
    if entry.expires > today + MOST_DAYS:
        return f"excused until {entry.expires}; name a day within {MOST_DAYS.days} days, at most {today + MOST_DAYS}"
    return None
