"""`tree`: list everything below a folder of the workdir."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import PATH, REPORTED, TEXT, form, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import folder_of, has_error, reading_of
from holdfast.conformance.inspection import store
from holdfast.conformance.inspection.files import shown
from holdfast.conformance.steps import Step


def _contradiction(value: Mapping[str, Any]) -> str | None:
    paths = [entry["path"] for entry in value["files"]]
    if paths != sorted(set(paths)):
        return "its paths are not sorted, or not unique"
    if paths and (value["error"] is not None or not value["exists"]):
        return "a folder that was not listed has files"
    return None


def outside(entries: list[Mapping[str, Any]], operand: Mapping[str, Any]) -> str | None:
    """An error if an entry does not lie below the folder of the operand; None if each does."""
    under = "" if operand["path"] == "." else f"{shown(operand['path'])}/"
    if all(entry["path"].startswith(under) for entry in entries):
        return None
    return "a path does not lie below the folder that the case asks for"


LIST = Report(
    name="tree",
    do=lambda workdir, operand: store.tree(workdir, operand["path"]),
    schema=value_form(
        exists={"type": "boolean"},
        error={"type": ["string", "null"]},
        files={
            "type": "array",
            "maxItems": 10000,
            "items": value_form(
                path=TEXT,
                kind={"enum": ["file", "folder", "link", "other"]},
                size={"type": ["integer", "null"], "minimum": 0},
            ),
        },
    ),
    contradiction=_contradiction,
    difference=lambda value, operand: outside(value["files"], operand),
    rows={"files": "state_leak"},
)

STEP = Step(
    name="tree",
    form=form({"tree": PATH, **REPORTED}, ("tree",)),
    read=reading_of(LIST, lambda reading, step: {"path": folder_of("tree", step, reading)}, is_blind=has_error),
    report=LIST,
    facts={"reports": True},
)
