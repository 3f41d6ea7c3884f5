"""`start`: send a call and do not wait for its answer; `finish` waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, LABEL, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import Action, Asking, SessionScript
from holdfast.conformance.steps import Step

START = Asking("start", lambda driver, action: driver.send(action), awaited=False)


def started(reading: CaseInterpreter, name: str) -> tuple[int, str]:
    """The worker and the method of the call that was started under this name."""
    worker, method = reading.state.scope.resolve(f"$__{name}")
    return worker, method


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    worker = step.get("worker", 0)
    _, request = reading.request(step, step["start"], reading.state.scope)
    yield Action(START, note, ((worker, request),), worker=worker)
    reading.state.scope = reading.state.scope.bind(f"__{step['as']}", [worker, step["start"]])
    reading.state.under_way[step["as"]] = worker


STEP = Step(
    name="start",
    form=form({"start": METHOD, **OF_A_WORKER, "args": ANYTHING, "as": LABEL}, ("start", "as")),
    read=_read,
    facts={"method": "operation"},
)
