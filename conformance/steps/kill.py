"""`kill`: send SIGKILL to a worker's process group."""

from __future__ import annotations

from holdfast.conformance.cases.forms import OF_A_WORKER, WORKER, form
from holdfast.conformance.steps import Step

STEP = Step(
    name="kill",
    form=form({"kill": WORKER, **OF_A_WORKER}, ("kill",)),
    read=lambda reading, step, note: reading.session.kill(step["kill"], note),
    facts={"worker": True},
)
