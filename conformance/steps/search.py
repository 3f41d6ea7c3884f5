"""`search`: find the files below a folder of the workdir in which texts or bytes can be read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, PATH, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import folder_of, has_error, reading_of
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.tree import outside
from holdfast.vectors.jcs.canaries import spellings

_COUNT = {"type": "integer", "minimum": 0}


def _contradiction(value: Mapping[str, Any]) -> str | None:
    found = [(entry["path"], entry["which"]) for entry in value["found"]]
    if found != sorted(set(found)):
        return "what was found is not sorted, or not unique"
    if value["error"] is not None and (found or value["files"] or value["bytes"]):
        return "a search that came to nothing has found something"
    return None


def _difference(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    if any(entry["which"] >= len(operand["for"]) for entry in value["found"]):
        return outside(value["found"], operand) or "something was found that the case does not search for"
    return outside(value["found"], operand)


SEARCH = Report(
    name="search",
    do=lambda workdir, operand: store.search(workdir, operand["path"], operand["for"]),
    schema=value_form(
        error={"type": ["string", "null"]},
        files=_COUNT,
        bytes=_COUNT,
        found={"type": "array", "maxItems": 10000, "items": value_form(path=TEXT, which=_COUNT)},
    ),
    contradiction=_contradiction,
    difference=_difference,
    rows={"found": "state_leak"},
)


def searching(kind: str, reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    """The operand of a step of this kind. Raises CaseError."""
    path, wanted = folder_of(kind, step, reading), reading.state.scope.resolve(step["for"])
    return {"path": path, "for": wanted_of(wanted)}


def wanted_of(wanted: Any) -> list[Any]:
    """What is searched for: texts, or bytes as {bytes: base64url}. Raises CaseError."""
    if not wanted or not isinstance(wanted, list):
        raise CaseError(f"search: expected a list of what is searched for, got {wanted!r}")
    try:
        for canary in wanted:
            spellings(canary)
    except ValueError as error:
        raise CaseError(f"search: {error}") from error
    return wanted


STEP = Step(
    name="search",
    form=form({"search": PATH, "for": ANYTHING, **REPORTED}, ("search", "for")),
    read=reading_of(SEARCH, partial(searching, "search"), is_blind=has_error),
    report=SEARCH,
    facts={"reports": True},
)
