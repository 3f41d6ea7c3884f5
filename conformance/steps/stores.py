"""Steps about the contract's store: inspect it, and put rows into it or into a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, PATH, REPORTED, TEXT, form, one_of, value_form
from holdfast.conformance.cases.reading import CaseInterpreter, raise_if_failed
from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.cases.report import (
    Report,
    folder_of,
    has_error,
    judge_value,
    of_case,
    report_of,
    text_of,
    wrong,
)
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.cases.values import CaseError, Scope, decoded
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import kind, reported
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract

_STORED = frozenset({"blob", "text", "integer", "real"})
ROW: Mapping[str, Any] = {"type": ["object", "string"], "minProperties": 1, "minLength": 2}
TRIED = value_form(inserted={"type": ["boolean", "null"]}, error={"type": ["string", "null"]})


def store_path(contract: Contract) -> str:
    """Where the store lies in the workdir. Raises CaseError."""
    if contract.inspection is None:
        raise CaseError("the contract has no `inspection`, so it does not say where its store lies")
    return contract.inspection.path


def store_operand(contract: Contract) -> dict[str, str]:
    """What an inspection is asked for: where the store lies, and its format if that is not SQLite. Raises CaseError."""
    path = store_path(contract)
    written = contract.inspection.format if contract.inspection is not None else "sqlite"
    return {"path": path} if written == "sqlite" else {"path": path, "format": written}


def rows_of(name: str, step: Mapping[str, Any], scope: Scope) -> list[Mapping[str, Any]]:
    """The rows of a step. Raises CaseError."""
    rows = [scope.resolve(row) for row in ([step["row"]] if "row" in step else step["rows"])]
    for row in rows:
        if not isinstance(row, Mapping) or not row:
            raise CaseError(f"{name}: expected a row, an object of columns, got {row!r}")
        for column, value in row.items():
            is_stored = isinstance(value, Mapping) and len(value) == 1 and value.keys() <= _STORED
            if isinstance(value, bool) or not (value is None or is_stored or isinstance(value, str | int | float)):
                raise CaseError(f"{name}: column {column} cannot hold {value!r}")
    return rows


def contradiction(value: Mapping[str, Any]) -> str | None:
    """An error stands beside a row that was not inserted, and only there."""
    if (value["inserted"] is True) is not (value["error"] is None):
        return "an error stands beside a row that was inserted, or none beside one that was not"
    return None


def came_to_nothing(value: Mapping[str, Any]) -> bool:
    """Whether the row was neither inserted nor refused by a constraint."""
    return value["inserted"] is None


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
                name=_TEXT,
                unique=_FLAG,
                partial=_FLAG,
                origin=_TEXT,
                columns=_several(_MAYBE),
                expressions=_FLAG,
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


def _contradiction_inspect(value: Mapping[str, Any]) -> str | None:
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
    contradiction=_contradiction_inspect,
)


@kind(form({"inspect": {"const": "store"}, **REPORTED}, ("inspect",)), report=INSPECT, store=True, reports=True)
def inspect(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Read the contract's store; the harness itself reads it from a copy."""
    record, value = yield from report_of(INSPECT, store_operand(reading.contract), note)
    expected = reading.state.scope.resolve(step.get("expect", {}).get("value", {}))
    if not value["exists"] and "exists" not in expected:
        problem = "there is no database where the contract has it"
        raise_if_failed(wrong(reading.case.kind, step, problem, repr(expected), value))
    surplus = {f"rows.{name}": Verdict.STATE_LEAK.value for name in value["rows"]}
    reading.go_on(judge_value(reading, INSPECT, step, value, is_blind=has_error, rows=surplus), step)
    reading.bind(step, record, {"value": value})


_INSERTED: Mapping[str, Any] = {"inserted": True}

INSERT = Report(
    name="insert",
    do=lambda workdir, operand: store.insert(workdir, operand["path"], operand["table"], operand["rows"]),
    schema=TRIED,
    contradiction=contradiction,
)


def _operand_insert(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    table, rows = text_of("insert", step, reading), rows_of("insert", step, reading.state.scope)
    return {"path": store_path(reading.contract), "table": table, "rows": rows}


@kind(
    form({"insert": TEXT, "row": ROW, "unstorable": {"const": "ends"}, **REPORTED}, ("insert", "row")),
    report=INSERT,
    store=True,
    reports=True,
)
def insert(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Put a row into the contract's store directly, without the implementation."""
    record, value = yield from report_of(INSERT, _operand_insert(reading, step), note)
    # A twin that puts in another row is there to show that the store accepts that one.
    if step.get("unstorable") == "ends" and value["inserted"] is False and not reading.is_twin_change(step):
        reading.state.ended = f"{note}: a constraint of the store refuses the row: {value['error']}"
        return
    raise_if_failed(_judged_insert(reading, step, value))
    reading.bind(step, record, {"value": value})


def _judged_insert(reading: CaseInterpreter, step: Mapping[str, Any], value: Mapping[str, Any]) -> Judgement | None:
    judgement = judge_value(reading, INSERT, step, value, is_blind=came_to_nothing, otherwise=_INSERTED)
    if judgement is None or came_to_nothing(value) or "expect" in step:
        return judgement
    detail = f"the store refused the row that the case needs: {value['error']}"
    return Judgement(Verdict.NOT_REACHED, None, detail, judgement.expected, judgement.received)


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


def _operand_probe(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    table, rows = text_of("probe", step, reading), rows_of("probe", step, reading.state.scope)
    path = store_path(reading.contract)
    return {"path": path, "table": table, "rows": rows, "or_replace": step.get("or_replace", False)}


# Put rows into a copy of the contract's store, to learn which rows its constraints refuse.
_PROBE_STEP = reported(
    PROBE,
    form(
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
    _operand_probe,
    is_blind=came_to_nothing,
    store=True,
    reports=True,
)


def _altered(workdir: Any, operand: Mapping[str, Any]) -> dict[str, Any]:
    change = {name: operand[name] for name in ("key", "value", "drop") if name in operand}
    spelt = {name: decoded(value).hex() if isinstance(value, str) else value for name, value in change.items()}
    return store.alter(workdir, operand["path"], operand["family"], spelt)


ALTER = Report(name="alter", do=_altered, schema=value_form(error={"type": ["string", "null"]}))


def _operand_alter(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path = store_path(reading.contract)
    reading.touches(path)
    operand = {"path": path, "family": text_of("alter", step, reading)}
    return {**operand, "drop": step["drop"]} if "drop" in step else {**operand, **_row(reading, step)}


def _row(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: reading.state.scope.resolve(step[name]) for name in ("key", "value")}
    with of_case("alter"):
        decoded(row["key"])
        if row["value"] is not None:
            decoded(row["value"])
    return row


# Put a row into the contract's RocksDB store, remove one, or drop a family, while no process has it open.
_ALTER_STEP = reported(
    ALTER,
    form(
        {"alter": TEXT, "key": ANYTHING, "value": ANYTHING, "drop": {"type": "boolean"}, **REPORTED},
        ("alter",),
        oneOf=[{"required": ["key", "value"]}, {"required": ["drop"]}],
    ),
    _operand_alter,
    is_blind=has_error,
    store=True,
    reports=True,
)


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

# Rebuild SQLite databases without their constraints, as a tool does that copies rows alone.
_LOOSEN_STEP = reported(
    LOOSEN,
    form({"loosen": PATH, **REPORTED}, ("loosen",)),
    lambda reading, step: {"path": folder_of("loosen", step, reading)},
    is_blind=has_error,
    reports=True,
)
