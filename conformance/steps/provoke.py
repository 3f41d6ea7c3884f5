"""`provoke`: call a test hook of the implementation, which answers `ok`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import ANYTHING, BIND, EXPECT, METHOD, OF_A_WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.observe import ask


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    yield from ask(reading, step, step["provoke"], note)
    if reading.contract.methods[step["provoke"]].damages:
        reading.state.damaged = True


STEP = Step(
    name="provoke",
    form=form({"provoke": METHOD, **OF_A_WORKER, "args": ANYTHING, "bind": BIND, "expect": EXPECT}, ("provoke",)),
    read=_read,
    facts={"method": "provocation", "reports": True},
)
