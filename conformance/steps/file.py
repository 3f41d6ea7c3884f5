"""`file`: describe a file in the workdir."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import PATH, REPORTED, form, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import path_of, reading_of
from holdfast.conformance.cases.values import decoded
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step
from holdfast.reports.evidence.redact import MARK

_OF_A_FILE = ("kind", "mode", "size", "sha256", "bytes")


def _contradiction(value: Mapping[str, Any]) -> str | None:
    if not value["exists"] and any(value[part] is not None for part in _OF_A_FILE):
        return "a file that is not there has properties"
    if value["bytes"] in {None, MARK}:
        return None
    try:
        data = decoded(value["bytes"])
    except ValueError as error:
        return str(error)
    if (len(data), hashlib.sha256(data).hexdigest()) != (value["size"], value["sha256"]):
        return "its bytes are not those of its size and digest"
    return None


FILE = Report(
    name="file",
    do=lambda workdir, operand: store.facts(workdir, operand["path"]),
    schema=value_form(
        exists={"type": "boolean"},
        kind={"enum": ["file", "folder", "link", "other", None]},
        mode={"type": ["string", "null"], "pattern": "^[0-7]{4}$"},
        size={"type": ["integer", "null"], "minimum": 0},
        sha256={"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
        bytes={
            "description": "base64url; three asterisks where a secret stood in them",
            "type": ["string", "null"],
            "pattern": "^(?:[A-Za-z0-9_-]*|\\*\\*\\*)$",
            "maxLength": 87382,
        },
        ignored={"type": "boolean"},
    ),
    contradiction=_contradiction,
)

STEP = Step(
    name="file",
    form=form({"file": PATH, **REPORTED}, ("file",)),
    read=reading_of(FILE, lambda reading, step: {"path": path_of("file", step, reading)}),
    report=FILE,
    facts={"reports": True},
)
