"""`provoke`: call a test hook of the implementation, which answers `ok`."""

from __future__ import annotations

from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.observe import ask

STEP = Step(
    name="provoke",
    form=form({"provoke": METHOD, **OF_A_WORKER, "args": ANYTHING, "bind": BIND, "expect": EXPECT}, ("provoke",)),
    read=lambda reading, step, note: ask(reading, step, step["provoke"], note),
    facts={"method": "provocation", "reports": True},
)
