"""`reopen`: start a killed worker again on the same workdir."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.forms import CONFIG, EXPECT, OF_A_WORKER, WORKER, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.steps import Step


def config_of(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, str]:
    """The members that a step adds to the config of the session."""
    config: dict[str, str] = reading.state.scope.resolve(step.get("config", {}))
    return config


def judge_of(reading: CaseInterpreter, step: Mapping[str, Any]) -> Callable[[Record], Judgement | None]:
    """The judgement on the answer to the `open` of a step."""
    expect = {**ex.OK, **step.get("expect", {})}
    return lambda record: ex.judge_answer(record, expect, reading.state.scope, step=step, kind=reading.case.kind)


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    config, judge = config_of(reading, step), judge_of(reading, step)
    yield from reading.session.reopen(step["reopen"], note, config=config, judge=judge)


STEP = Step(
    name="reopen",
    form=form({"reopen": WORKER, **OF_A_WORKER, "config": CONFIG, "expect": EXPECT}, ("reopen",)),
    read=_read,
    facts={"worker": True},
)
