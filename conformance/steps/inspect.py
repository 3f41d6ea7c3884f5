"""`inspect`: read the contract's store; the harness itself reads it from a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter, raise_if_failed
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import has_error, judge_value, report_of, wrong
from holdfast.conformance.cases.rows import store_operand
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step
from holdfast.conformance.verdict import Verdict

_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_MAYBE = {"type": ["string", "null"]}
_SHA256 = "^[0-9a-f]{64}$"
_HEX = {"type": "string", "pattern": "^(?:[0-9a-f]{2})*$"}


def _several(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(item)}


_DEFINITIONS: Mapping[str, Any] = {
    "table": value_form(
        columns=_several(value_form(name=_TEXT, type=_TEXT, notnull=_FLAG, pk=_COUNT, hidden=_COUNT)),
        strict=_FLAG,
        without_rowid=_FLAG,
        indexes=_several(
            value_form(
                name=_TEXT, unique=_FLAG, partial=_FLAG, origin=_TEXT, columns=_several(_MAYBE), expressions=_FLAG
            )
        ),
        sql=_TEXT,
    ),
    "cell": {
        "oneOf": [
            {"type": ["string", "number", "null"]},
            value_form(blob=_HEX),
            value_form(text=_HEX),
            value_form(integer={"type": "string", "pattern": "^-?[0-9]{16,19}$"}),
            value_form(real=TEXT),
            value_form(blob_sha256={"type": "string", "pattern": _SHA256}, bytes=_COUNT),
            value_form(text_sha256={"type": "string", "pattern": _SHA256}, bytes=_COUNT),
        ]
    },
}
_ROWS = {
    "type": "array",
    "maxItems": 10000,
    "items": {"type": "object", "additionalProperties": {"$ref": "#/$defs/cell"}},
}


def _contradiction(value: Mapping[str, Any]) -> str | None:
    readable = value["exists"] and value["error"] is None
    if not readable and (value["tables"] or value["rows"] or value["triggers"]):
        return "a database that could not be read has contents"
    if readable and None in (value["digest"], value["journal_mode"], value["integrity"]):
        return "a database that was read lacks its digest, journal_mode or integrity"
    if not value["exists"] and value["error"] is not None:
        return "a database that is not there has an error"
    if not value["rows"].keys() <= value["tables"].keys():
        return "there are rows of no table"
    return None


INSPECT = Report(
    name="inspect",
    do=lambda workdir, operand: store.inspect(workdir, operand["path"], operand.get("format", "sqlite")),
    schema=value_form(
        exists=_FLAG,
        error=_MAYBE,
        digest={**_MAYBE, "pattern": _SHA256},
        journal_mode=_MAYBE,
        integrity=_MAYBE,
        tables={"type": "object", "additionalProperties": {"$ref": "#/$defs/table"}},
        triggers=_several(value_form(name=_TEXT, table=_TEXT, sql=_TEXT)),
        rows={"type": "object", "additionalProperties": _ROWS},
    ),
    definitions=_DEFINITIONS,
    contradiction=_contradiction,
)


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    record, value = yield from report_of(INSPECT, store_operand(reading.contract), note)
    expected = reading.state.scope.resolve(step.get("expect", {}).get("value", {}))
    if not value["exists"] and "exists" not in expected:
        problem = "there is no database where the contract has it"
        raise_if_failed(wrong(reading.case.kind, step, problem, repr(expected), value))
    surplus = {f"rows.{name}": Verdict.STATE_LEAK.value for name in value["rows"]}
    reading.go_on(judge_value(reading, INSPECT, step, value, is_blind=has_error, rows=surplus), step)
    reading.bind(step, record, {"value": value})


STEP = Step(
    name="inspect",
    form=form({"inspect": {"const": "store"}, **REPORTED}, ("inspect",)),
    read=_read,
    report=INSPECT,
    facts={"store": True, "reports": True},
)
