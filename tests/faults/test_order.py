"""At which points of a run a layer leaves the same state, and which points of an operation lie between its parts."""

from __future__ import annotations

import pytest

from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.order import (
    failing_from,
    in_place_first,
    killed_before,
    parted,
    struck_at,
    within_a_write,
    write_from,
)
from holdfast.conformance.faults.recording import (
    Action,
    Ending,
    Entry,
    Event,
    Named,
    Names,
    Operation,
    Recording,
    Sync,
    Type,
    Unnamed,
    Write,
)
from holdfast.conformance.faults.subject import Outcome, perform
from tests.faults.fakes import Fake, says


def recording(*actions: Action) -> Recording:
    made = tuple(Operation(number, 10 * number, 1, "call", action) for number, action in enumerate(actions, start=1))
    return Recording(("store",), (), made, Ending(0))


RUN = recording(Write(1, 0, b"head"), Sync(1), Sync(2), Write(1, 4, b"x"), Event("pipe", 1), Write(1, 5, b"more"))


def test_kills_around_syncs_leave_one_state() -> None:
    assert struck_at(killed_before(RUN), range(1, 7)) == [1, 2, 5, 6]
    # What comes first in the order stays first.
    assert struck_at(killed_before(RUN), [4, 1, 3, 6]) == [2, 1, 6]


def test_only_writes_with_a_half_are_torn_or_shortened() -> None:
    assert struck_at(within_a_write(RUN), range(1, 7)) == [1, 6]
    assert struck_at(write_from(RUN), [2, 3, 1]) == [6, 1]


def test_what_leaves_for_the_outside_does_not_fail() -> None:
    assert struck_at(failing_from(RUN), [5, 6, 2]) == [6, 2]


def test_an_operation_is_half_done_behind_its_first_syncs_and_the_heaviest() -> None:
    one = recording(*(each for size in (3, 1, 2, 1, 9, 8) for each in (Write(1, 0, b"x" * size), Sync(1))))
    assert parted(one, {1: range(1, 14)}) == [3, 5, 7, 9, 11]
    assert parted(one, {1: range(1, 5), 2: range(20, 30)}) == [3, 3]


def test_an_operation_that_overwrites_a_file_is_struck_in_the_middle_of_that() -> None:
    pages = [Write(1, 4096 * page, b"new") for page in range(4)]
    one = recording(Write(1, 0, bytes(4 * 4096)), Sync(1), *pages, Sync(1), *pages[:2], Sync(1))
    assert parted(one, {1: range(3, 12)})[-1] == 5
    appended = recording(Write(1, 0, b"a"), *(Write(1, size, b"a") for size in range(1, 5)))
    assert parted(appended, {1: range(1, 6)}) == []


def test_an_operation_is_struck_behind_the_first_name_that_it_makes() -> None:
    names = [Names((Named(name, number),)) for number, name in enumerate((b"mark", b"journal"), start=1)]
    one = recording(*names, Names((Unnamed(b"mark", 1),)))
    assert parted(one, {1: range(1, 4)}) == [2]
    assert parted(one, {1: range(3, 4)}) == [3]
    assert parted(one, {1: range(4, 9)}) == []


def test_the_first_points_are_where_a_file_is_written_under_its_own_name() -> None:
    aside = (Names((Named(b"~", 1),)), Write(1, 0, b"x"), Sync(1), Names((Unnamed(b"~", 1), Named(b"a", 1))))
    own = (Names((Named(b"b", 2),)), Write(2, 0, b"x"), Write(2, 0, b"x"), Sync(2), Write(2, 0, b"x"))
    known, later = (
        Write(3, 0, b"x"),
        [(Names((Named(name, file),)), Write(file, 0, b"x")) for name, file in ((b"c", 4), (b"d", 5))],
    )
    run = recording(*aside, *own, known, *later[0], *later[1])
    run = Recording(("store",), (Entry(3, Type.FILE, (b"db",)),), run.operations, Ending(0))
    assert in_place_first(run, [1, 2, 3, 12, 14, 7]) == [1, 12, 2, 14, 3, 7]
    assert in_place_first(run, [9, 10, 1]) == [9, 10, 1]
    assert in_place_first(recording(*aside), [3, 1, 2]) == [3, 1, 2]


# A workload of which what is refused is sent again to the same process.


@pytest.mark.parametrize(
    ("outcomes", "sent"),
    [
        ((Outcome.REFUSED, Outcome.OK, Outcome.OK), [1, 1, 2]),
        ((Outcome.REFUSED, Outcome.REFUSED, Outcome.OK), [1, 1, 2]),
        # Nothing follows an operation whose effect is open.
        ((Outcome.ERROR,), [1]),
        ((Outcome.REFUSED, Outcome.SILENT), [1, 1]),
    ],
)
def test_what_is_refused_is_sent_once_more_and_the_next_one_follows(
    outcomes: tuple[Outcome, ...], sent: list[int]
) -> None:
    answers = map(says, outcomes)
    subject = Fake(submit=lambda *_: next(answers)())
    assert [one.op.number for one in perform(subject, puts(2), again=True).asked] == sent
