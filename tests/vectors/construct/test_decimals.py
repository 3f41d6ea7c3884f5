"""Exact decimal arithmetic agrees with the platform's own, which it never asks."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from holdfast.vectors.jcs.construct.decimals import (
    Decimal,
    double_of_bits,
    ecmascript,
    nearest,
    shortest,
)
from tests.vectors.es6.oracle import double
from tests.vectors.es6.oracle import text as number_text

INFINITY = 0x7FF0_0000_0000_0000


def bits_of(value: float) -> int:
    bits: int = struct.unpack(">Q", struct.pack(">d", value))[0]
    return bits


def edges() -> list[int]:
    """All powers of two and of ten with their neighbours, and the ends of the subnormal doubles."""
    centres = [exponent << 52 for exponent in range(1, 2047)] + [1 << bit for bit in range(52)]
    centres += [bits_of(float(f"1e{decade}")) for decade in range(-323, 309)]
    return [bits for centre in centres for bits in range(max(centre - 2, 1), min(centre + 3, INFINITY))]


def test_powers_and_their_neighbours_have_the_text_of_the_platform() -> None:
    for bits in edges():
        assert ecmascript(shortest(double_of_bits(bits))) == number_text(double(bits)), hex(bits)


@given(st.integers(0, 10**30), st.integers(-360, 320))
def test_any_decimal_is_read_as_by_the_platform(digits: int, exponent: int) -> None:
    found = nearest(Decimal(digits, exponent))
    value = float(f"{digits}e{exponent}")
    assert found == (None if value == float("inf") else double_of_bits(bits_of(value)))
