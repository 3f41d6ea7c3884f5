"""Several processes share the cases so that none of them has all the long ones, and no recording is made twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.conformance.run.plugin import shared_out

# A case: its number, and the number of its workload if it is a fault.
CASES = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=60).map(lambda loads: list(enumerate(loads)))


def parts_of(items: list[tuple[int, int | None]], processes: int) -> list[list[tuple[int, int | None]]]:
    """What each process begins with, as xdist's `worksteal` cuts the list."""
    parts, left = [], list(items)
    for number in range(processes):
        size = len(left) // (processes - number)
        parts.append(left[:size])
        del left[:size]
    return parts


@given(CASES, st.integers(2, 5))
def test_no_case_is_lost_and_none_runs_twice(cases: list[tuple[int, int | None]], processes: int) -> None:
    assert sorted(shared_out(cases, processes, workload=lambda case: case[1])) == sorted(cases)


def test_the_faults_of_a_workload_are_in_one_part_and_come_first() -> None:
    cases = list(enumerate([*[None] * 30, 1, 2, 1, 2, 3, 1, *[None] * 10]))
    first, second = parts_of(shared_out(cases, 2, workload=lambda case: case[1]), 2)
    loads = [[load for _, load in part if load is not None] for part in (first, second)]
    assert [load for _, load in first[: len(loads[0])]] == loads[0]
    assert [load for _, load in second[: len(loads[1])]] == loads[1]
    assert not {*loads[0]} & {*loads[1]}
    assert all(loads)


def test_what_comes_early_in_the_list_is_shared_out_too() -> None:
    cases = list(enumerate([*[None] * 40, 1, 2, 1, 2]))
    early = range(20)
    for part in parts_of(shared_out(cases, 2, workload=lambda case: case[1]), 2):
        assert sum(number in early for number, _ in part) == 10
