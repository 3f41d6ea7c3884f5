"""The one shrinker: leaves out parts of what fails, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(parts: Sequence[T], fails: Callable[[Sequence[T]], bool], *, tries: int) -> Sequence[T]:
    """The fewest of `parts`, in their order, for which `fails` still holds, by at most `tries` questions.

    It is not asked of all parts: for them it holds. First it is asked without large blocks, then without smaller ones,
    from the end on, because what comes later often needs what comes earlier.
    """
    size = len(parts)
    while size and tries:
        end, went = len(parts), False
        while end > 0 and tries:
            fewer = [*parts[: max(end - size, 0)], *parts[end:]]
            tries -= 1
            if fails(fewer):
                parts, went = fewer, True
            end -= size
        # What is single stays only if nothing else went after it was asked for.
        if not (size == 1 and went):
            size //= 2
    return parts
