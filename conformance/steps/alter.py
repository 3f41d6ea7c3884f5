"""`alter`: put a row into the contract's RocksDB store, or remove one, while no process has it open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.reading import Reading
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import has_error, reading_of, text_of
from holdfast.conformance.cases.rows import store_path
from holdfast.conformance.cases.values import CaseError, decoded
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step


def _do(workdir: Any, operand: Mapping[str, Any]) -> dict[str, Any]:
    value = operand["value"]
    row = decoded(operand["key"]), None if value is None else decoded(value)
    return store.alter(workdir, operand["path"], operand["family"], *row)


ALTER = Report(name="alter", do=_do, schema=value_form(error={"type": ["string", "null"]}))


def _operand(reading: Reading, step: Mapping[str, Any]) -> dict[str, Any]:
    path, scope = store_path(reading.contract), reading.state.scope
    key, value = scope.resolve(step["key"]), scope.resolve(step["value"])
    try:
        decoded(key)
        if value is not None:
            decoded(value)
    except ValueError as error:
        raise CaseError(f"alter: {error}") from error
    reading.touches(path)
    return {"path": path, "family": text_of("alter", step, reading), "key": key, "value": value}


STEP = Step(
    name="alter",
    form=form({"alter": TEXT, "key": ANYTHING, "value": ANYTHING, **REPORTED}, ("alter", "key", "value")),
    read=reading_of(ALTER, _operand, is_blind=has_error),
    report=ALTER,
    facts={"store": True, "reports": True},
)
