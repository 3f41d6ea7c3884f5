"""`answers`: what the broker that holdfast plays for a daemon says to the next requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import LABELLED, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.steps import Step


def _arm(driver: Any, action: Action) -> None:
    driver.peer.arm(action.operand["answers"])


ANSWERS = Local("answers", _arm)
ANSWER: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "status": {"type": "integer", "minimum": 200, "maximum": 599},
        "body": {},
        "raw": {"type": "string"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "how": {"enum": ["whole", "cut", "drop", "late", "drip", "twice", "half", "again"]},
        "through": {"const": True},
        # To one who connects by a WebSocket: the handshake, base64url, and whether it is to close the connection.
        "handshake": {"type": "string"},
        "closes": {"const": True},
    },
}


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    del note
    told = reading.state.scope.resolve(step["answers"])
    (record,) = yield Action(ANSWERS, f"answers {len(told)}", operand={"answers": told})
    must_be_done(record)


STEP = Step(
    name="answers",
    form=form({"answers": {"type": "array", "items": ANSWER}, **LABELLED}, ("answers",)),
    read=_read,
)
