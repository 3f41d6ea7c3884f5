"""Judges a subject that lacks a part it works on: it may refuse, but must not act as if the part were there.

A loud failure is right, a hang is wrong, and "not seen yet" about an acknowledged operation is the worst answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

from holdfast.conformance.faults.naming import named, stranger
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, compare, seen, untrue
from holdfast.conformance.faults.subject import (
    Facts,
    Op,
    Outcome,
    Subject,
    SubjectAnswer,
    SubjectError,
    SubjectExposedError,
    SubjectHangError,
    SubjectPartlyError,
    SubjectReopenedError,
    Workload,
)


@dataclass(frozen=True, slots=True)
class Deprived:
    """What a subject did without something. `shown` are the facts that it showed last, None if it refused to.

    `reported` are the operations that these facts report, `done` those that it answered OK. `may` are these and those
    that were neither answered OK nor refused.
    """

    verdict: CrashOutcome
    shown: Facts | None = None
    reported: frozenset[int] = frozenset()
    done: frozenset[int] = frozenset()
    may: frozenset[int] = frozenset()


class _BrokenError(Exception):
    """A promise that was broken; `verdict` says how."""

    def __init__(self, verdict: CrashOutcome) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


@dataclass(slots=True)
class _Session:
    """A subject with its facts and answers so far. It must show the operations `owed`, and may show each of `may`."""

    subject: Subject
    workload: Workload
    owed: AbstractSet[int]
    may: AbstractSet[int]
    # What it must show at first. Each fact that it shows and each OK that it answers adds to it.
    first: AbstractSet[int]
    shown: Facts | None = None
    # Why it showed none.
    unshown: str = ""
    done: frozenset[int] = frozenset()
    open: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()

    @property
    def reported(self) -> frozenset[int]:
        """The operations that the facts report which it showed last."""
        return seen(self.workload, self.shown or {})

    def look(self) -> None:
        """Ask it for its facts, if it shows them. Raises _BrokenError."""
        try:
            found = self.subject.dump()
        except SubjectHangError as error:
            raise _hang("its facts, or a loud refusal to show them", str(error)) from error
        except SubjectError as error:
            self.shown, self.unshown = None, str(error)
            if isinstance(error, SubjectPartlyError):
                self._look_at_part(error)
            return
        verdict = compare(older(self.workload, found, self.first), found, self.owed, self.may)
        if verdict.kind is not CrashClass.CLEAN:
            broken = dataclasses.replace(verdict, expected=f"a loud refusal, or {verdict.expected}")
            if not found:
                came = "no facts at all, as if nothing had ever been"
                broken = dataclasses.replace(broken, kind=CrashClass.LOST, came=came)
            raise _BrokenError(broken)
        self.shown = found

    def _look_at_part(self, partly: SubjectPartlyError) -> None:
        """The facts that it reports while it refuses the rest. Raises _BrokenError: a denial is an answer."""
        expected = f"a loud refusal ({partly}), and nothing told that is not true"
        known = {*self.workload.before.items()}
        known |= {fact for op in self.workload.every if op.number in self.may for fact in op.facts.items()}
        strange = sorted({*partly.reported.items()} - known)
        if strange:
            raise _BrokenError(CrashOutcome(CrashClass.INVENTED, expected, stranger(self.workload, strange[0])))
        for op in self.workload.every:
            denied = [
                name for name, value in op.facts.items() if partly.about(name) and partly.reported.get(name) != value
            ]
            if op.number in self.owed and denied:
                came = f"{denied[0]} is denied, which {named(op)} had set: not seen yet"
                raise _BrokenError(CrashOutcome(CrashClass.LOST, expected, came))

    def ask(self, op: Op, what: str) -> SubjectAnswer:
        """Raises _BrokenError if it hangs."""
        answer = self.subject.submit(op)
        if answer.outcome is Outcome.OK:
            self.done |= {op.number}
        elif answer.outcome is Outcome.REFUSED:
            self.refused |= {op.number}
        else:
            self.open |= {op.number}
        if answer.hung:
            raise _hang(f"{what} to be answered, or refused", answer.text)
        return answer

    def ask_all_again(self) -> None:
        """Send again what it must know. Raises _BrokenError for an answer that it was done now."""
        for op in self.workload.every if self.workload.once else ():
            if op.number not in self.owed or op.anew:
                continue
            what = f"{named(op)}, sent again,"
            answer = self.ask(op, what)
            if answer.new:
                came = "an answer that it was done now: not seen yet"
                raise _BrokenError(
                    CrashOutcome(CrashClass.INVENTED, f"{what} to be known from before, or refused", came)
                )
            if answer.outcome is Outcome.SILENT:
                # The line is no longer usable.
                return


def judge_deprived(
    subject: Subject,
    folder: Path,
    workload: Workload,
    owed: AbstractSet[int],
    acknowledged: AbstractSet[int],
    late: Sequence[Op],
    *,
    under: Sequence[str] = (),
    taking: Callable[[], AbstractContextManager[frozenset[int] | None]] = nullcontext,
    again: bool = False,
) -> Deprived:
    """Start a subject in a folder that lacks something, and compare its answers with the true state.

    If it shows its facts, all of `owed` must be there, and of the other operations of `acknowledged` each whole or not
    at all; nothing else. `late` are new writes. `under` goes before the command, `taking` begins once it has started.
    What it gives are those of `late` that were done until then. `again`: what was taken is there again after it, and
    the same process does what it has refused.
    """
    session = _Session(subject, workload, owed, acknowledged, owed)

    def act() -> None:
        with ExitStack() as stack:
            if _started(subject, folder, under):
                done = stack.enter_context(taking()) or frozenset()
                session.done = done
                session.owed |= done
                session.may |= done
                session.first |= done
                _ask_all(session, [op for op in late if op.number not in done])
        if again:
            _ask_refused(session, late)

    return _judged(session, act)


def judge_overtaken(
    subject: Subject,
    folder: Path,
    workload: Workload,
    acknowledged: AbstractSet[int],
    op: Op,
    *,
    under: Sequence[str] = (),
    taking: Callable[[], AbstractContextManager[object]],
) -> Deprived:
    """Start a subject where nothing is lacking. What `taking` takes away begins right before one new operation."""
    session = _Session(subject, workload, acknowledged, acknowledged, acknowledged)

    def act() -> None:
        if _started(subject, folder, under):
            session.look()
            with taking():
                _ask_new(session, (op,))

    return _judged(session, act)


def _judged(session: _Session, act: Callable[[], None]) -> Deprived:
    verdict = CrashOutcome(CrashClass.CLEAN)
    try:
        act()
    except _BrokenError as broken:
        verdict = broken.verdict
    finally:
        with contextlib.suppress(SubjectError):
            session.subject.stop()
    return Deprived(verdict, session.shown, session.reported, session.done, session.done | session.open)


def judge_running(subject: Subject, workload: Workload, must: AbstractSet[int], may: AbstractSet[int]) -> CrashOutcome:
    """Judge a running subject by the facts that it shows and by its answers to repeated requests. It may fail."""
    session = _Session(subject, workload, must, may, must)
    try:
        session.look()
        session.ask_all_again()
    except _BrokenError as broken:
        return broken.verdict
    return CrashOutcome(CrashClass.CLEAN)


def _started(subject: Subject, folder: Path, under: Sequence[str]) -> bool:
    try:
        subject.start(folder, under)
    except SubjectHangError as error:
        raise _hang("a start, or a loud failure", str(error)) from error
    except (SubjectExposedError, SubjectReopenedError) as error:
        # It did not fail to start, so that is no refusal.
        raise _BrokenError(CrashOutcome(CrashClass.INVENTED, error.expected, str(error))) from error
    except SubjectError:
        return False
    return True


def _ask_all(session: _Session, late: Sequence[Op]) -> None:
    session.look()
    # A fact that it has shown must stay.
    session.owed |= session.reported
    session.ask_all_again()
    _ask_new(session, late)


def _ask_new(session: _Session, late: Sequence[Op]) -> None:
    for op in late:
        answer = session.ask(op, "a new write")
        verdict = untrue(op, answer)
        if verdict.kind is not CrashClass.CLEAN:
            raise _BrokenError(verdict)
        if answer.outcome is Outcome.SILENT:
            # The line is no longer usable.
            break
    else:
        session.owed |= session.done
        session.may |= session.done | session.open
        session.look()


def _ask_refused(session: _Session, late: Sequence[Op]) -> None:
    refused = [op for op in late if op.number in session.refused and not session.open]
    if not refused:
        return
    # What was refused must not have happened by half. Done again, that would not show.
    session.look()
    if session.shown is None:
        raise _BrokenError(CrashOutcome(CrashClass.TORN, "its facts now that nothing is lacking", session.unshown))
    for op in refused:
        answer = session.ask(op, f"{named(op)}, sent again,")
        if answer.outcome is Outcome.REFUSED:
            came = f"a refusal ({answer.text}): remembered, but not done"
            raise _BrokenError(
                CrashOutcome(CrashClass.TORN, f"{named(op)} to be done now that nothing is lacking", came)
            )


def older(workload: Workload, found: Facts, owed: AbstractSet[int]) -> Workload:
    """The workload for the judgement: where nothing is owed, facts from before it may be gone like its own."""
    if owed:
        return workload
    return dataclasses.replace(workload, before={name: old for name, old in workload.before.items() if name in found})


def during(when: str, verdict: CrashOutcome) -> CrashOutcome:
    """A verdict on a later event, with a text that says so."""
    if verdict.kind is CrashClass.CLEAN:
        return verdict
    return dataclasses.replace(verdict, expected=f"{when}: {verdict.expected}")


def _hang(expected: str, came: str) -> _BrokenError:
    return _BrokenError(CrashOutcome(CrashClass.UNRECOVERABLE, f"{expected}, in its time", f"it hangs: {came}"))
