"""The kinds of steps of a case: one file for each kind, found by its place in this folder.

A file `steps/<kind>.py` declares one `STEP`, with everything about the kind: its form in `cases.schema.json`, its acts
on a live session, how its record is read back, and how it is judged.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.cases.values import CaseError


def _never(step: Mapping[str, Any]) -> bool:
    del step
    return False


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
    read: Callable[[CaseInterpreter, Mapping[str, Any], str], SessionScript[None]]
    report: Report | None = None
    observes_around: Callable[[Mapping[str, Any]], bool] = _never
    facts: Mapping[str, Any] = field(default_factory=dict)


@cache
def kinds() -> Mapping[str, Step]:
    """Every kind of step by its name, in alphabetical order."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))
    steps = [importlib.import_module(f"{__name__}.{name}").STEP for name in names]
    return {step.name: step for step in steps}


def kind_of(step: Mapping[str, Any]) -> Step:
    """The kind of a step as a case has it. Raises CaseError."""
    named = kinds().keys() & step.keys()
    if len(named) != 1:
        raise CaseError(f"expected a step of one kind, got {sorted(step)}")
    return kinds()[named.pop()]
