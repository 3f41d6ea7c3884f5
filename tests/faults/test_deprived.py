"""The judge of what a subject answers while something is away, against subjects made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from holdfast.conformance.faults.deprived import Deprived, judge_deprived, judge_running
from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.naming import named
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.subject import (
    Facts,
    Op,
    Outcome,
    SubjectAnswer,
    SubjectError,
    SubjectHangError,
    SubjectPartlyError,
    Workload,
)
from tests.faults.fakes import NOWHERE, Fake, fails, says

WORKLOAD = replace(puts(4, seed=4), once=True)
FIRST = frozenset({1, 2, 3})
LATE = WORKLOAD.ops[3]


def guard(*there: int, **instead: Callable[..., Any]) -> Fake:
    """It has these operations, and does something in another way."""
    return Fake(WORKLOAD.after(there or FIRST), **instead)


def shows_less(subject: Fake, _: Op) -> SubjectAnswer:
    """Once it has shown all, and then not any more."""
    subject.facts = {name: value for name, value in subject.facts.items() if not name.startswith("k2.")}
    return says(Outcome.ERROR, "away")()


def changes(_: Fake, facts: Facts) -> Facts:
    """It shows a value that no operation set."""
    return {**facts, "k1.left": "v9"}


def half_shown(_: Fake, facts: Facts) -> Facts:
    """It shows half of an operation."""
    return {name: value for name, value in facts.items() if name != "k3.left"}


def says_new(subject: Fake, op: Op) -> SubjectAnswer:
    """It takes everything for new."""
    return subject.does(op, new=True)


def deprived(subject: Fake, workload: Workload = WORKLOAD, owed: frozenset[int] = FIRST, **more: Any) -> Deprived:
    """What it does in a folder without a file."""
    return judge_deprived(subject, NOWHERE, workload, owed, FIRST, [LATE], **more)


REFUSES_TO_SHOW = fails(SubjectError("ERROR damaged"))
HANGS = fails(SubjectHangError("no answer within 5 s"))
REFUSES = says(Outcome.REFUSED, "the store is away")
# Each shows nothing, and one takes everything for new.
DIES: dict[str, Callable[..., Any]] = {"dump": REFUSES_TO_SHOW, "submit": says(Outcome.SILENT, "it exited")}
ADMITS: dict[str, Callable[..., Any]] = {"dump": REFUSES_TO_SHOW, "submit": says_new}


@pytest.mark.parametrize(
    ("subject", "kind", "words"),
    [
        (guard(), CrashClass.CLEAN, ""),
        (guard(start=fails(SubjectError("it exited with status 1: no such file"))), CrashClass.CLEAN, ""),
        (guard(dump=REFUSES_TO_SHOW), CrashClass.CLEAN, ""),
        (guard(submit=REFUSES), CrashClass.CLEAN, ""),
        (guard(**DIES), CrashClass.CLEAN, ""),
        (guard(start=HANGS), CrashClass.UNRECOVERABLE, "a start, or a loud failure, in its time; got it hangs"),
        (guard(dump=HANGS), CrashClass.UNRECOVERABLE, "it hangs: no answer within 5 s"),
        (
            guard(submit=says(Outcome.SILENT, "no answer within 5 s", hung=True)),
            CrashClass.UNRECOVERABLE,
            f"{named(WORKLOAD.ops[0])}, sent again, to be answered, or refused, in its time",
        ),
        (guard(1, 2), CrashClass.LOST, "gone is operation 3"),
        (guard(1, 3), CrashClass.LOST, "gone is operation 2"),
        (guard(9), CrashClass.LOST, "no facts at all, as if nothing had ever been"),
        (
            guard(**ADMITS),
            CrashClass.INVENTED,
            f"{named(WORKLOAD.ops[0])}, sent again, to be known from before, or refused",
        ),
        (guard(submit=says(Outcome.OK)), CrashClass.LOST, "gone is operation 4"),
        (guard(dump=changes), CrashClass.INVENTED, "k1.left is 'v9', which no operation set"),
        (guard(dump=half_shown), CrashClass.TORN, "k3.left is absent"),
        (guard(submit=shows_less), CrashClass.LOST, "gone is operation 2"),
    ],
)
def test_what_is_shown_and_answered_has_to_be_true(subject: Fake, kind: CrashClass, words: str) -> None:
    seen = deprived(subject)
    assert seen.verdict.kind is kind, str(seen.verdict)
    assert words in str(seen.verdict)
    assert subject.stops


OLDER = {
    CrashClass.CLEAN: (guard(1, 2), guard(2), guard(9), guard(**ADMITS)),
    CrashClass.TORN: (guard(dump=half_shown),),
    CrashClass.INVENTED: (guard(dump=changes),),
    CrashClass.LOST: (guard(submit=says(Outcome.OK)), guard(submit=shows_less)),
    CrashClass.UNRECOVERABLE: (guard(dump=HANGS),),
}


@pytest.mark.parametrize(("kind", "subject"), [(kind, one) for kind, subjects in OLDER.items() for one in subjects])
def test_an_older_state_may_do_and_a_wrong_one_never(kind: CrashClass, subject: Fake) -> None:
    seen = deprived(subject, owed=frozenset())
    assert seen.verdict.kind is kind, str(seen.verdict)


def test_what_was_done_meanwhile_is_told() -> None:
    seen = deprived(guard())
    assert seen == Deprived(seen.verdict, WORKLOAD.after(range(1, 5)), frozenset({1, 2, 3, 4}), *[FIRST | {4}] * 2)
    assert deprived(guard(start=fails(SubjectError("no")))).done == frozenset()
    seen = deprived(guard(submit=shows_less), replace(WORKLOAD, once=False), frozenset())
    assert (seen.done, seen.may) == (frozenset(), frozenset({4}))


def test_what_was_there_before_may_be_gone_only_with_what_came_after() -> None:
    workload = replace(WORKLOAD, before={"name": "value", "other": "value"})
    empty = Fake(submit=REFUSES)
    assert deprived(empty, workload, frozenset()).verdict.kind is CrashClass.CLEAN
    verdict = deprived(empty, workload).verdict
    assert verdict.kind is CrashClass.LOST
    assert "no facts at all" in str(verdict)


LEFT = {name: value for name, value in WORKLOAD.after(FIRST).items() if name.endswith(".left")}


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (LEFT, CrashClass.CLEAN),
        ({**LEFT, "k1.left": "v9"}, CrashClass.INVENTED),
        ({name: value for name, value in LEFT.items() if name != "k2.left"}, CrashClass.LOST),
    ],
)
def test_what_it_tells_while_it_refuses_the_rest_has_to_be_true(told: Facts, kind: CrashClass) -> None:
    partly = fails(SubjectPartlyError("rows: away", told, lambda name: name.endswith(".left")))
    assert deprived(guard(submit=REFUSES, dump=partly)).verdict.kind is kind


def test_one_that_runs_is_held_to_the_same() -> None:
    assert judge_running(guard(), WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    assert judge_running(guard(**DIES), WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    assert judge_running(guard(1), WORKLOAD, FIRST, FIRST).kind is CrashClass.LOST
    assert judge_running(guard(**ADMITS), WORKLOAD, FIRST, FIRST).kind is CrashClass.INVENTED
    assert judge_running(guard(dump=HANGS), WORKLOAD, FIRST, FIRST).kind is CrashClass.UNRECOVERABLE


def test_an_acknowledged_operation_that_is_done_now_again_is_an_effect_twice() -> None:
    """After a crash as well: the facts are the same, and the answer shows it."""
    verdict = judge(guard(submit=says_new), NOWHERE, WORKLOAD, FIRST, FIRST)
    assert verdict.kind is CrashClass.INVENTED
    assert "the retry of operation 1" in verdict.expected
    assert verdict.came == "an answer that it was done now"
    assert judge(guard(), NOWHERE, WORKLOAD, FIRST, FIRST).kind is CrashClass.CLEAN
    # Where the same may be asked for again, it is not sent again.
    several = replace(WORKLOAD, once=False)
    assert judge(guard(submit=says_new), NOWHERE, several, FIRST, FIRST).kind is CrashClass.CLEAN


def refuses_again(subject: Fake, op: Op) -> SubjectAnswer:
    """What is there it does not know for what was sent, as who finds half of what it wrote."""
    return says(Outcome.REFUSED, "EXISTS")() if op.number in FIRST else subject.does(op)


def test_a_refusal_is_no_answer_to_a_retry_that_must_be_known_from_before() -> None:
    prior = replace(WORKLOAD, prior=True)
    # Acknowledged, and in flight but there.
    for must in (FIRST, frozenset[int]()):
        verdict = judge(guard(submit=refuses_again), NOWHERE, prior, must, FIRST)
        assert verdict.kind is CrashClass.TORN
        assert "the retry of operation 1" in verdict.expected
        assert "accepted as known from before" in verdict.expected
        assert "a refusal (EXISTS)" in verdict.came
        assert judge(guard(), NOWHERE, prior, must, FIRST).kind is CrashClass.CLEAN
        # Where a refusal is as good, it is no failure.
        assert judge(guard(submit=refuses_again), NOWHERE, WORKLOAD, must, FIRST).kind is CrashClass.CLEAN
    # While something is taken away, to refuse is right.
    assert deprived(guard(submit=refuses_again), prior).verdict.kind is CrashClass.CLEAN
    with pytest.raises(ValueError, match="expected `once`"):
        replace(WORKLOAD, once=False, prior=True)


@pytest.mark.parametrize("right", [True, False])
def test_the_same_process_does_what_it_has_refused_once_nothing_is_lacking(right: bool) -> None:
    away, refused = list[bool](), set[int]()

    @contextmanager
    def taken() -> Iterator[frozenset[int]]:
        away.append(True)
        yield frozenset()
        away.clear()

    def locked(subject: Fake, op: Op) -> SubjectAnswer:
        """It refuses new operations meanwhile; one that is not right remembers that it has refused."""
        if not op.facts.items() <= subject.facts.items() and (away or op.number in refused):
            refused.update(() if right else (op.number,))
            return says(Outcome.REFUSED, "BUSY")()
        return subject.does(op)

    seen = deprived(guard(submit=locked), taking=taken, again=True)
    assert seen.verdict.kind is (CrashClass.CLEAN if right else CrashClass.TORN)
    assert (LATE.number in seen.done) is right


def test_what_was_done_before_a_part_was_taken_away_is_owed() -> None:
    subject = guard()

    @contextmanager
    def taken() -> Iterator[frozenset[int]]:
        """Its store is away, and it begins anew without what it did last."""
        yield frozenset({LATE.number})

    assert deprived(subject, taking=taken).verdict.kind is CrashClass.LOST
