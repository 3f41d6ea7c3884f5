"""`link`: make a symbolic link at an empty place in the workdir."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import JUDGED, PATH, TEXT, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import path_of, reading_of
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.inspection import store
from holdfast.conformance.inspection.changing import target_of
from holdfast.conformance.steps import Step


def _difference(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    return None if value["to"] == operand["to"] else "the link leads elsewhere than the case has it"


LINK = Report(
    name="link",
    do=lambda workdir, operand: store.link(workdir, operand["path"], operand["to"]),
    schema=value_form(to=TEXT),
    difference=_difference,
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path = path_of("link", step, reading)
    try:
        target = target_of(path, str(reading.state.scope.resolve(step["to"])))
    except ValueError as error:
        raise CaseError(f"link: {error}") from error
    reading.touches(path)
    return {"path": path, "to": target}


STEP = Step(
    name="link",
    form=form({"link": PATH, "to": PATH, **JUDGED}, ("link", "to")),
    read=reading_of(LINK, _operand),
    report=LINK,
)
