"""Power loss: restarts on each state that it may leave, also within the recovery, and after a failed sync."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import methodcaller
from pathlib import Path

from holdfast.conformance.faults import naming, story
from holdfast.conformance.faults.metadata import Given, Metadata
from holdfast.conformance.faults.model.plan import Candidate, Plan
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.model.survey import Stage
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, judge
from holdfast.conformance.faults.order import spread
from holdfast.conformance.faults.recording import Event, Recording, Sync
from holdfast.conformance.faults.report import BrokenPromise, Tally
from holdfast.conformance.faults.runs import Promises, Runs
from holdfast.conformance.faults.subject import Subject
from holdfast.conformance.faults.tracer import Injection

# How many of the states that a crash leaves begin a recovery that is interrupted itself.
NESTED_STATES = 6


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What was recorded: what its files were given, the file that it is in, and what was promised in it."""

    metadata: Metadata
    out: Path
    promises: Promises


def losses(runs: Runs, tally: Tally) -> Iterator[None]:
    """Restarts on every state that a power loss may leave.

    The floor is the states at each acknowledgement, and one of each kind of the others, up to `runs.further`: without
    the first nothing is proven. In a long session it is the states at some acknowledgements alone (see `Plan`).
    """
    run = runs.baseline()
    recorded = _Recorded(Metadata(run.recording), run.out, run.promises)
    states = _plan(runs, run.recording, recorded.promises)
    tally.noun = "states"
    # Where file systems differ, there is more than one state at an acknowledgement.
    most, is_behind = states.count(Stage.ORDERED), False
    for candidate in states.before(None, kinds=0 if runs.workload.long else runs.further):
        if candidate.stage in (Stage.ACKNOWLEDGED, Stage.REPLACED):
            # The states after the last of them belong to the floor as well.
            tally.floor = max(most + runs.further, tally.tried + 2)
        elif not is_behind:
            _by_times(runs, tally, states, recorded)
            # Several acknowledgements may have left the same state.
            is_behind, tally.floor = True, tally.tried + candidate.due
        tally.total = states.count()
        tally.noun = "states at most" if states.is_estimated else "states"
        yield
        _restarted(runs, tally, candidate, recorded)
        tally.tried += not candidate.again
    if not is_behind:
        _by_times(runs, tally, states, recorded)
    tally.total, tally.noun = states.count(), "states"


