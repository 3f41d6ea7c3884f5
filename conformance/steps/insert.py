"""`insert`: put a row into the contract's store directly, without the implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import REPORTED, TEXT, form
from holdfast.conformance.cases.reading import CaseInterpreter, raise_if_failed
from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import judge_value, report_of, text_of
from holdfast.conformance.cases.rows import ROW, TRIED, came_to_nothing, contradiction, rows_of, store_path
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step
from holdfast.conformance.verdict import Verdict

_INSERTED: Mapping[str, Any] = {"inserted": True}

INSERT = Report(
    name="insert",
    do=lambda workdir, operand: store.insert(workdir, operand["path"], operand["table"], operand["rows"]),
    schema=TRIED,
    contradiction=contradiction,
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    table, rows = text_of("insert", step, reading), rows_of("insert", step, reading.state.scope)
    return {"path": store_path(reading.contract), "table": table, "rows": rows}


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    record, value = yield from report_of(INSERT, _operand(reading, step), note)
    # A twin that puts in another row is there to show that the store accepts that one.
    if step.get("unstorable") == "ends" and value["inserted"] is False and not reading.is_twin_change(step):
        reading.state.ended = f"{note}: a constraint of the store refuses the row: {value['error']}"
        return
    raise_if_failed(_judged(reading, step, value))
    reading.bind(step, record, {"value": value})


def _judged(reading: CaseInterpreter, step: Mapping[str, Any], value: Mapping[str, Any]) -> Judgement | None:
    judgement = judge_value(reading, INSERT, step, value, is_blind=came_to_nothing, otherwise=_INSERTED)
    if judgement is None or came_to_nothing(value) or "expect" in step:
        return judgement
    detail = f"the store refused the row that the case needs: {value['error']}"
    return Judgement(Verdict.NOT_REACHED, None, detail, judgement.expected, judgement.received)


STEP = Step(
    name="insert",
    form=form({"insert": TEXT, "row": ROW, "unstorable": {"const": "ends"}, **REPORTED}, ("insert", "row")),
    read=_read,
    report=INSERT,
    facts={"store": True, "reports": True},
)
