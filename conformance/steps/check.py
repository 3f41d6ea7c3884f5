"""`check`: compare values that earlier steps bound. The step sends no request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.forms import ANYTHING, OF_A_WORKER, form, one_of
from holdfast.conformance.cases.match import mismatch, same
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.cases.session import SessionScript
from holdfast.conformance.cases.values import names_in
from holdfast.conformance.steps import Step

_FORMS = ("equals", "differs", "matches")


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    del note
    scope = reading.state.scope
    value = scope.resolve(step["check"])
    if "equals" in step:
        other = scope.resolve(step["equals"])
        problem = None if same(value, other) else f"{step['check']} is {value!r}, expected {other!r}"
    elif "differs" in step:
        other = scope.resolve(step["differs"])
        problem = f"{step['check']} must differ from {other!r}" if same(value, other) else None
    else:
        problem = mismatch(scope.resolve(step["matches"]), value)
    if problem is not None:
        # The last of the compared answers.
        bound_at = reading.state.bound_at
        at = max((bound_at[name] for name in names_in(dict(step)) & {*bound_at}), default=None)
        wrong = ex.wrong_value(reading.case.kind, step)
        reading.go_on(Judgement(wrong, None, problem, "see detail", repr(value)[:600], n=at), step)
    yield from ()


STEP = Step(
    name="check",
    form=form({"check": ANYTHING, **dict.fromkeys(_FORMS, ANYTHING), **OF_A_WORKER}, ("check",), oneOf=one_of(*_FORMS)),
    read=_read,
)
