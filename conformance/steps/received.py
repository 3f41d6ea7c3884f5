"""`received`: the requests that a daemon has sent to the broker that holdfast plays, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.forms import REPORTED, form, value_form
from holdfast.conformance.cases.reading import Reading
from holdfast.conformance.cases.report import Report, written
from holdfast.conformance.cases.reporting import reading_of
from holdfast.conformance.steps import Step


@dataclass(frozen=True)
class OfPeer(Report):
    """A report of the driver's peer, not of its workdir."""

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (None, written(self.do(driver.peer, action.operand))))


RECEIVED = OfPeer(
    name="received",
    do=lambda peer, _: {"requests": peer.received()},
    schema=value_form(
        requests={
            "type": "array",
            "items": value_form(
                path={"type": "string"},
                headers={"type": "object", "additionalProperties": {"type": "string"}},
                body={"type": "string"},
            ),
        }
    ),
)


def _operand(reading: Reading, step: Mapping[str, Any]) -> dict[str, Any]:
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
