"""A finding for a person: one sentence that names the acknowledgement and what was not on disk, and a picture."""

from __future__ import annotations

from pathlib import Path

from holdfast.conformance.faults import recording, timeline
from holdfast.conformance.faults.deadline import Deadline
from holdfast.conformance.faults.model.plan import Candidate
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.naming import listed, short
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.promises import Promises
from holdfast.conformance.faults.report import BrokenPromise, Layer
from holdfast.conformance.faults.subject import Workload

# What became of the store; of a loss the verdict has the numbers.
_ENDS = {
    CrashClass.TORN: "a write was there by half",
    CrashClass.UNRECOVERABLE: "the store did not come back",
    CrashClass.INIT: "the store did not come back",
    CrashClass.UNSTABLE: "the store showed something else at its second start",
    CrashClass.INVENTED: "the store held what no operation asked for",
}


def of_power_loss(workload: Workload, promises: Promises, candidate: Candidate, verdict: CrashOutcome) -> str:
    """What was acknowledged at the last point at which the disk may have this state, what of it is lost, what came."""
    last = candidate.numbers[-1]
    state = candidate.at(last)
    acknowledged = [(event, op) for op, event in promises.acknowledged.items() if 0 < event <= last]
    if acknowledged:
        event, number = max(acknowledged)
        text = next(op.text for op in workload.ops if op.number == number)
        begin = f"The acknowledgement of `{short(text)}` left at event {event}; "
        # Between the two the disk may have changed.
        begin += "at that time" if event in state.point.numbers else f"when the power failed, after operation {last},"
    else:
        begin = f"The power failed after operation {last}; at that time"
    how = f"{state.kind.value}: {state.note}" if state.note else state.kind.value
    systems = {one.point.systems for one in candidate.states if last in one.point.numbers}
    # Of several, or of one without a name, all may leave it so.
    where = f" on {next(iter(systems))}" if len(systems) == 1 and "" not in systems else ""
    end = f"the store held {verdict.came.partition(':')[0]}" if verdict.kind is CrashClass.LOST else _ENDS[verdict.kind]
    return f"{begin} {listed(state.losses) or 'everything was on disk'}; after power loss{where} ({how}) {end}."


def marks(promises: Promises, candidate: Candidate) -> timeline.Marks:
    """The same for the picture."""
    last = candidate.numbers[-1]
    state = candidate.at(last)
    lost = {one.operation for one in state.lost}
    if state.kind is not StateRule.ALL:
        lost |= {by for pages in state.point.doomed.values() for by in pages.values()}
    return timeline.Marks(promises.acknowledged, last, frozenset(lost), state.point.systems, promises.idle)


def draw(layer: Layer, finding: BrokenPromise, deadline: Deadline) -> Path | None:
    """Put the picture of a kept finding beside its state, as .svg; None if there is no recording of it.

    Raises OSError, RecordingError, OutOfTimeError.
    """
    if finding.kept is None or finding.marks is None:
        return None
    recorded = recording.read(finding.kept.with_suffix(".jsonl"), deadline.check)
    verdict = finding.verdict
    words = f"Expected {verdict.expected}; got {verdict.came}. {finding.story}"
    picture = timeline.draw(recorded, finding.marks, title=f"{layer.value}: {verdict.kind.value}", words=words)
    place = finding.kept.with_suffix(".svg")
    place.write_text(picture, encoding="utf-8")
    return place
