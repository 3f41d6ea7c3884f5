"""`remains`: what lies below a folder of the workdir, who may read it, and which texts or bytes can be read there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, PATH, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import has_error, reading_of
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.search import searching
from holdfast.conformance.steps.tree import outside


def _contradiction(value: Mapping[str, Any]) -> str | None:
    paths = [entry["path"] for entry in value["files"]]
    if paths != sorted(set(paths)):
        return "its paths are not sorted, or not unique"
    if any(entry["which"] != sorted(set(entry["which"])) for entry in value["files"]):
        return "what was found is not sorted, or not unique"
    return "a folder that could not be read has files" if paths and value["error"] is not None else None


def _difference(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    if any(which >= len(operand["for"]) for entry in value["files"] for which in entry["which"]):
        return "something was found that the case does not search for"
    return outside(value["files"], operand)


REMAINS = Report(
    name="remains",
    do=lambda workdir, operand: store.remains(workdir, operand["path"], operand["for"]),
    schema=value_form(
        error={"type": ["string", "null"]},
        files={
            "type": "array",
            "maxItems": 10000,
            "items": value_form(
                path=TEXT,
                mode={"type": "string", "pattern": "^[0-7]{4}$"},
                open={"type": "boolean"},
                which={"type": "array", "items": {"type": "integer", "minimum": 0}},
            ),
        },
    ),
    contradiction=_contradiction,
    difference=_difference,
)


STEP = Step(
    name="remains",
    form=form({"remains": PATH, "for": ANYTHING, **REPORTED}, ("remains", "for")),
    read=reading_of(REMAINS, partial(searching, "remains"), is_blind=has_error),
    report=REMAINS,
    facts={"reports": True},
)
