"""Digests that are nearly the same: what an implementation that compares a part of one takes for it."""

from __future__ import annotations

from collections.abc import Mapping

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
