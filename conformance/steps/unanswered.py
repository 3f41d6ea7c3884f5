"""`unanswered`: a call that was started has no answer yet, because it waits for the outcome of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.forms import LABEL, LABELLED, form
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.session import Action, Local, SessionScript
from holdfast.conformance.steps import Step
from holdfast.conformance.steps.start import started

# How long the harness watches a call that waits for another's outcome. Long enough that a released call reaches its
# database on a busy machine, and well below the lock timeout of any implementation. An answer that comes sooner ends
# the wait. --slow does not stretch it: the waiting call has no more time on a slow machine.
UNANSWERED_S = 0.25


def _watch(driver: Driver, action: Action) -> str | None:
    worker = driver.busy_worker(action.worker)
    if worker is None:
        return "the worker is gone, or has nothing to answer"
    return "it was answered already" if worker.has_answered(within=UNANSWERED_S) else None


UNANSWERED = Local("unanswered", _watch)


def _read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    worker, _ = started(reading, step["unanswered"])
    (record,) = yield Action(UNANSWERED, note, worker=worker)
    if record.event is None or record.event["kind"] != "done":
        # `finish` judges it by its answer.
        reading.state.hasty.add(step["unanswered"])


STEP = Step(name="unanswered", form=form({"unanswered": LABEL, **LABELLED}, ("unanswered",)), read=_read)
