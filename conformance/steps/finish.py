"""`finish`: wait for the answer to a call that was started, and judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.expect import shown
from holdfast.conformance.cases.forms import BIND, EXPECT, LABEL, OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import Action, Asking, SessionScript
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.start import started

FINISH = Asking("finish", lambda driver, action: driver.receive(action))


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    worker, name = started(reading, step["finish"])
    (record,) = yield Action(FINISH, note, worker=worker)
    reading.state.under_way.pop(step["finish"], None)
    expect = step.get("expect", ex.ACCEPTED)
    yield from reading.settle(record, reading.contract.methods[name], expect, step, reading.state.scope)
    if step["finish"] in reading.state.hasty:
        detail = f"{step['finish']} was answered before the outcome was known that its answer rests on"
        wrong = ex.wrong_value(reading.case.kind, step)
        raise NonConformance(Judgement(wrong, None, detail, "an answer after that outcome", shown(record), n=record.n))
    reading.bind(step, record)


STEP = Step(
    name="finish",
    form=form({"finish": LABEL, **OF_A_WORKER, "bind": BIND, "expect": EXPECT}, ("finish",)),
    read=_read,
    facts={"accepts": True},
)
