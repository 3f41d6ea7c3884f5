"""Randomness by counting: every draw is a pure function of a key and a number, so that any row can be made alone.

The mixing function is the finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection of 64-bit words. Columnar code
calls it on arrays, scalar code rolls a `Dice`. The results do not depend on the version of NumPy or of Python: only
wrapping 64-bit arithmetic is used, no floating point and no library generator.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Choice = TypeVar("Choice")

_MASK = 2**64 - 1
# The increment of splitmix64: 2^64 divided by the golden ratio, made odd.
_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
# Where the lowest byte of a word lies in memory, and which way the next one lies.
_LOWEST, _UPWARDS = (0, 1) if sys.byteorder == "little" else (7, -1)
# This number of scalar draws is made at once; calling NumPy for each would cost more than the draw.
_REFILL = 2048


def mix(words: Words) -> Words:
    """The splitmix64 finaliser of each word; the input is left as it was."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= np.uint64(_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def mix_one(word: int) -> int:
    """`mix` of one word, which may be any integer; it is taken modulo 2^64."""
    word &= _MASK
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


def derive(key: int, *numbers: int) -> int:
    """A key of its own for each tuple of numbers under `key`."""
    for number in numbers:
        key = mix_one(mix_one(key + _STEP) + number * _STEP + 1)
    return key


def keys_of(key: int, numbers: Integers) -> Words:
    """One 64-bit key for each number under `key`; different numbers have different keys."""
    return mix(numbers.astype(np.uint64) * np.uint64(_STEP) + np.uint64(mix_one(key + _STEP)))


def lane(keys: Words, number: int) -> Words:
    """The draw `number` of each key. Draws of different numbers are independent in practice."""
    return mix(keys + np.uint64((number * _STEP + 1) & _MASK))


def below(draws: Words, limit: Integers | int) -> Integers:
    """The upper 32 bits of each draw scaled to 0 … limit - 1; limits are at most 2^31."""
    high = draws >> np.uint64(32)
    high *= limit.astype(np.uint64) if isinstance(limit, np.ndarray) else np.uint64(limit)
    return (high >> np.uint64(32)).astype(np.int64)


def byte(draws: Words, number: int) -> Integers:
    """Byte `number` (0 is the lowest) of each draw; bytes 0 to 3 do not overlap with what `below` reads."""
    return draws.view(np.uint8)[_LOWEST + _UPWARDS * number :: 8].astype(np.int64)


class Dice:
    """Draws in order under one key, for code that makes one thing after the other."""

    __slots__ = ("_drawn", "_key", "_next")

    def __init__(self, key: int) -> None:
        self._key = key
        self._next = 0
        self._drawn: list[int] = []

    def word(self) -> int:
        """The next 64 bits."""
        place = self._next % _REFILL
        if place == 0:
            numbers = np.arange(self._next, self._next + _REFILL, dtype=np.int64)
            self._drawn = keys_of(self._key, numbers).tolist()
        self._next += 1
        return self._drawn[place]

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return (self.word() * limit) >> 64

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return low + ((self.word() * (high - low + 1)) >> 64)

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of the choices."""
        return choices[(self.word() * len(choices)) >> 64]

    def one_in(self, number: int) -> bool:
        """True in one of `number` cases."""
        return self.below(number) == 0
