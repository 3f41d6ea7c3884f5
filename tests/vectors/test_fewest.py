"""The one shrinker keeps exactly what a failure needs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.vectors.fewest import fewest


@given(st.integers(0, 40).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, max(size - 1, 0))))))
def test_what_a_failure_needs_is_kept_in_order_and_nothing_else(sized: tuple[int, set[int]]) -> None:
    size, needed = sized[0], sized[1] & set(range(sized[0]))
    assert list(fewest(range(size), lambda kept: needed <= set(kept), tries=10_000)) == sorted(needed)


def test_no_more_is_asked_than_allowed_and_what_was_found_by_then_fails() -> None:
    asked: list[Sequence[int]] = []

    def fails(kept: Sequence[int]) -> bool:
        asked.append(kept)
        return 3 in kept

    assert 3 in fewest(range(1000), fails, tries=7)
    assert len(asked) == 7
