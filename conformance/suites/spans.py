"""Spans of time at which counters of the usual widths come round: a time so far away looks like now to them."""

from __future__ import annotations

# In microseconds: signed and unsigned 32 bits of milliseconds (timers) and of seconds (time_t, columns of databases),
# 63 and 64 bits of nanoseconds (time.Duration and UnixNano of Go, Instant and chrono of other languages).
_ROUND = (
    2**31 * 1_000,
    2**32 * 1_000,
    2**31 * 1_000_000,
    2**32 * 1_000_000,
    round(2**63 / 1_000),
    round(2**64 / 1_000),
)


def around(*bounds: int) -> list[int]:
    """Distances from now, in microseconds and in order: each bound, a microsecond and a second to either side, and all
    of these once more where a counter comes round, in both directions."""
    near = {0, *(bound + step for bound in bounds for step in (-1_000_000, -1, 0, 1, 1_000_000))}
    far = {sign * span + bound for span in _ROUND for sign in (-1, 1) for bound in (0, *bounds)}
    return sorted(near | far)
