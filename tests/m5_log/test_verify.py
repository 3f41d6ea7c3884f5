"""verify-store finds what is not as it was written, and names it."""

from __future__ import annotations

import pytest

from holdfast.reference_impl.m5_log.terms import Family, RefusedError
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, draft, id_of, raw_of

PARENT = draft(1)
OTHER = draft(2, by="bob")
CHILD = draft(3, parents=[id_of(PARENT), id_of(OTHER)])
PARENT_ID, OTHER_ID, CHILD_ID = (bytes.fromhex(id_of(each)) for each in (PARENT, OTHER, CHILD))
AUTHOR_ROW = derive.key_of("alice") + derive.hlc(3) + CHILD_ID


@pytest.fixture
def three(box: Box) -> Box:
    box.put_all([PARENT, OTHER, CHILD])
    assert box.problems() == []
    return box


def found(box: Box) -> set[tuple[str, bytes]]:
    return {(problem.family, problem.key) for problem in box.problems()}


def test_a_changed_bit_of_an_operation_is_found(three: Box) -> None:
    raw = raw_of(CHILD)
    for at in range(0, len(raw), 7):
        three.alter(Family.OPS, CHILD_ID, raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
        assert ("ops", CHILD_ID) in found(three)
        with pytest.raises(RefusedError):
            three.full()
        with pytest.raises(RefusedError):
            three.parts.observing.get_op(CHILD_ID)


def test_another_valid_operation_under_the_same_id_is_found(three: Box) -> None:
    three.alter(Family.OPS, CHILD_ID, raw_of(OTHER))
    assert ("ops", CHILD_ID) in found(three)
    with pytest.raises(RefusedError):
        three.full()


@pytest.mark.parametrize(
    "edge",
    [
        b"",
        PARENT_ID,
        OTHER_ID + PARENT_ID,
        PARENT_ID + OTHER_ID + PARENT_ID,
        PARENT_ID + bytes(32),
        CHILD_ID,
        bytes(31),
    ],
    ids=["none", "fewer", "reordered", "twice", "missing", "itself", "torn"],
)
def test_a_changed_edge_is_found_and_never_followed(three: Box, edge: bytes) -> None:
    three.alter(Family.EDGES, CHILD_ID, edge)
    assert ("edges", CHILD_ID) in found(three)
    for read in (three.full, three.live, three.latest, three.parts.observing.topo_iter, three.parts.observing.pending):
        with pytest.raises(RefusedError):
            read()


def test_an_edge_that_is_gone_or_has_no_operation_is_found(three: Box) -> None:
    three.alter(Family.EDGES, CHILD_ID, None)
    assert found(three) == {("edges", CHILD_ID)}
    three.alter(Family.EDGES, CHILD_ID, PARENT_ID + OTHER_ID)
    three.alter(Family.EDGES, bytes(32), b"")
    assert found(three) == {("edges", bytes(32))}


def test_a_circle_of_edges_is_found(three: Box) -> None:
    three.alter(Family.EDGES, PARENT_ID, CHILD_ID)
    assert ("edges", PARENT_ID) in found(three)


def test_an_operation_that_is_gone_is_found_although_its_rows_are_gone_as_well(three: Box) -> None:
    three.alter(Family.OPS, PARENT_ID, None)
    assert ("edges", PARENT_ID) in found(three)
    three.alter(Family.EDGES, PARENT_ID, None)
    three.alter(Family.BY_AUTHOR, derive.key_of("alice") + derive.hlc(1) + PARENT_ID, None)
    assert ("ops", b"") in found(three)


def test_by_author_is_compared_both_ways(three: Box) -> None:
    ghost = derive.key_of("alice") + derive.hlc(9) + CHILD_ID
    three.alter(Family.BY_AUTHOR, AUTHOR_ROW, None)
    assert found(three) == {("by_author", AUTHOR_ROW)}
    three.alter(Family.BY_AUTHOR, ghost, b"")
    assert found(three) == {("by_author", AUTHOR_ROW), ("by_author", ghost)}
    with pytest.raises(RefusedError):
        three.full()
    three.alter(Family.BY_AUTHOR, AUTHOR_ROW, b"")
    assert found(three) == {("by_author", ghost)}
    three.alter(Family.BY_AUTHOR, ghost, None)
    three.alter(Family.BY_AUTHOR, AUTHOR_ROW, b"value")
    assert found(three) == {("by_author", AUTHOR_ROW)}


def test_what_waits_is_counted_and_no_problem(box: Box) -> None:
    box.put_all([CHILD, PARENT])
    report = box.parts.verify.run()
    assert (report.operations, report.pending, report.problems) == (2, 1, [])


def test_an_unknown_id_has_no_operation(three: Box) -> None:
    get = three.parts.observing.get_op
    assert get(PARENT_ID) == {"has": True, "op": derive.op(PARENT)}
    for unknown in (bytes(32), PARENT_ID[:31], b"", PARENT_ID + b"\x00"):
        assert get(unknown) == {"has": False, "op": None}
