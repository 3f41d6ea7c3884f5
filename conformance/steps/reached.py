"""`reached`: wait until the implementation stops at a failpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.starvation import lost_since
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.forms import OF_A_WORKER, TEXT, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.steps import Step

# How often the harness checks for the failpoint's file.
POLL_S = 0.002


def point_file(driver: Driver, action: Action, end: str) -> Path:
    """The file by which adapter and harness signal a failpoint to each other."""
    return driver.workdir / "hold" / f"{action.operand['point']}.{end}"


def _wait(driver: Driver, action: Action) -> str | None:
    path, left, op = point_file(driver, action, "reached"), driver.budget.left, driver.deadlines.op
    began_ns, ends = time.monotonic_ns(), time.monotonic() + min(left, op)
    is_extended = False
    with driver.budget.spending():
        while not path.exists():
            if time.monotonic() > ends:
                why = f"within {op:.4g} s"
                if left < op:
                    why = f"before the {driver.budget.seconds:.4g} s of the session were used up"
                starved = lost_since(began_ns)
                if starved and not is_extended:
                    is_extended, ends = True, ends + min(left, op)
                    continue
                busy = f"the machine was too busy, {starved}: " if starved else ""
                return f"{busy}the failpoint {action.operand['point']} was not reached {why}"
            time.sleep(POLL_S)
    return None


REACHED = Local("reached", _wait)


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    del reading
    (record,) = yield Action(REACHED, note, operand={"point": step["reached"]})
    must_be_done(record)


STEP = Step(name="reached", form=form({"reached": TEXT, **OF_A_WORKER}, ("reached",)), read=_read)
