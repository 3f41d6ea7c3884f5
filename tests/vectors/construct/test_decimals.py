"""Exact decimal arithmetic agrees with the platform's own, which it never asks."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from holdfast.vectors.jcs.construct.decimals import (
    Decimal,
    Double,
    double_of_bits,
    ecmascript,
    midpoint,
    nearest,
    round_trips,
    shortest,
)
from tests.vectors.es6.oracle import text as number_text

INFINITY = 0x7FF0_0000_0000_0000
BITS = st.integers(0, INFINITY - 1)


def value_of(bits: int) -> float:
    value: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    return value


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
        assert ecmascript(shortest(double_of_bits(bits))) == number_text(value_of(bits)), hex(bits)


@given(BITS)
def test_any_double_has_the_text_of_the_platform(bits: int) -> None:
    assert ecmascript(shortest(double_of_bits(bits))) == number_text(value_of(bits))


@given(st.integers(0, 10**30), st.integers(-360, 320))
def test_any_decimal_is_read_as_by_the_platform(digits: int, exponent: int) -> None:
    found = nearest(Decimal(digits, exponent))
    value = float(f"{digits}e{exponent}")
    assert found == (None if value == float("inf") else double_of_bits(bits_of(value)))


@given(st.integers(0, INFINITY - 2))
def test_midpoint_goes_to_the_even_neighbour_and_what_is_beside_it_to_the_nearer_one(bits: int) -> None:
    low, high = double_of_bits(bits), double_of_bits(bits + 1)
    half = midpoint(low)
    assert nearest(half) == (low if bits % 2 == 0 else high)
    assert nearest(Decimal(half.digits * 10 + 1, half.exponent - 1)) == high
    assert nearest(Decimal(half.digits * 10 - 1, half.exponent - 1)) == low


@given(st.integers(1, 10**15 - 1), st.integers(-330, 310))
def test_what_round_trips_by_its_length_is_its_own_shortest_text(digits: int, exponent: int) -> None:
    decimal = Decimal(digits, exponent).stripped()
    if round_trips(decimal):
        double = nearest(decimal)
        assert double is not None
        found = shortest(double)
        assert (found.digits, found.exponent) == (decimal.digits, decimal.exponent)


def test_beyond_the_greatest_double_there_is_no_neighbour() -> None:
    greatest = double_of_bits(INFINITY - 1)
    assert greatest.stepped(1) is None
    assert greatest.stepped(-1) == Double(2**53 - 2, 971)
    assert double_of_bits(0).stepped(-1) is None
    assert nearest(Decimal(1, 999999999)) is None
    assert nearest(Decimal(1, -999999999)) == Double(0, -1074)
