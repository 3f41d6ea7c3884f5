"""`kill`: send SIGKILL to a worker's process group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import OF_A_WORKER, WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.steps import Step


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    killed = step["kill"]
    under_way = reading.state.under_way
    reading.state.under_way = {name: worker for name, worker in under_way.items() if worker != killed}
    yield from reading.session.kill(killed, note)


STEP = Step(
    name="kill",
    form=form({"kill": WORKER, **OF_A_WORKER}, ("kill",)),
    read=_read,
    facts={"worker": True},
)
