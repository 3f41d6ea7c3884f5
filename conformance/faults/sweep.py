"""The layers that need a recording: kills, power loss, failing calls; each time judged by restarts and nothing else.

Every layer is a `Trial` and ends in a `SweepReport`. `Dependencies` has the layers that take away what the
implementation works on.
"""

from __future__ import annotations

import errno
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from holdfast.conformance.faults import naming, power
from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.naming import short
from holdfast.conformance.faults.oracle import CrashClass, judge, untrue
from holdfast.conformance.faults.order import (
    each_kind_first,
    failing_from,
    halves_first,
    in_place_first,
    killed_before,
    parted,
    spread,
    struck_at,
    within_a_write,
    write_from,
)
from holdfast.conformance.faults.report import (
    IN_ONE,
    BrokenPromise,
    Deadline,
    Layer,
    Marks,
    RunError,
    Tally,
    Trial,
    Work,
    summed,
)
from holdfast.conformance.faults.runs import Run, Runs, Send, in_order
from holdfast.conformance.faults.subject import Outcome, perform
from holdfast.conformance.faults.tracer import Injection

# A layer stops at this number of failures: one is enough to say no, some more help to find what they have in common.
MOST_FINDINGS = 5
# Which point of a run a layer strikes in the place of others.
_STRUCK = {
    Layer.KILL: killed_before,
    Layer.TORN_KILL: within_a_write,
    Layer.ERRORS: failing_from,
    Layer.SHORT: write_from,
}
# Of the time that is left, the share in which a file of a new name is looked for, and how many operations follow it.
_LOOKING, _BEYOND = 0.1, 4
# What is refused so that a program falls back to calls that can be observed, and its name in a report.
_REFUSED = {"io_uring_setup": "io_uring", "io_setup": "Linux AIO"}


