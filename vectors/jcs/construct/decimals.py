"""Binary64 and decimal, exactly: which double a decimal is nearest to, and which digits are the shortest for a double.

Only integer arithmetic, from the definitions of IEEE 754 and of ECMA-262 Number::toString. No `float`, no `repr`: the
texts that these functions give are expected results, and must not come from the code under test. A double is written as
(significand, exponent): significand * 2^exponent, with the significand below 2^53 and the exponent at least -1074;
normal doubles have a significand of at least 2^52.
"""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = 2**52
LIMIT = 2**53
LEAST_EXPONENT = -1074
GREATEST_EXPONENT = 971
# 17 digits distinguish any two doubles.
MOST_DIGITS = 17
# The digits that an exponent of ten is known to have after an estimate from the exponent of two, and its powers.
_ESTIMATED_DIGITS = MOST_DIGITS + 1
_POWERS = tuple(10**power for power in range(_ESTIMATED_DIGITS + 1))


@dataclass(frozen=True, slots=True)
class Decimal:
    """digits * 10^exponent. Zero is (0, 0)."""

    digits: int
    exponent: int

    def stripped(self) -> Decimal:
        """The same value without trailing zeros in `digits`."""
        digits, exponent = self.digits, self.exponent
        if digits % 10:
            return self
        if digits == 0:
            return Decimal(0, 0)
        while digits % 10 == 0:
            digits //= 10
            exponent += 1
        return Decimal(digits, exponent)


@dataclass(frozen=True, slots=True)
class Shortest(Decimal):
    """The digits that ECMA-262 Number::toString gives for some double, without trailing zeros."""


@dataclass(frozen=True, slots=True)
class Double:
    """A finite double without its sign: significand * 2^exponent."""

    significand: int
    exponent: int

    def stepped(self, count: int) -> Double | None:
        """The double `count` units in the last place away (towards zero if negative); None past zero or infinity."""
        bits = self.bits + count
        return double_of_bits(bits) if 0 <= bits < 0x7FF0_0000_0000_0000 else None

    @property
    def bits(self) -> int:
        """The bit pattern, without the sign."""
        if self.significand < HIDDEN:
            return self.significand
        return ((self.exponent - LEAST_EXPONENT + 1) << 52) | (self.significand - HIDDEN)


def double_of_bits(bits: int) -> Double:
    """The finite double with this bit pattern; the sign bit must be clear."""
    biased, fraction = bits >> 52, bits & (HIDDEN - 1)
    if biased == 0:
        return Double(fraction, LEAST_EXPONENT)
    return Double(fraction | HIDDEN, biased - 1 + LEAST_EXPONENT)


def nearest(decimal: Decimal) -> Double | None:
    """The double nearest to a decimal, ties to the even significand; None when that overflows."""
    if decimal.digits == 0:
        return Double(0, LEAST_EXPONENT)
    # Far outside the range the powers below would only take time.
    magnitude = len(str(decimal.digits)) + decimal.exponent
    if magnitude > 310:
        return None
    if magnitude < -330:
        return Double(0, LEAST_EXPONENT)
    above = decimal.digits * 10 ** max(decimal.exponent, 0)
    under = 10 ** max(-decimal.exponent, 0)
    # The quotient of numbers of a and b bits has a - b or a - b + 1 bits: 53, or one more and then the next exponent.
    exponent = max(above.bit_length() - under.bit_length() - 53, LEAST_EXPONENT)
    while True:
        top = above << max(-exponent, 0)
        bottom = under << max(exponent, 0)
        quotient, rest = divmod(top, bottom)
        if quotient < LIMIT:
            break
        exponent += 1
    if 2 * rest > bottom or (2 * rest == bottom and quotient % 2):
        quotient += 1
        if quotient == LIMIT:
            quotient, exponent = HIDDEN, exponent + 1
    return None if exponent > GREATEST_EXPONENT else Double(quotient, exponent)


