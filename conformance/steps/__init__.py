"""The kinds of steps of a case, found by their place: every `Step` of a file in this folder.

The file has everything about the kind: its form in `cases.schema.json`, its acts on a live session, how its record is
read back, and how it is judged.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Blind, Operand, Report, reading_of
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.cases.values import CaseError

Read = Callable[[CaseInterpreter, Mapping[str, Any], str], SessionScript[None]]


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of step.

    `form` is the schema of such a step (`cases/forms.py`). `read` asks for its actions, takes their records and raises
    a NonConformance where they are not as they must be; its text is the note of its actions. `report` is the act of a
    kind that reports what the harness observes or does. `observes_around` says whether the state is observed before and
    after such a step. `facts` are for the check of a contract's names (`holdfast.specs.consistency`).
    """

    name: str
    form: Mapping[str, Any]
    read: Read
    report: Report | None = None
    observes_around: Callable[[Mapping[str, Any]], bool] = lambda _: False
    facts: Mapping[str, Any] = field(default_factory=dict)


def kind(
    form: Mapping[str, Any],
    *,
    report: Report | None = None,
    observes_around: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    **facts: Any,
) -> Callable[[Read], Step]:
    """The kind of step that a function reads, under its name."""
    return lambda read: Step(read.__name__, form, read, report, observes_around, facts)


def reported(
    report: Report, form: Mapping[str, Any], operand: Operand, *, is_blind: Blind = None, **facts: Any
) -> Step:
    """The kind of step whose report is compared with its expectation, under the name of the report."""
    return Step(report.name, form, reading_of(report, operand, is_blind=is_blind), report, facts=facts)


@cache
def kinds() -> Mapping[str, Step]:
    """Every kind of step by its name, in alphabetical order. Raises CaseError where two have one name."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found: dict[str, Step] = {}
    for each in (each for module in modules for each in vars(module).values() if isinstance(each, Step)):
        if found.setdefault(each.name, each) is not each:
            raise CaseError(f"expected one kind of step called {each.name}, got two in conformance/steps")
    return dict(sorted(found.items()))


def kind_of(step: Mapping[str, Any]) -> Step:
    """The kind of a step as a case has it. Raises CaseError."""
    named = kinds().keys() & step.keys()
    if len(named) != 1:
        raise CaseError(f"expected a step of one kind, got {sorted(step)}")
    return kinds()[named.pop()]
