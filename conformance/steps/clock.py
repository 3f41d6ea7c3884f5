"""`clock`: move the time of every worker, by a span such as `+300s` or to an instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.cases.values import shift
from holdfast.conformance.steps import Step

_SPAN = r"[+-][0-9]+(?:\.[0-9]{1,6})?[smhd]"
_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z"


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    now = shift(reading.state.scope.now, step["clock"])
    reading.state.scope = reading.state.scope.at(now)
    yield from reading.session.clock(now, range(reading.workers), note)


STEP = Step(
    name="clock",
    form=form({"clock": {"type": "string", "pattern": f"^(?:{_SPAN}|{_INSTANT})$"}, **OF_A_WORKER}, ("clock",)),
    read=_read,
)
