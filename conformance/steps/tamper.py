"""`tamper`: damage, cut or remove a file of the workdir, or put the store into another journal mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.forms import OF_A_WORKER, TEXT, form, one_of
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.reporting import path_of
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.inspection import store
from holdfast.conformance.steps import Step

_PLACE = {"type": "integer", "minimum": 0}
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "flip": _PLACE,
    "truncate": _PLACE,
    "delete": {"const": True},
    "journal_mode": {"enum": ["delete", "wal"]},
}

# The last word of a suite test's note that it cuts a file.
CUT = "cut"

TAMPER = Local("tamper", lambda driver, action: store.tamper(driver.workdir, action.operand["tamper"], action.operand))


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    path = path_of("tamper", step, reading)
    reading.touches(path)
    operand = {"tamper": path, **{name: step[name] for name in _CHANGES if name in step}}
    (record,) = yield Action(TAMPER, note, operand=operand)
    must_be_done(record)


STEP = Step(
    name="tamper",
    form=form({"tamper": TEXT, **_CHANGES, **OF_A_WORKER}, ("tamper",), oneOf=one_of(*_CHANGES)),
    read=_read,
)
