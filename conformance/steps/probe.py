"""`probe`: put rows into a copy of the contract's store, to learn which rows its constraints refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import REPORTED, TEXT, form, one_of
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import reading_of, text_of
from holdfast.conformance.cases.rows import ROW, TRIED, came_to_nothing, contradiction, rows_of, store_path
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step

PROBE = Report(
    name="probe",
    do=lambda workdir, operand: store.probe(
        workdir,
        operand["path"],
        operand["table"],
        operand["rows"],
        or_replace=operand["or_replace"],
        change=operand.get("change"),
    ),
    schema=TRIED,
    contradiction=contradiction,
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    table, rows = text_of("probe", step, reading), rows_of("probe", step, reading.state.scope)
    path = store_path(reading.contract)
    return {"path": path, "table": table, "rows": rows, "or_replace": step.get("or_replace", False)}


STEP = Step(
    name="probe",
    form=form(
        {
            "probe": TEXT,
            "row": ROW,
            "rows": {"type": "array", "items": ROW, "minItems": 1, "maxItems": 100},
            "or_replace": {"const": True},
            **REPORTED,
        },
        ("probe", "expect"),
        oneOf=one_of("row", "rows"),
    ),
    read=reading_of(PROBE, _operand, is_blind=came_to_nothing),
    report=PROBE,
    facts={"store": True, "reports": True},
)
