"""What `insert` and `probe` have in common: rows that are put into the contract's store, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import value_form
from holdfast.conformance.cases.values import CaseError, Scope
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
    kind = contract.inspection.format if contract.inspection is not None else "sqlite"
    return {"path": path} if kind == "sqlite" else {"path": path, "format": kind}


def rows_of(name: str, step: Mapping[str, Any], scope: Scope) -> list[Mapping[str, Any]]:
    """The rows of a step. Raises CaseError."""
    rows = [scope.resolve(row) for row in ([step["row"]] if "row" in step else step["rows"])]
    for row in rows:
        if not isinstance(row, Mapping) or not row:
            raise CaseError(f"{name}: expected a row, an object of columns, got {row!r}")
        for column, value in row.items():
            form = isinstance(value, Mapping) and len(value) == 1 and value.keys() <= _STORED
            if isinstance(value, bool) or not (value is None or form or isinstance(value, str | int | float)):
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
