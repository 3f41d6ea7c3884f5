"""What is nearly the same: spans of time at which counters come round, and digests that share a part."""

from __future__ import annotations

from collections.abc import Mapping

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


_OTHER = str.maketrans("0123456789abcdef", "123456789abcdef0")
# How many digits of a SHA-256 are kept: those of 32, 64, 128, 160 and 192 bits, and all but one.
_KEPT = (8, 16, 32, 40, 48, 63)


def near(digest: str) -> Mapping[str, str]:
    """Others, by the part that each shares with this one."""
    found = {}
    for kept in _KEPT:
        found[f"the first {kept} digits"] = digest[:kept] + digest[kept:].translate(_OTHER)
        found[f"the last {kept} digits"] = digest[:-kept].translate(_OTHER) + digest[-kept:]
    half = len(digest) // 2
    return {**found, "all but the middle one": digest[:half] + digest[half].translate(_OTHER) + digest[half + 1 :]}


SHARED = tuple(near("0" * 64))
