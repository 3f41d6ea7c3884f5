"""The judge of what a subject answers while something is away, against subjects made by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.conformance.faults.deprived import Deprived, judge_deprived, judge_running
from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.naming import named
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.subject import (
    Facts,
    Op,
    Outcome,
    Subject,
    SubjectAnswer,
    SubjectError,
    SubjectHangError,
    SubjectPartlyError,
)

WORKLOAD = replace(puts(4, seed=4), once=True)
FIRST = frozenset({1, 2, 3})
LATE = WORKLOAD.ops[3]


class Guard(Subject):
    """It keeps its input in `there`, and recognises a repeated operation. Each case overrides one method."""

    def __init__(self, *there: int) -> None:
        self.there = set(there or FIRST)
        self.stopped = False

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        pass

    def submit(self, op: Op) -> SubjectAnswer:
        now = time.monotonic_ns()
        new = op.number not in self.there
        self.there.add(op.number)
        return SubjectAnswer(Outcome.OK, now, now, new=new)

    def dump(self) -> Facts:
        return WORKLOAD.after(self.there)

    def stop(self) -> None:
        self.stopped = True


class FailsToStart(Guard):
    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        raise SubjectError("it exited with status 1: no such file")


class HangsAtItsStart(Guard):
    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        raise SubjectHangError("no answer within 10 s")


class RefusesToShow(Guard):
    def dump(self) -> Facts:
        raise SubjectError("ERROR damaged")


class HangsAtItsFacts(Guard):
    def dump(self) -> Facts:
        raise SubjectHangError("no answer within 5 s")


class Refuses(Guard):
    def submit(self, op: Op) -> SubjectAnswer:
        return SubjectAnswer(Outcome.REFUSED, time.monotonic_ns(), text="the store is away")


class Hangs(Guard):
    def submit(self, op: Op) -> SubjectAnswer:
        return SubjectAnswer(Outcome.SILENT, time.monotonic_ns(), text="no answer within 5 s", hung=True)


class Dies(RefusesToShow):
    def submit(self, op: Op) -> SubjectAnswer:
        return SubjectAnswer(Outcome.SILENT, time.monotonic_ns(), text="it exited with status 1")


class Admits(RefusesToShow):
    """It shows nothing, and takes everything for new."""

    def submit(self, op: Op) -> SubjectAnswer:
        now = time.monotonic_ns()
        return SubjectAnswer(Outcome.OK, now, now, new=True)


class SaysSo(Guard):
    """It answers OK, and has it nowhere."""

    def submit(self, op: Op) -> SubjectAnswer:
        now = time.monotonic_ns()
        return SubjectAnswer(Outcome.OK, now, now)


class Changes(Guard):
    def dump(self) -> Facts:
        return {**super().dump(), "k1.left": "v9"}


class HalfShown(Guard):
    def dump(self) -> Facts:
        return {name: value for name, value in super().dump().items() if name != "k3.left"}


class TellsLess(Guard):
    """Once it has shown all, and then not any more."""

    def submit(self, op: Op) -> SubjectAnswer:
        self.there.discard(2)
        return SubjectAnswer(Outcome.ERROR, time.monotonic_ns(), text="away")


@pytest.mark.parametrize(
    ("subject", "kind", "words"),
    [
        (Guard(), CrashClass.CLEAN, ""),
        (FailsToStart(), CrashClass.CLEAN, ""),
        (RefusesToShow(), CrashClass.CLEAN, ""),
        (Refuses(), CrashClass.CLEAN, ""),
        (Dies(), CrashClass.CLEAN, ""),
        (HangsAtItsStart(), CrashClass.UNRECOVERABLE, "a start, or a loud failure, in its time; got it hangs"),
        (HangsAtItsFacts(), CrashClass.UNRECOVERABLE, "it hangs: no answer within 5 s"),
        (
            Hangs(),
            CrashClass.UNRECOVERABLE,
            f"{named(WORKLOAD.ops[0])}, sent again, to be answered, or refused, in its time",
        ),
        (Guard(1, 2), CrashClass.LOST, "gone is operation 3"),
        (Guard(1, 3), CrashClass.LOST, "gone is operation 2"),
        (Guard(9), CrashClass.LOST, "no facts at all, as if nothing had ever been"),
        (Admits(), CrashClass.INVENTED, f"{named(WORKLOAD.ops[0])}, sent again, to be known from before, or refused"),
        (SaysSo(), CrashClass.LOST, "gone is operation 4"),
        (Changes(), CrashClass.INVENTED, "k1.left is 'v9', which no operation set"),
        (HalfShown(), CrashClass.TORN, "k3.left is absent"),
        (TellsLess(), CrashClass.LOST, "gone is operation 2"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Guard) else None,
)
def test_what_is_shown_and_answered_has_to_be_true(
    subject: Guard, kind: CrashClass, words: str, tmp_path: Path
) -> None:
    seen = judge_deprived(subject, tmp_path, WORKLOAD, FIRST, FIRST, [LATE])
    assert seen.verdict.kind is kind, str(seen.verdict)
    assert words in str(seen.verdict)
    assert subject.stopped


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        (Guard(1, 2), CrashClass.CLEAN),
        (Guard(2), CrashClass.CLEAN),
        (Guard(9), CrashClass.CLEAN),
        (Admits(), CrashClass.CLEAN),
        (HalfShown(), CrashClass.TORN),
        (Changes(), CrashClass.INVENTED),
        (SaysSo(), CrashClass.LOST),
        (TellsLess(), CrashClass.LOST),
        (HangsAtItsFacts(), CrashClass.UNRECOVERABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Guard) else None,
)
def test_an_older_state_may_do_and_a_wrong_one_never(subject: Guard, kind: CrashClass, tmp_path: Path) -> None:
    seen = judge_deprived(subject, tmp_path, WORKLOAD, frozenset(), FIRST, [LATE])
    assert seen.verdict.kind is kind, str(seen.verdict)


def test_what_was_done_meanwhile_is_told(tmp_path: Path) -> None:
    seen = judge_deprived(Guard(), tmp_path, WORKLOAD, FIRST, FIRST, [LATE])
    assert seen == Deprived(seen.verdict, WORKLOAD.after(range(1, 5)), frozenset({1, 2, 3, 4}), *[FIRST | {4}] * 2)
    assert judge_deprived(FailsToStart(), tmp_path, WORKLOAD, FIRST, FIRST, [LATE]).done == frozenset()
    seen = judge_deprived(TellsLess(1, 2, 3), tmp_path, replace(WORKLOAD, once=False), frozenset(), FIRST, [LATE])
    assert (seen.done, seen.may) == (frozenset(), frozenset({4}))


def test_what_was_there_before_may_be_gone_only_with_what_came_after(tmp_path: Path) -> None:
    class Before(Guard):
        def dump(self) -> Facts:
            return {}

        def submit(self, op: Op) -> SubjectAnswer:
            return SubjectAnswer(Outcome.REFUSED, time.monotonic_ns(), text="no")

    workload = replace(WORKLOAD, before={"name": "value", "other": "value"})
    assert judge_deprived(Before(), tmp_path, workload, frozenset(), FIRST, [LATE]).verdict.kind is CrashClass.CLEAN
    verdict = judge_deprived(Before(), tmp_path, workload, FIRST, FIRST, [LATE]).verdict
    assert verdict.kind is CrashClass.LOST
    assert "no facts at all" in str(verdict)


class ShowsPart(Guard):
    """It refuses to report the rows, and denies the second operation elsewhere."""

    def __init__(self, told: Facts) -> None:
        super().__init__()
        self.told = told

    def dump(self) -> Facts:
        raise SubjectPartlyError("rows: away", self.told, lambda name: name.endswith(".left"))


LEFT = {name: value for name, value in WORKLOAD.after(FIRST).items() if name.endswith(".left")}


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (LEFT, CrashClass.CLEAN),
        ({**LEFT, "k1.left": "v9"}, CrashClass.INVENTED),
        ({name: value for name, value in LEFT.items() if name != "k2.left"}, CrashClass.LOST),
    ],
)
def test_what_it_tells_while_it_refuses_the_rest_has_to_be_true(told: Facts, kind: CrashClass, tmp_path: Path) -> None:
    class Part(ShowsPart):
        def submit(self, op: Op) -> SubjectAnswer:
            return SubjectAnswer(Outcome.REFUSED, time.monotonic_ns(), text="no")

    assert judge_deprived(Part(told), tmp_path, WORKLOAD, FIRST, FIRST, [LATE]).verdict.kind is kind


def test_one_that_runs_is_held_to_the_same() -> None:
    assert judge_running(Guard(), WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    assert judge_running(Dies(), WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    assert judge_running(Guard(1), WORKLOAD, FIRST, FIRST).kind is CrashClass.LOST
    assert judge_running(Admits(), WORKLOAD, FIRST, FIRST).kind is CrashClass.INVENTED
    assert judge_running(HangsAtItsFacts(), WORKLOAD, FIRST, FIRST).kind is CrashClass.UNRECOVERABLE


class SaysNew(Guard):
    def submit(self, op: Op) -> SubjectAnswer:
        return replace(super().submit(op), new=True)


def test_an_acknowledged_operation_that_is_done_now_again_is_an_effect_twice(tmp_path: Path) -> None:
    """After a crash as well: the facts are the same, and the answer shows it."""
    verdict = judge(SaysNew(), tmp_path, WORKLOAD, FIRST, FIRST)
    assert verdict.kind is CrashClass.INVENTED
    assert "the retry of operation 1" in verdict.expected
    assert verdict.came == "an answer that it was done now"
    assert judge(Guard(), tmp_path, WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    # Where the same may be asked for again, it is not sent again.
    assert judge(SaysNew(), tmp_path, replace(WORKLOAD, once=False), FIRST, FIRST).kind is CrashClass.CLEAN


class RefusesAgain(Guard):
    """What is there it does not know for what was sent, as who finds half of what it wrote."""

    def submit(self, op: Op) -> SubjectAnswer:
        answer = super().submit(op)
        return SubjectAnswer(Outcome.REFUSED, answer.sent_at, text="EXISTS") if op.number in FIRST else answer


def test_a_refusal_is_no_answer_to_a_retry_that_must_be_known_from_before(tmp_path: Path) -> None:
    prior = replace(WORKLOAD, prior=True)
    # Acknowledged, and in flight but there.
    for must in (FIRST, frozenset[int]()):
        verdict = judge(RefusesAgain(), tmp_path, prior, must, FIRST)
        assert verdict.kind is CrashClass.TORN
        assert "the retry of operation 1" in verdict.expected
        assert "accepted as known from before" in verdict.expected
        assert "a refusal (EXISTS)" in verdict.came
        assert judge(Guard(), tmp_path, prior, must, FIRST).kind is CrashClass.CLEAN
        # Where a refusal is as good, it is no failure.
        assert judge(RefusesAgain(), tmp_path, WORKLOAD, must, FIRST).kind is CrashClass.CLEAN
    # While something is taken away, to refuse is right.
    seen = judge_deprived(RefusesAgain(), tmp_path, prior, FIRST, FIRST, [LATE])
    assert seen.verdict.kind is CrashClass.CLEAN
    with pytest.raises(ValueError, match="expected `once`"):
        replace(WORKLOAD, once=False, prior=True)


class Locked(Guard):
    """It refuses new operations while `away`; one that is not `right` remembers that it has refused."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        self.right, self.away, self.refused = right, False, set[int]()

    @contextmanager
    def taken(self) -> Iterator[frozenset[int]]:
        """What it needs is away."""
        self.away = True
        yield frozenset()
        self.away = False

    def submit(self, op: Op) -> SubjectAnswer:
        if op.number not in self.there and (self.away or op.number in self.refused):
            self.refused |= set() if self.right else {op.number}
            return SubjectAnswer(Outcome.REFUSED, time.monotonic_ns(), text="BUSY")
        return super().submit(op)


@pytest.mark.parametrize("right", [True, False])
def test_the_same_process_does_what_it_has_refused_once_nothing_is_lacking(right: bool, tmp_path: Path) -> None:
    subject = Locked(right=right)
    seen = judge_deprived(subject, tmp_path, WORKLOAD, FIRST, FIRST, [LATE], taking=subject.taken, again=True)
    assert seen.verdict.kind is (CrashClass.CLEAN if right else CrashClass.TORN)
    assert (LATE.number in seen.done) is right


def test_what_was_done_before_a_part_was_taken_away_is_owed(tmp_path: Path) -> None:
    class Forgets(Guard):
        @contextmanager
        def taken(self) -> Iterator[frozenset[int]]:
            """Its store is away, and it begins anew without what it did last."""
            self.submit(LATE)
            self.there -= {LATE.number}
            yield frozenset({LATE.number})

    subject = Forgets()
    seen = judge_deprived(subject, tmp_path, WORKLOAD, FIRST, FIRST, [LATE], taking=subject.taken)
    assert seen.verdict.kind is CrashClass.LOST
