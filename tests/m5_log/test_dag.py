"""The one topological order, and what waits."""

from __future__ import annotations

import hashlib
import random

import pytest

from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.vectors.m5_log.derive import hlc
from holdfast.vectors.m5_log.oracle import Entry, expected_order

A, B, C, D = (bytes([number]) * 32 for number in range(1, 5))


def entries(seed: int, count: int) -> list[Entry]:
    """Operations of any shape; some of their parents are never stored."""
    chosen = random.Random(seed)
    ids = [hashlib.sha256(f"{seed}/{number}".encode()).hexdigest() for number in range(count)]
    return [
        Entry(
            op_id=op_id,
            author="",
            ms=chosen.choice((0, 9, 10, 2**32 - 1, 2**32, 2**63)),
            logical=chosen.choice((0, 1, 255, 256, 2**32 - 1)),
            kind="set",
            parents=tuple(
                sorted(
                    {
                        chosen.choice((*ids[:at], "f" * 64 if chosen.random() < 0.05 else ids[0]))
                        for _ in range(chosen.randrange(4))
                    }
                )
                if at
                else ()
            ),
            payload={},
            value="",
        )
        for at, op_id in enumerate(ids)
    ]


def built(found: list[Entry]) -> Dag:
    dag = Dag()
    for entry in found:
        dag.add(
            bytes.fromhex(entry.op_id),
            [bytes.fromhex(parent) for parent in entry.parents],
            hlc(entry.ms, entry.logical),
        )
    return dag


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_the_order_of_the_oracle_however_they_arrive(seed: int) -> None:
    found = entries(seed, 30)
    expected = [bytes.fromhex(entry.op_id) for entry in expected_order(found)]
    for again in range(3):
        arrived = list(found)
        random.Random(again).shuffle(arrived)
        dag = Dag()
        for entry in arrived:
            dag.add(
                bytes.fromhex(entry.op_id),
                [bytes.fromhex(parent) for parent in entry.parents],
                hlc(entry.ms, entry.logical),
            )
            assert len(dag.order()) == dag.surfaced
        assert list(dag.order()) == expected
        assert set(dag.pending()) == {bytes.fromhex(entry.op_id) for entry in found} - set(expected)


def test_a_child_with_an_earlier_clock_comes_behind_its_parent() -> None:
    dag = Dag()
    dag.add(B, [A], hlc(1))
    dag.add(A, [], hlc(9))
    dag.add(C, [], hlc(5))
    assert dag.order() == (C, A, B)


def test_equal_clocks_are_decided_by_the_bytes_of_the_id() -> None:
    dag = Dag()
    for op_id in (C, A, B):
        dag.add(op_id, [], hlc(1))
    assert dag.order() == (A, B, C)


def test_waiting_goes_from_parents_to_children() -> None:
    dag = Dag()
    dag.add(C, [B], hlc(3))
    dag.add(B, [A], hlc(2))
    dag.add(D, [], hlc(1))
    assert dag.order() == (D,)
    assert dag.pending() == [B, C]
    assert dag.awaited() == {A: [B]}
    assert dag.missing(C) == ()
    dag.add(A, [], hlc(1))
    assert dag.order() == (A, D, B, C)
    assert dag.awaited() == {}


def test_a_circle_of_edges_waits_for_ever() -> None:
    dag = Dag()
    dag.add(A, [B], hlc(1))
    dag.add(B, [A], hlc(2))
    dag.add(C, [C], hlc(3))
    dag.add(D, [], hlc(4))
    assert dag.order() == (D,)
    assert dag.pending() == [A, B, C]


def test_a_parent_that_stands_twice_in_an_edge_is_counted_as_often() -> None:
    dag = Dag()
    dag.add(B, [A, A], hlc(1))
    dag.add(A, [], hlc(2))
    assert dag.order() == (A, B)