def round_trips(decimal: Decimal) -> bool:
    """Whether a stripped decimal is known to be the shortest text of its double by its length alone.

    Decimals of at most 15 digits lie further apart than doubles where doubles have all their bits (10^15 < 2^52),
    so each has a double of its own, and none that is shorter can have the same.
    """
    length = len(str(decimal.digits))
    return length <= 15 and -307 <= decimal.exponent + length - 1 < 308


def shortest(double: Double) -> Shortest:
    """The digits that ECMA-262 Number::toString gives: as few as read back as `double`; of these the nearest to it.

    The interval that reads back as `double` is computed exactly, in units of the 17th or 18th digit; the result is a
    multiple of the greatest power of ten with a multiple inside. That is the proof that no shorter text exists.
    """
    significand, exponent = double.significand, double.exponent
    if significand == 0:
        return Shortest(0, 0)
    # In quarters of a unit in the last place: the double, and the ends of its interval. Below a power of two the
    # neighbours are half as far away.
    middle = 4 * significand
    low = middle - (1 if significand == HIDDEN and exponent > LEAST_EXPONENT else 2)
    high = middle + 2
    power = exponent - 2
    unit = _leading(middle.bit_length() + power - 1) - MOST_DIGITS + 1
    scale = (10 ** max(-unit, 0)) << max(power, 0)
    bottom = (10 ** max(unit, 0)) << max(-power, 0)
    # Ties go to the even significand when text is read, so an even one owns the ends of its interval.
    owns_ends = significand % 2 == 0
    first, rest = divmod(low * scale, bottom)
    first += 1 if rest or not owns_ends else 0
    last, rest = divmod(high * scale, bottom)
    last -= 1 if not rest and not owns_ends else 0
    zeros = _ESTIMATED_DIGITS
    while last // _POWERS[zeros] * _POWERS[zeros] < first:
        zeros -= 1
    step = _POWERS[zeros]
    exact = middle * scale
    down = exact // (bottom * step)
    choices = [digits for digits in (down, down + 1) if first <= digits * step <= last]
    chosen = min(choices, key=lambda digits: (abs(digits * step * bottom - exact), digits % 2))
    found = Decimal(chosen, unit + zeros).stripped()
    return Shortest(found.digits, found.exponent)


def _leading(exponent: int) -> int:
    """The decimal exponent of the leading digit of a number from 2^exponent on and below twice that, or one less."""
    # Fractions just below and just above log10(2), so that the product is never too great; over the range of doubles
    # it is less than 0.004 too small.
    return (exponent * (78913 if exponent >= 0 else 78914)) >> 18


def midpoint(double: Double) -> Decimal:
    """The decimal exactly between a double and the next greater one; up to 767 digits."""
    return _written_out(2 * double.significand + 1, double.exponent - 1)


def exact(double: Double) -> Decimal:
    """The value of a double, written out."""
    return _written_out(double.significand, double.exponent)


def _written_out(significand: int, power: int) -> Decimal:
    """significand * 2^power."""
    if power >= 0:
        return Decimal(significand << power, 0).stripped()
    return Decimal(significand * 5**-power, power).stripped()


def rounded(decimal: Decimal, digits: int) -> Decimal:
    """`decimal` with at most this number of `digits`, rounded half up. For literals that need not be the nearest."""
    excess = len(str(decimal.digits)) - digits
    if excess <= 0:
        return decimal
    unit = 10**excess
    return Decimal((decimal.digits + unit // 2) // unit, decimal.exponent + excess).stripped()


def ecmascript(decimal: Decimal) -> str:
    """ECMA-262 Number::toString of a decimal with the shortest digits, without a sign (RFC 8785 section 3.2.2.3)."""
    decimal = decimal.stripped()
    if decimal.digits == 0:
        return "0"
    digits = str(decimal.digits)
    count = len(digits)
    point = count + decimal.exponent
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    sign = "+" if point > 0 else "-"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{sign}{abs(point - 1)}"
