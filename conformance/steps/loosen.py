"""`loosen`: rebuild SQLite databases without their constraints, as a tool does that copies rows alone."""

from __future__ import annotations

from holdfast.conformance.cases.forms import PATH, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import folder_of, has_error, reading_of
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step

LOOSEN = Report(
    name="loosen",
    do=lambda workdir, operand: store.loosen(workdir, operand["path"], holding=operand.get("holding", "")),
    schema=value_form(
        error={"type": ["string", "null"]},
        databases={
            "description": "Each database, with the tables that lost constraints; `error` says why none did.",
            "type": "array",
            "items": value_form(
                path=TEXT,
                tables={"type": "array", "items": TEXT},
                error={"type": ["string", "null"]},
            ),
        },
    ),
)

STEP = Step(
    name="loosen",
    form=form({"loosen": PATH, **REPORTED}, ("loosen",)),
    read=reading_of(LOOSEN, lambda reading, step: {"path": folder_of("loosen", step, reading)}, is_blind=has_error),
    report=LOOSEN,
    facts={"reports": True},
)