class Sweep(Runs):
    """All layers against one implementation. Each is a trial, which is given time at once here, or bit by bit."""

    def trial(self, layer: Layer, work: Work | None = None) -> Trial:
        """A layer to be given time. A layer that needs no recording brings its `work`."""
        tally = Tally(layer, seed=self.seed, floor=self._least, most=MOST_FINDINGS)
        return Trial(tally, work or self._recorded(layer), self.deadline)

    def _recorded(self, layer: Layer) -> Work:
        return self._once(layer) if layer in IN_ONE else partial(self._in_both_sessions, layer)

    def _in_both_sessions(self, layer: Layer, tally: Tally) -> Iterator[None]:
        """The layer in a first session, and in a second one on the store that another left."""

        def later(part: Tally) -> Iterator[None]:
            second = None if self.workload.long else self.later()
            # What differs from the first one is only what that arranged.
            part.floor = 0 if second is None else part.floor if self.workload.later else math.ceil(part.floor / 2)
            if second is not None:
                yield from second._once(layer)(part)

        works = {"": self._once(layer), "in a second session": later}
        if layer is Layer.POWER and self.longer is not None:
            works["in a long session"] = self._in_a_long_one
        yield from summed(works, tally)

    def _in_a_long_one(self, tally: Tally) -> Iterator[None]:
        """A power loss after the first use of a file that is made long after the first acknowledgement."""
        yield
        lengthened, tally.notes = self._lengthened()
        tally.floor = 0 if lengthened is None else tally.floor
        if lengthened is not None:
            yield from lengthened._once(tally.layer)(tally)

    def _lengthened(self) -> tuple[Self | None, str]:
        """The same in a session that goes on until it has left such a file, and a few operations more. Raises RunError.

        None where none comes after the usual session; with words for the report if that has none either.
        """
        assert self.longer is not None
        usual, end = len(self.workload.ops), ""
        seen: list[frozenset[str]] = []
        until = Deadline(self.deadline.left * _LOOKING)
        subject = self.subject()
        with self.workspace.begun_folder() as folder, in_order(subject, "in a long session"):
            subject.start(folder)
            for op in self.longer.ops:
                answer = subject.submit(op)
                if answer.outcome is not Outcome.OK:
                    end = f", and the next was answered with {answer.outcome} ({short(answer.text)})"
                if end or not until.left:
                    break
                seen.append(frozenset(os.path.join(at, name) for at, _, files in os.walk(folder) for name in files))
                if len(seen) > usual and seen[-1] - seen[usual - 1]:
                    workload = replace(self.longer, ops=self.longer.ops[: len(seen) + _BEYOND], long=True)
                    return self.another(workload, self.workspace.base, "long-session", 0), ""
        if any(names - seen[0] for names in seen[:usual]):
            return None, ""
        return None, f"; no file of a new name was seen after the first acknowledgement, in {len(seen)} writes{end}"

    def _once(self, layer: Layer) -> Work:
        works: Mapping[Layer, Work] = {
            Layer.POWER: partial(power.losses, self),
            Layer.RECOVERY: partial(power.nested, self),
            Layer.SYNC_ERRORS: partial(power.sync_errors, self),
            Layer.KILL: partial(self._struck, lambda number: Injection(kill=number), "killed before"),
            Layer.TORN_KILL: partial(self._struck, lambda number: Injection(kill=number, torn=True), "killed before"),
            Layer.ERRORS: self._errors(),
            Layer.SHORT: partial(self._struck, lambda number: Injection(short=number), "half a write at"),
        }
        return partial(self._noted, works[layer])

    def _errors(self) -> Work:
        """Calls that fail from one on; and one call that fails, after which what was refused is sent again."""
        error = errno.ENOSPC
        lasting = partial(self._struck, lambda number: Injection(error=error, at=number), "ENOSPC from then on at")
        passing = partial(
            self._struck,
            lambda number: Injection(error=error, at=number, once=True),
            "ENOSPC once at",
            send=partial(perform, again=True),
        )
        return partial(summed, {"": lasting, "and once": passing})

    def _noted(self, work: Work, tally: Tally) -> Iterator[None]:
        """The work of a layer that rests on the recording, with what was refused while that was made."""
        run = self.baseline()
        if (verdict := self.control()).kind is not CrashClass.CLEAN:
            tally.tried = tally.total = 1
            said = "Nothing was done to it: it was ended in order and started again."
            tally.findings.append(BrokenPromise(1, verdict, said, what="session"))
            return
        refused = run.recording.refused
        names = [words for call, words in _REFUSED.items() if call in refused]
        if names:
            tally.notes = f"; {' and '.join(names)} was refused: what it does with it was not seen"
        yield from work(tally)

    def _struck(
        self, fault: Callable[[int], Injection], words: str, tally: Tally, *, send: Send | None = None
    ) -> Iterator[None]:
        """Runs with one fault each, at numbers spread over the baseline's."""
        run = self.baseline()
        numbers = range(1, len(run.recording.operations) + 1)
        tally.noun, ordered = "points", spread(numbers, self.seed)
        if tally.layer is Layer.KILL:
            ordered = halves_first(run.recording, run.windows, ordered, self.seed)
        struck_instead = _STRUCK[tally.layer](run.recording)
        ordered = struck_at(struck_instead, in_place_first(run.recording, ordered))
        tally.total = len(ordered)
        if not ordered:
            tally.has_no_point(run.recording, "write call of two bytes or more")
            return
        halves = parted(run.recording, run.windows) if tally.layer is Layer.KILL else ()
        marked = struck_at(struck_instead, halves)
        ordered = list(dict.fromkeys((*marked, *ordered)))
        most = max(self.further, len(marked)) if self.further else 0
        ordered, kinds = each_kind_first(run.recording, run.windows, ordered, most, frozenset(marked))
        # What passes owes less: most points show what a lasting fault shows there.
        tally.floor = tally.floor if send else max(tally.floor, kinds)
        for number in ordered:
            yield
            struck = self.run(fault(number), whole=False, send=send or perform)
            # The judge uses the folder up.
            before = self.copied(struck.folder)
            if struck.recording.ending.fired:
                must, may = struck.history.must, struck.history.may
                # Half of a write shows in something shorter that is written after it.
                torn = tally.layer is Layer.TORN_KILL
                verdict = judge(self.subject(), struck.folder, self.workload, must, may, instead=torn)
                refusals = [untrue(one.op, one.answer) for one in struck.history.asked]
                verdict = next((one for one in (verdict, *refusals) if one.kind is not CrashClass.CLEAN), verdict)
                tally.tried += 1
                if verdict.kind is not CrashClass.CLEAN:
                    kept, lost = None, ""
                    if before is not None:
                        kept, lost = self.workspace.kept(tally, verdict, partial(copy, before), struck.out)
                    what = naming.call(run.recording, number)
                    said = f"It was {words} operation {number} of the recording ({what}).{lost}"
                    marks = _struck_marks(struck, fault(number))
                    tally.findings.append(BrokenPromise(number, verdict, said, kept, marks=marks))
            # Otherwise the run was shorter this time: nothing was tried.
            struck.remove(before)
        tally.must_be_reached("work that makes the same calls when it is done again")


def self_test() -> str:
    """Why verdicts of these layers mean nothing on this machine; empty if the layers distinguish both known writers."""
    wanted = {"right": True, "wrong": False}
    for kind, clean in wanted.items():
        command = (sys.executable, "-I", "-S", str(Path(__file__).with_name("writers.py")), kind)
        with Sweep(lambda command=command: Lines(command), puts(2)) as sweep:  # type: ignore[misc]
            report = sweep.trial(Layer.POWER).report(0)
        found = {finding.verdict.kind for finding in report.findings}
        if report.unproven or not report.tried or (not report.findings) is not clean or found - {CrashClass.LOST}:
            said = [*report.unproven, *map(str, report.findings)] or [report.tally]
            return f"the self-test's {kind} writer was not known for what it is: {said[0]}"
    return ""


def _struck_marks(struck: Run, fault: Injection) -> Marks:
    """What the picture of a run with a fault shows: it may have ended there, but nothing is lost that was written."""
    acknowledged: Mapping[int, int] = {}
    with suppress(RunError):
        acknowledged = struck.promises.acknowledged
    last = max((one.number for one in struck.recording.operations), default=0)
    return Marks(acknowledged, None if fault.kill is None else last)