def nested(runs: Runs, tally: Tally) -> Iterator[None]:
    """Power losses within the recovery from some of these states, spread over the run.

    What each recovery leaves around its syncs and changes of names comes first, then all else that it may leave.
    """
    run = runs.baseline()
    outermost, given = run.promises, Metadata(run.recording)
    firsts = _plan(runs, run.recording, outermost).beginnings()
    # Recoveries differ by the work that they have to do.
    step = max(1, len(firsts) // NESTED_STATES)
    begun: list[_Recovery] = []
    try:
        for first in firsts[::step]:
            yield
            must, may = outermost.must(*first.numbers), outermost.may(*first.numbers)
            with runs.workspace.folder() as folder:
                given.write(first, folder)
                # A state that breaks a promise by itself proves nothing about a recovery from it.
                if judge(runs.subject(), folder, runs.workload, must, may).kind is not CrashClass.CLEAN:
                    continue
            begun.append(_recovery(runs, first, given, Promises(dict.fromkeys(may, 0), dict.fromkeys(must, 0))))
            yield from _interrupted(runs, tally, begun, begun[-1], Stage.PARTED)
        for each in begun:
            yield from _interrupted(runs, tally, begun, each, None)
    finally:
        for each in begun:
            each.recorded.out.unlink(missing_ok=True)


@dataclass(slots=True)
class _Recovery:
    """A start on a state that a power loss left, recorded: what it may leave itself, in order."""

    where: str
    recorded: _Recorded
    plan: Plan
    candidates: Iterator[Candidate]
    # The first candidate of the stage that was not asked for yet.
    waiting: Candidate | None = None


def _interrupted(
    runs: Runs, tally: Tally, begun: Sequence[_Recovery], recovery: _Recovery, last: Stage | None
) -> Iterator[None]:
    """Restarts on what an interrupted recovery leaves, of the stages before `last`."""
    waiting = [] if recovery.waiting is None else [recovery.waiting]
    for candidate in chain(waiting, recovery.candidates):
        if last is not None and candidate.stage.is_from(last):
            recovery.waiting = candidate
            return
        tally.total = sum(each.plan.count() for each in begun)
        yield
        _restarted(runs, tally, candidate, recovery.recorded, recovery.where)
        tally.tried += not candidate.again
    tally.total = sum(each.plan.count() for each in begun)


def sync_errors(runs: Runs, tally: Tally) -> Iterator[None]:
    """Runs in which one sync fails, each with a power loss after it."""
    run = runs.baseline()
    syncs = [one.number for one in run.recording.operations if isinstance(one.action, Sync)]
    tally.total, tally.noun = len(syncs), "syncs"
    if not syncs:
        # sync() cannot fail, syncfs() can.
        can_fail = any(one.call == "syncfs" for one in run.recording.operations)
        tally.has_no_point(run.recording, "sync of a file", "syncfs is not made to fail" if can_fail else "")
        return
    for number in spread(syncs, runs.seed):
        yield
        struck = runs.run(Injection(error=errno.EIO, at=number, once=True), whole=False)
        if struck.recording.ending.fired:
            recorded = _Recorded(Metadata(struck.recording), struck.out, struck.promises)
            what = f"Operation {number} of the recording ({naming.call(run.recording, number)}) had failed. "
            before = len(tally.findings)
            for candidate in _after_failure(runs, recorded, struck.recording, number):
                _restarted(runs, tally, candidate, recorded, what)
                if len(tally.findings) > before:
                    break
            tally.tried += 1
        struck.remove()


def _after_failure(runs: Runs, recorded: _Recorded, recording: Recording, failed: int) -> Iterator[Candidate]:
    """The least that is left after each acknowledgement, and all that was written when the failure was answered.

    In the second state an operation that was refused has not happened, though its bytes may be there. Of a power loss
    after a refusal nothing is asked: what was undone may not be on disk either.
    """
    # A log may be written in between, so not the next thing that leaves.
    answered = min((number for number in recorded.promises.answered.values() if number > failed), default=None)
    acknowledged = frozenset(recorded.promises.acknowledged.values())
    states = _plan(runs, recording, recorded.promises, answered)
    for one in states.before(Stage.ORDERED):
        if one.state.kind is StateRule.MINIMUM and not acknowledged.isdisjoint(one.numbers):
            yield one
    if answered is not None:
        yield states.everything(answered)


def _plan(runs: Runs, recording: Recording, promises: Promises, answered: int | None = None) -> Plan:
    """`answered` is an event beside the acknowledgements."""
    acknowledged = {*promises.acknowledged.values(), *(() if answered is None else (answered,))}
    return Plan(
        recording,
        seed=runs.seed,
        acknowledgements=acknowledged,
        idle=promises.idle,
        alike=runs.workload.long,
        check=runs.deadline.check,
    )


def _restarted(runs: Runs, tally: Tally, candidate: Candidate, recorded: _Recorded, prefix: str = "") -> None:
    """Restart on one state, and judge it by the promises at all points at which it is legal."""
    verdict = _judged(runs, candidate, recorded, Given.MADE)
    if verdict.kind is CrashClass.CLEAN or _by_metadata(runs, tally, candidate, recorded, verdict):
        return
    kept, lost = runs.workspace.kept(tally, verdict, partial(recorded.metadata.write, candidate), recorded.out)
    words = prefix + story.of_power_loss(runs.workload, recorded.promises, candidate, verdict) + lost
    marks = story.marks(recorded.promises, candidate)
    tally.findings.append(BrokenPromise(candidate.numbers[-1], verdict, words, kept, marks=marks))


def _judged(runs: Runs, candidate: Candidate, recorded: _Recorded, given: Given) -> CrashOutcome:
    promises, numbers = recorded.promises, candidate.numbers
    with runs.workspace.folder() as folder:
        recorded.metadata.write(candidate, folder, given)
        return judge(runs.subject(), folder, runs.workload, promises.must(*numbers), promises.may(*numbers))


def _by_metadata(runs: Runs, tally: Tally, candidate: Candidate, recorded: _Recorded, verdict: CrashOutcome) -> bool:
    """Whether it breaks its promise only without the modes, owners and times that it has set: then it is inconclusive.

    A failure that comes and goes by itself does not count, so it has to break the promise a second time without them.
    """
    calls = recorded.metadata.was_set

    def is_clean(given: Given) -> bool:
        return _judged(runs, candidate, recorded, given).kind is CrashClass.CLEAN

    if not calls or not any(map(is_clean, (Given.SET, Given.BEFORE))) or is_clean(Given.MADE):
        return False
    tally.cannot_tell(
        "it depends on modes, owners or times that it has set, and what of those a power loss leaves is not "
        f"modelled: {naming.some(calls)}; without them: {verdict}"
    )
    return True


def _by_times(runs: Runs, tally: Tally, states: Plan, recorded: _Recorded) -> None:
    """Whether it shows another result on the state that the run left, with files written in another order."""
    if tally.findings or tally.unproven:
        return
    last = states.everything()
    turned = _judged(runs, last, recorded, Given.TURNED)
    # A difference that comes and goes by itself does not count.
    again = ((Given.SET, True), (Given.TURNED, False)) if turned.kind is not CrashClass.CLEAN else ()
    if again and all(
        (_judged(runs, last, recorded, given).kind is CrashClass.CLEAN) is clean for given, clean in again
    ):
        tally.cannot_tell(
            "it depends on the times of its files, and what of those a power loss leaves is not modelled: with the "
            f"same bytes, last written in the opposite order: {turned}"
        )


def _recovery(runs: Runs, first: Candidate, given: Metadata, promises: Promises) -> _Recovery:
    """A recorded start on this state; what was promised was so before it began. Raises RunError.

    A store that is opened only once it is needed has nothing to recover until its facts are asked for.
    """
    recording, out = _started(runs, first, given, lambda _: None)
    if all(isinstance(one.action, Event) for one in recording.operations):
        out.unlink(missing_ok=True)
        recording, out = _started(runs, first, given, methodcaller("dump"))
    number = first.numbers[-1]
    plan = Plan(recording, seed=runs.seed, acknowledgements=(), check=runs.deadline.check)
    return _Recovery(
        f"After a power loss at operation {number} ({first.at(number).text}), while it recovered: ",
        _Recorded(Metadata(recording), out, promises),
        plan,
        iter(plan),
    )


def _started(
    runs: Runs, first: Candidate, given: Metadata, then: Callable[[Subject], object]
) -> tuple[Recording, Path]:
    """The recording of a start on this state and what comes right after it, and its file. Raises RunError."""
    folder, out = runs.workspace.place()
    given.write(first, folder)
    # A recovery that fails by itself belongs to the layer before this one.
    recording, _ = runs.recorded_in(folder, out, Injection(), then)
    shutil.rmtree(folder, ignore_errors=True)
    return recording, out
