"""`copy`: copy a file or folder of the workdir over another place in it, or move it there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import PATH, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import path_of, reading_of
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.inspection import store
from holdfast.conformance.inspection.changing import apart
from holdfast.conformance.steps import Step


def _difference(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    return None if value["to"] == operand["to"] else "the copy lies elsewhere than the case has it"


COPY = Report(
    name="copy",
    do=lambda workdir, operand: store.copy(workdir, operand["path"], operand["to"], move=operand.get("move", False)),
    schema=value_form(
        to=TEXT,
        files={"description": "How many plain files were copied.", "type": "integer", "minimum": 0},
        size={"description": "Their bytes.", "type": "integer", "minimum": 0},
    ),
    difference=_difference,
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path, to = path_of("copy", step, reading), str(reading.state.scope.resolve(step["to"]))
    try:
        apart(path, to)
    except ValueError as error:
        raise CaseError(f"copy: {error}") from error
    reading.touches(to)
    if "move" in step:
        reading.touches(path)
    return {"path": path, "to": to, **({"move": True} if "move" in step else {})}


STEP = Step(
    name="copy",
    form=form({"copy": PATH, "to": PATH, "move": {"const": True}, **REPORTED}, ("copy", "to")),
    read=reading_of(COPY, _operand),
    report=COPY,
    facts={"reports": True},
)
