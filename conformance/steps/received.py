"""`received`: the requests that a daemon has sent to the broker that holdfast plays, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from holdfast.conformance.cases.forms import REPORTED, form, value_form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.reporting import reading_of
from holdfast.conformance.steps import Step

RECEIVED = Report(
    name="received",
    do=lambda peer, operand: {"requests": peer.received()[operand.get("behind", 0) :]},
    schema=value_form(
        requests={
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "headers", "body"],
                "properties": {
                    "path": {"type": "string"},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "body": {"type": "string"},
                    # Of a WebSocket: the code with which the daemon closed it, null if it did not.
                    "close_code": {"type": ["integer", "null"]},
                },
            },
        }
    ),
    about=attrgetter("peer"),
)


def _operand(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    """All requests are shown, whatever the step says."""
    del reading, step
    return {}


STEP = Step(
    name="received",
    form=form({"received": {"const": "requests"}, **REPORTED}, ("received",)),
    read=reading_of(RECEIVED, _operand),
    report=RECEIVED,
    facts={"reports": True},
)
