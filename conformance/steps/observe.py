"""`observe`: ask an observation, which answers `ok` with a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import EXCHANGE, Action, SessionScript
from holdfast.conformance.steps import Step
from holdfast.specs.model import Group


def ask(reading: CaseInterpreter, step: Mapping[str, Any], name: str, note: str) -> SessionScript[None]:
    """Call a method that is not an operation. An observation may show nothing while a commit is open."""
    worker, scope = step.get("worker", 0), reading.state.scope
    method, request = reading.request(step, name, scope)
    (record,) = yield Action(EXCHANGE, note, ((worker, request),), worker=worker)
    if reading.may_wait(record) and method.group is Group.OBSERVATION and "bind" not in step:
        return
    yield from reading.settle(record, method, {**ex.OK, **step.get("expect", {})}, step, scope)
    reading.bind(step, record)


STEP = Step(
    name="observe",
    form=form({"observe": METHOD, **OF_A_WORKER, "args": ANYTHING, "bind": BIND, "expect": EXPECT}, ("observe",)),
    read=lambda reading, step, note: ask(reading, step, step["observe"], note),
    facts={"method": "observation", "reports": True},
)
