"""The published SHA-256 of the first N lines, and the comparison of a digest with it.

Source: cyberphone/json-canonicalization, testdata/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """The published size and digest of the first lines of the stream."""

    octets: int
    sha256: str


PUBLISHED: Final = {
    1_000: Published(37_967, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"),
    10_000: Published(399_022, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"),
    100_000: Published(4_031_728, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"),
    1_000_000: Published(40_357_417, "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16"),
    10_000_000: Published(403_630_048, "b9f8a44a91d46813b21b9602e72f112613c91408db0b8341fb94603d9db135e0"),
    100_000_000: Published(4_036_326_174, "0f7dda6b0837dde083c5d6b896f7d62340c8a2415b0c7121d83145e08a755272"),
}


class Comparison(StrEnum):
    """The result of comparing a digest with the published one. Only `MATCH` is a pass."""

    MATCH = "MATCH"
    MISMATCH = "MISMATCH"
    NO_PUBLISHED_VALUE = "NO PUBLISHED VALUE"

    @property
    def exit_code(self) -> int:
        """0, 20 (the kit's own number text is wrong) or 12 (nothing was shown); docs/exit-codes."""
        return {Comparison.MATCH: 0, Comparison.MISMATCH: 20, Comparison.NO_PUBLISHED_VALUE: 12}[self]


def compare(lines: int, octets: int, sha256: str) -> Comparison:
    """The digest (lower-case hexadecimal) and size of the first `lines` lines against the published ones."""
    published = PUBLISHED.get(lines)
    if published is None:
        return Comparison.NO_PUBLISHED_VALUE
    return Comparison.MATCH if published == Published(octets, sha256) else Comparison.MISMATCH
