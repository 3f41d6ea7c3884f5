"""Judges what a crash left: a subject starts on it. It must keep what it acknowledged, and nothing by half.

A recording alone gives no verdict: unsynced bytes are no fault, but a restart that breaks a promise is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path

from holdfast.conformance.faults.naming import differences, gone, half, listed, named, numbers, short, stranger
from holdfast.conformance.faults.subject import (
    Facts,
    Instead,
    Op,
    Outcome,
    Subject,
    SubjectAnswer,
    SubjectError,
    SubjectExposedError,
    SubjectReopenedError,
    Workload,
)


@unique
class CrashClass(StrEnum):
    """What became of a subject after a crash.

    Lost: an acknowledged operation is gone. Torn: an operation is there by half. Unrecoverable: it does not start,
    hangs, talks nonsense or takes no new write; before the first acknowledgement this is a class of its own. Unstable:
    a second restart shows something else. Invented: there is what no operation asked for, or an effect twice.
    """

    CLEAN = "clean"
    LOST = "lost"
    TORN = "torn"
    UNRECOVERABLE = "unrecoverable"
    UNSTABLE = "unstable"
    INVENTED = "invented"
    INIT = "before-first-acknowledgement"


@dataclass(frozen=True, slots=True)
class CrashOutcome:
    """A class, and texts for what was expected and what came."""

    kind: CrashClass
    expected: str = ""
    came: str = ""

    def __str__(self) -> str:
        """One sentence for a person."""
        clean = self.kind is CrashClass.CLEAN
        return self.kind.value if clean else f"{self.kind}: expected {self.expected}; got {self.came}"


_CLEAN = CrashOutcome(CrashClass.CLEAN)


def compare(workload: Workload, found: Facts, must: AbstractSet[int], may: AbstractSet[int]) -> CrashOutcome:
    """Judge the facts alone: all of `must` there, of the rest of `may` each one whole or not at all, nothing else."""
    workload = _interrupted(workload, found, may - must)
    expected, found = _allowed(must, may), _settled(workload, found, must, may)
    strange = [fact for fact in sorted(found.items()) if not _known(workload, fact, may)]
    invented = [fact for fact in strange if not _half(workload, fact, may)]
    if invented:
        return CrashOutcome(CrashClass.INVENTED, expected, listed(stranger(workload, fact) for fact in invented))
    if strange:
        return CrashOutcome(CrashClass.TORN, expected, listed(half(workload, fact) for fact in strange))
    # An operation that shows no fact was not done, or was covered by later ones: the same for the facts.
    shown = seen(workload, found) & may
    whole = workload.after(shown | must)
    if found == whole:
        return _CLEAN
    # A fact that later operations cover is not missing.
    due = [op for op in workload.every if op.number in must and op.facts.items() & whole.items()]
    missing = [op for op in due if op.number not in shown]
    if found == workload.after(shown):
        held = f"{len(due) - len(missing)} of {len(due)} acknowledged operations"
        return CrashOutcome(CrashClass.LOST, expected, f"{held}: gone is {listed(gone(op, found) for op in missing)}")
    return CrashOutcome(CrashClass.TORN, expected, differences(workload, whole, found))


def judge(
    subject: Subject,
    folder: Path,
    workload: Workload,
    must: AbstractSet[int],
    may: AbstractSet[int],
    *,
    instead: bool = False,
) -> CrashOutcome:
    """Start the subject on what a crash left in `folder`, and hold it to its promises; the folder is used up.

    `must` and `may` are numbers of operations (see `Promises`, `History`). It has to start in its time, show what
    `compare` allows, take what was in flight again without a second effect, take a new write, stop, start again, and
    show the same. With `instead` something else is asked for under the names of what was in flight and is not there.
    """
    try:
        return _judge(subject, folder, workload, must, may, instead=instead)
    finally:
        with contextlib.suppress(SubjectError):
            subject.stop()


def untrue(op: Op, answer: SubjectAnswer) -> CrashOutcome:
    """Judge the refusal of an operation that was sent for the first time: its reason has to be true."""
    if answer.outcome is not Outcome.REFUSED or answer.text not in op.untrue:
        return _CLEAN
    came = f"a refusal ({short(answer.text)}), which is true of nothing that is there"
    return CrashOutcome(CrashClass.INVENTED, f"the first sending of {named(op)} to be refused as it is, or done", came)


def _judge(
    subject: Subject,
    folder: Path,
    workload: Workload,
    must: AbstractSet[int],
    may: AbstractSet[int],
    *,
    instead: bool,
) -> CrashOutcome:
    down = CrashClass.UNRECOVERABLE if must or workload.before else CrashClass.INIT
    try:
        subject.start(folder)
    except (SubjectExposedError, SubjectReopenedError) as error:
        return CrashOutcome(CrashClass.INVENTED, error.expected, str(error))
    except SubjectError as error:
        return CrashOutcome(down, "a start on what the crash left", str(error))
    try:
        found = subject.dump()
    except SubjectError as error:
        return CrashOutcome(down, "its facts after the restart", str(error))
    verdict = compare(workload, found, must, may)
    if verdict.kind is not CrashClass.CLEAN:
        return verdict
    workload = _interrupted(workload, found, may - must)
    # What may be done in part may look whole, and have more to do.
    parted = {op.number for op in workload.every if op.apart}
    there: AbstractSet[int] = (seen(workload, found) & may) - parted | must
    known = [op for op in workload.every if workload.once and op.number in must and not op.anew]
    # After each all facts are looked at, which of a long session would take minutes.
    known = [*known[:2], *known[-3:]] if workload.long else known
    flying = _in_flight(workload, must, may)
    others = [op.instead for op in flying if instead and op.instead is not None and op.number not in there]
    for other in others:
        answer = subject.submit(other.asked)
        if answer.outcome is not Outcome.OK:
            came = f"{answer.outcome} ({short(answer.text)}), and nothing of it there: remembered, but not done"
            return CrashOutcome(CrashClass.TORN, f"{short(other.asked.text)} to be done in place of what was not", came)
    if others:
        about = tuple(name for other in others for name in other.about)
        subject, workload = _Hiding(subject, about), _hidden(workload, {other.asked.number for other in others}, about)
        flying = [op for op in flying if op.instead not in others]
    asked = [*known, *flying, workload.probe]
    for place, op in enumerate(asked, start=1):
        half = frozenset(each.number for each in asked[place:-1] if each.apart)
        verdict, found, there = _again(subject, workload, op, there, down, half)
        if verdict.kind is not CrashClass.CLEAN:
            return verdict
    try:
        subject.stop()
    except SubjectError as error:
        return CrashOutcome(down, "a stop after the restart", str(error))
    return _second_start(subject, folder, workload, found, others)


def _in_flight(workload: Workload, must: AbstractSet[int], may: AbstractSet[int]) -> list[Op]:
    """The operations that a client would send again. Not a covered one: done late, it would cover a later one."""
    asked = (*workload.ops, *workload.later)
    return [
        op
        for op in asked
        if op.number in may - must
        and not any(
            later.number > op.number and later.number in may and later.facts.keys() & op.facts.keys() for later in asked
        )
    ]


def _again(
    subject: Subject, workload: Workload, op: Op, there: AbstractSet[int], down: CrashClass, half: AbstractSet[int]
) -> tuple[CrashOutcome, Facts, AbstractSet[int]]:
    """Send again what was in flight, or the probe for the first time: the verdict, the facts, what is there.

    Those of `half` may still be done in part.
    """
    new = op is workload.probe
    what = f"a new write ({short(op.text)})" if new else f"the retry of {named(op)}"
    answer = subject.submit(dataclasses.replace(op, again=not new))
    if answer.outcome is Outcome.REFUSED and not new:
        if op.number not in there:
            came = f"a refusal ({short(answer.text)}), and nothing of it there: remembered, but not done"
            return CrashOutcome(CrashClass.TORN, f"{what} to be done, as its first sending was not", came), {}, there
        if workload.prior:
            came = f"a refusal ({short(answer.text)}): what is there cannot be known for what was sent"
            return CrashOutcome(CrashClass.TORN, f"{what} to be accepted as known from before", came), {}, there
    elif answer.outcome is not Outcome.OK and not _says_again(op, answer, there):
        came = f"{answer.outcome}: {short(answer.text)}"
        return CrashOutcome(down, f"{what} to be accepted after the restart", came), {}, there
    if answer.new and op.number in there and not op.anew:
        return (
            CrashOutcome(CrashClass.INVENTED, f"{what} to be known from before", "an answer that it was done now"),
            {},
            there,
        )
    there = there | {op.number}
    try:
        found = subject.dump()
    except SubjectError as error:
        return CrashOutcome(down, f"its facts after {what}", str(error)), {}, there
    verdict = compare(workload, found, there, there | half)
    if verdict.kind is CrashClass.CLEAN:
        return verdict, found, there
    expected = f"after {what} {verdict.expected}" + ("" if new else ", each with one effect")
    return dataclasses.replace(verdict, expected=expected), found, there


def _says_again(op: Op, answer: SubjectAnswer, there: AbstractSet[int]) -> bool:
    """Whether a command fails because it was done before. Its facts are asked for after that."""
    return op.command and op.number in there and answer.outcome is Outcome.ERROR


def _second_start(
    subject: Subject, folder: Path, workload: Workload, before: Facts, others: Sequence[Instead]
) -> CrashOutcome:
    expected = "a second restart to show the same as the first"
    try:
        subject.start(folder)
        found = subject.dump()
        whole = [(other, subject.submit(other.whole)) for other in others]
        subject.stop()
    except (SubjectExposedError, SubjectReopenedError) as error:
        return CrashOutcome(CrashClass.INVENTED, error.expected, str(error))
    except SubjectError as error:
        return CrashOutcome(CrashClass.UNSTABLE, expected, str(error))
    if found != before:
        return CrashOutcome(CrashClass.UNSTABLE, expected, differences(workload, before, found))
    for other, answer in whole:
        if answer.outcome is not Outcome.OK:
            came = f"{answer.outcome}: {short(answer.text)} to {short(other.whole.text)}"
            return CrashOutcome(
                CrashClass.TORN, f"{short(other.asked.text)} to be whole, which came after half of another", came
            )
    return _CLEAN


@dataclass(frozen=True, slots=True)
class _Hiding(Subject):
    """A subject without the facts whose names begin with one of `about`."""

    subject: Subject
    about: tuple[str, ...]

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        self.subject.start(folder, under)

    def submit(self, op: Op) -> SubjectAnswer:
        return self.subject.submit(op)

    def dump(self) -> Facts:
        return _without(self.subject.dump(), self.about)

    def stop(self) -> None:
        self.subject.stop()


def _without(facts: Facts, about: tuple[str, ...]) -> Facts:
    return {name: value for name, value in facts.items() if not name.startswith(about)}


def _hidden(workload: Workload, numbers: AbstractSet[int], about: tuple[str, ...]) -> Workload:
    """The workload without these operations, which do nothing in it, and without such facts."""

    def left(op: Op) -> Op:
        return dataclasses.replace(op, facts={}, idle=True) if op.number in numbers else op

    return dataclasses.replace(_changed(workload, left), before=_without(workload.before, about))


def _changed(workload: Workload, change: Callable[[Op], Op]) -> Workload:
    return dataclasses.replace(workload, ops=tuple(map(change, workload.ops)), later=tuple(map(change, workload.later)))


def _interrupted(workload: Workload, found: Facts, numbers: AbstractSet[int]) -> Workload:
    """The workload, without what follows those operations of which the effect alone is there."""

    def left(op: Op) -> Op:
        effect = _without(op.facts, op.follows) if op.follows and op.number in numbers else op.facts
        alone = effect.items() <= found.items() and not op.facts.items() <= found.items()
        return dataclasses.replace(op, facts=effect) if alone else op

    return _changed(workload, left)


def _settled(workload: Workload, found: Facts, must: AbstractSet[int], may: AbstractSet[int]) -> Facts:
    """The facts, but as before an operation that may be done in part, where it is."""
    for op in workload.every:
        if op.apart and op.number in may - must and not op.facts.items() <= found.items():
            rest = {name: value for name, value in found.items() if not name.startswith(op.apart)}
            found = rest | {name: value for name, value in workload.before.items() if name.startswith(op.apart)}
    return found


def seen(workload: Workload, found: Facts) -> frozenset[int]:
    """The operations that at least one fact reports."""
    return frozenset(
        op.number for op in workload.every if any(found.get(name) == value for name, value in op.facts.items())
    )


def _known(workload: Workload, fact: tuple[str, str], may: AbstractSet[int]) -> bool:
    """Whether something that may be there set this fact."""
    return fact in workload.before.items() or any(fact in op.facts.items() for op in workload.every if op.number in may)


def _half(workload: Workload, fact: tuple[str, str], may: AbstractSet[int]) -> bool:
    """Whether this is the beginning of a fact that may be there; zeros are bytes that never reached the disk."""
    name, value = (part.split("\0", 1)[0] for part in fact)
    return any(
        (known == name and whole.startswith(value)) or (not value and known.startswith(name))
        for op in workload.every
        if op.number in may
        for known, whole in op.facts.items()
    )


def _allowed(must: AbstractSet[int], may: AbstractSet[int]) -> str:
    """A text for the facts that may be found."""
    text = f"all of operation {numbers(must)} (acknowledged)" if must else "no operation (none was acknowledged)"
    rest = may - must
    return f"{text}, and operation {numbers(rest)} whole or not at all" if rest else f"{text}, and nothing else"
