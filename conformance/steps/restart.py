"""`restart`: close a worker in order, end its process, and start it again on the same workdir."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import CONFIG, EXPECT, OF_A_WORKER, WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.reopen import config_of, judge_of


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    notes = (f"{note}: close", f"{note}: stop", f"{note}: reopen")
    config, judge = config_of(reading, step), judge_of(reading, step)
    yield from reading.session.restart(step["restart"], notes, config=config, judge=judge)


STEP = Step(
    name="restart",
    form=form({"restart": WORKER, **OF_A_WORKER, "config": CONFIG, "expect": EXPECT}, ("restart",)),
    read=_read,
    facts={"worker": True},
)
