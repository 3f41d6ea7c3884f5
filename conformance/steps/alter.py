"""`alter`: put a row into the contract's RocksDB store, remove one, or drop a family, while no process has it open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import has_error, reading_of, text_of
from holdfast.conformance.cases.rows import store_path
from holdfast.conformance.cases.values import CaseError, decoded
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step


def _do(workdir: Any, operand: Mapping[str, Any]) -> dict[str, Any]:
    path, family = operand["path"], operand["family"]
    if "drop" in operand:
        return store.drop(workdir, path, family, really=operand["drop"])
    value = operand["value"]
    return store.alter(workdir, path, family, decoded(operand["key"]), None if value is None else decoded(value))


ALTER = Report(name="alter", do=_do, schema=value_form(error={"type": ["string", "null"]}))


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path = store_path(reading.contract)
    reading.touches(path)
    operand = {"path": path, "family": text_of("alter", step, reading)}
    return {**operand, "drop": step["drop"]} if "drop" in step else {**operand, **_row(reading, step)}


def _row(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: reading.state.scope.resolve(step[name]) for name in ("key", "value")}
    try:
        decoded(row["key"])
        if row["value"] is not None:
            decoded(row["value"])
    except ValueError as error:
        raise CaseError(f"alter: {error}") from error
    return row


STEP = Step(
    name="alter",
    form=form(
        {"alter": TEXT, "key": ANYTHING, "value": ANYTHING, "drop": {"type": "boolean"}, **REPORTED},
        ("alter",),
        oneOf=[{"required": ["key", "value"]}, {"required": ["drop"]}],
    ),
    read=reading_of(ALTER, _operand, is_blind=has_error),
    report=ALTER,
    facts={"store": True, "reports": True},
)
