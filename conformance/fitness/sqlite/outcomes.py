"""The outcomes of the probes of `probes`, one by one."""

from __future__ import annotations

from enum import Enum, unique

from holdfast.conformance.fitness.model import Probe
from holdfast.conformance.fitness.sqlite.session import refused

TRIED, FIRST = "tried", "first"


@unique
class Outcome(Enum):
    """What came of an attempt. Only REFUSED is a refusal."""

    REFUSED = "refused with an error, and nothing changed"
    ADMITTED = "admitted"
    SILENT = "no error, and nothing changed"
    ERASED = "the stored row is gone or changed"
    FAILED = "an error that is no refusal"
    NOT_SHOWN = "not tried"


def of_attempt(probe: Probe | None) -> Outcome:
    """A row that was tried: the last two answers are the attempt's and the inspection's."""
    if probe is None or probe.answer is None or len(probe.answers) < 2 or not probe.answers[-1].rows:
        return Outcome.NOT_SHOWN
    attempt, inspect = probe.answers[-2], probe.answers[-1].rows[0]
    if inspect[FIRST] != 1:
        return Outcome.ERASED
    if inspect.get(TRIED):
        return Outcome.ADMITTED
    if attempt.sqlstate is None:
        return Outcome.SILENT
    return Outcome.REFUSED if refused(attempt) else Outcome.FAILED


def of_change(probe: Probe | None) -> Outcome:
    """A change of the stored row: it was admitted if the statement says that it found rows, even if nothing differs."""
    found = of_attempt(probe)
    if found is Outcome.SILENT and probe is not None and probe.answers[-2].affected:
        return Outcome.ADMITTED
    return found


def of_addition(probe: Probe | None) -> Outcome:
    """An upsert or REPLACE: one that adds a row leaves the stored one alone, which is as good as a refusal."""
    found = of_attempt(probe)
    if found is Outcome.SILENT and probe is not None and probe.answers[-2].affected:
        return Outcome.REFUSED
    return found


def counts(probe: Probe | None, place: int = -1) -> dict[str, int] | None:
    """What an inspection found, None where there was none."""
    if probe is None or probe.answer is None or len(probe.answers) < abs(place) or not probe.answers[place].rows:
        return None
    return {name: int(count) for name, count in probe.answers[place].rows[0].items()}


def came_to(probe: Probe | None) -> str:
    """A text for the answer to the attempt."""
    if probe is None:
        return "it was not tried"
    if probe.failed:
        return probe.failed
    for answer in reversed(probe.answers):
        if answer.sqlstate is not None:
            return f"{answer.sqlstate}: {answer.message}"
    return "no error"
