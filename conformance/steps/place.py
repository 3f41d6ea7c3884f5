"""`place`: write a file with given bytes into the workdir."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, JUDGED, PATH, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import path_of, reading_of
from holdfast.conformance.cases.values import CaseError, decoded
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step


def _difference(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    placed = hashlib.sha256(decoded(operand["content"])).hexdigest()
    return None if value["sha256"] == placed else "other bytes were placed than the case has"


PLACE = Report(
    name="place",
    do=lambda workdir, operand: store.place(workdir, operand["path"], decoded(operand["content"])),
    schema=value_form(size={"type": "integer", "minimum": 0}, sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    difference=_difference,
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path, content = path_of("place", step, reading), reading.state.scope.resolve(step["content"])
    try:
        decoded(content)
    except ValueError as error:
        raise CaseError(f"place: {error}") from error
    reading.touches(path)
    return {"path": path, "content": content}


STEP = Step(
    name="place",
    form=form({"place": PATH, "content": ANYTHING, **JUDGED}, ("place", "content")),
    read=reading_of(PLACE, _operand),
    report=PLACE,
)
