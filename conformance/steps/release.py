"""`release`: let an implementation that stopped at a failpoint go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.forms import OF_A_WORKER, TEXT, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.reached import point_file


def _release(driver: Driver, action: Action) -> str | None:
    if not point_file(driver, action, "reached").exists():
        return f"the failpoint {action.operand['point']} was never reached"
    point_file(driver, action, "release").touch()
    return None


RELEASE = Local("release", _release)


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    del reading
    (record,) = yield Action(RELEASE, note, operand={"point": step["release"]})
    must_be_done(record)


STEP = Step(name="release", form=form({"release": TEXT, **OF_A_WORKER}, ("release",)), read=_read)
