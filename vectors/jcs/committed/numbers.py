"""Numbers: notation, shortest digits, ties, spellings, integers, everyday decimals (P1 to P6).

The canonical texts are those of ECMAScript's Number::toString as RFC 8785 section 3.2.2.3 asks for, typed from the
RFC, from IEEE 754 arithmetic by hand, or from the published boundary cases of decimal conversion.
"""

# ruff: noqa: E501 - a row of a table stays in one line, however long its literal is

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category

_TO_STRING = "RFC 8785 section 3.2.2.3"
_APPENDIX_B = "RFC 8785 appendix B"
_CONVERSION = "IEEE 754 decimal conversion, boundary case"
# The twin of a refused integer or over-long literal.
_TWIN = "P5-largest-safe"


def records() -> Iterator[Vector]:
    """The records of P1 to P6, in order."""
    yield from _notation()
    yield from _shortest()
    yield from _ties()
    yield from _spelling()
    yield from _integers()
    yield from _human()


def _notation() -> Iterator[Vector]:
    page = Page(Category.NUMBER_NOTATION, "JCS-NUM-02", _TO_STRING)
    yield from page.numbers(
        """
        first-exponent      1e21                    1e+21                   -     from 10^21 on there is an exponent, with a sign
        last-integer        1e20                    100000000000000000000   safe  below 10^21 all digits are written
        last-fixed          0.000001                0.000001                -     the smallest power of ten without an exponent
        last-fixed-e        1e-6                    0.000001                -     the same, spelt with an exponent
        first-small         1e-7                    1e-7                    -     an exponent of one digit, not 1e-07
        first-small-fixed   0.0000001               1e-7                    -     the same, spelt out
        below-first         999999999999999900000   999999999999999900000   safe  the number before 10^21
        negative-first      -1e21                   -1e+21                  -     the sign changes no threshold
        negative-small      -1e-7                   -1e-7                   -     the sign changes no threshold
        digits-and-exponent 1.5e21                  1.5e+21                 -     one digit before the point
        digits-small        1.25e-7                 1.25e-7                 -     one digit before the point
        digits-at-fixed     1.25e-6                 0.00000125              -     more digits do not move the threshold
        sixteen-zeros       1e16                    10000000000000000       safe  where repr of Python turns to an exponent
        fifteen-zeros       1e15                    1000000000000000        -     where %.15g turns to an exponent
        ten-million         1e7                     10000000                -     where Double.toString of Java turns to an exponent
        six-zeros           1e6                     1000000                 -     where %g turns to an exponent
        milli               0.001                   0.001                   -     the smallest that Java writes without an exponent
        below-milli         0.00012                 0.00012                 -     below 10^-3
        below-g             0.000012                0.000012                -     where %g turns to an exponent
        three-digits        1e100                   1e+100                  -     an exponent of three digits
        three-digits-small  1e-100                  1e-100                  -     an exponent of three digits
        """,
        twin=_TWIN,
    )


def _shortest() -> Iterator[Vector]:
    page = Page(Category.NUMBER_SHORTEST, "JCS-NUM-03", _TO_STRING)
    yield from page.numbers(
        """
        seventeen-digits    333333333.33333325       333333333.33333325       -  needs all 17 digits
        smallest            5e-324                   5e-324                   -  one digit is enough for the smallest subnormal
        largest             1.7976931348623157E+308  1.7976931348623157e+308  -  the largest double; the letter is lower case
        tenth               0.1                      0.1                      -  not 0.10000000000000001
        three-tenths        0.3                      0.3                      -  not 0.29999999999999999
        sum                 0.30000000000000004      0.30000000000000004      -  0.1 + 0.2 is another double than 0.3
        smallest-normal     2.2250738585072014e-308  2.2250738585072014e-308  -  the smallest normal double
        largest-subnormal   2.225073858507201e-308   2.225073858507201e-308   -  the largest subnormal
        third               0.3333333333333333       0.3333333333333333       -  sixteen digits
        two-thirds          0.6666666666666666       0.6666666666666666       -  sixteen digits, the last not rounded up
        pi                  3.141592653589793        3.141592653589793        -  sixteen digits
        after-one           1.0000000000000002       1.0000000000000002       -  the double after 1
        before-one          0.9999999999999999       0.9999999999999999       -  the double before 1
        longer-than-needed  0.10000000000000001      0.1                      -  17 digits of the double 0.1
        """,
        twin=_TWIN,
    )
    # The bit pattern of the RFC's table is the name; the literal always has 17 digits.
    yield from page.numbers(
        """
        b-0000000000000000   0.0000000000000000e+00    0                        -     zero
        b-8000000000000000   -0.0000000000000000e+00   0                        -     minus zero loses its sign
        b-0000000000000001   4.9406564584124654e-324   5e-324                   -     the smallest positive double
        b-8000000000000001   -4.9406564584124654e-324  -5e-324                  -     the smallest negative double
        b-7fefffffffffffff   1.7976931348623157e+308   1.7976931348623157e+308  -     the largest double
        b-ffefffffffffffff   -1.7976931348623157e+308  -1.7976931348623157e+308 -     the largest negative double
        b-4340000000000000   9.0071992547409920e+15    9007199254740992         safe  2^53
        b-c340000000000000   -9.0071992547409920e+15   -9007199254740992        safe  -2^53
        b-4430000000000000   2.9514790517935283e+20    295147905179352830000    safe  2^68, not its exact digits
        b-44b52d02c7e14af5   9.9999999999999975e+22    9.999999999999997e+22    -     before 10^23
        b-44b52d02c7e14af6   9.9999999999999992e+22    1e+23                    -     the double nearest to 10^23
        b-44b52d02c7e14af7   1.0000000000000001e+23    1.0000000000000001e+23   -     after 10^23
        b-444b1ae4d6e2ef4e   9.9999999999999974e+20    999999999999999700000    safe  before 10^21
        b-444b1ae4d6e2ef4f   9.9999999999999987e+20    999999999999999900000    safe  before 10^21
        b-444b1ae4d6e2ef50   1.0000000000000000e+21    1e+21                    -     10^21
        b-3eb0c6f7a0b5ed8c   9.9999999999999974e-07    9.999999999999997e-7     -     before 10^-6
        b-3eb0c6f7a0b5ed8d   9.9999999999999995e-07    0.000001                 -     10^-6
        b-41b3de4355555553   3.3333333333333319e+08    333333333.3333332        -     sixteen digits
        b-41b3de4355555554   3.3333333333333325e+08    333333333.33333325       -     seventeen digits
        b-41b3de4355555555   3.3333333333333331e+08    333333333.3333333        -     sixteen digits
        b-41b3de4355555556   3.3333333333333337e+08    333333333.3333334        -     sixteen digits
        b-41b3de4355555557   3.3333333333333343e+08    333333333.33333343       -     seventeen digits
        b-becbf647612f3696   -3.3333333333333333e-06   -0.0000033333333333333333 -    no exponent at 10^-6
        b-43143ff3c1cb0959   1.4249539237812062e+15    1424953923781206.2       -     ..206.25 exactly: the even digit wins
        """,
        twin=_TWIN,
        source=_APPENDIX_B,
    )


def _ties() -> Iterator[Vector]:
    page = Page(Category.NUMBER_TIES, "JCS-NUM-04", _CONVERSION)
    yield from page.numbers(
        """
        even-digit          1424953923781206.25     1424953923781206.2      long  ..206.2 and ..206.3 both read back and are equally near: the even one
        two-to-minus-24     5.9604644775390625e-8   5.960464477539063e-8    -  2^-24; ..062 would be even, but reads back as another double
        two-to-minus-44     5.684341886080801e-14   5.684341886080801e-14   -  the double before 2^-44 but one
        power-of-two        5.6843418860808015e-14  5.684341886080802e-14   -  2^-44; below a power of two doubles lie closer, so ..801 is another one
        ten-to-23           1e23                    1e+23                   -  not 9.999999999999999e+22
        bjorn               8.41e+21                8.41e+21                -  a short literal that careless conversion misses by one
        subnormal-hundred   4.94e-322               4.94e-322               -  three digits are the shortest
        subnormal-nearest   9.4e-323                9.4e-323                -  of 9.2 to 9.6, which all read back, the nearest
        """,
        twin=_TWIN,
    )
    yield from page.numbers(
        """
        above-halfway        9007199254740993.0000000000000000000000000000001  9007199254740994         long+safe  a digit far behind breaks the tie upwards
        halfway-to-even      9007199254740993                                  9007199254740992         safe       exactly between two doubles: to the even one
        halfway-up           9007199254740995                                  9007199254740996         safe       exactly between two doubles: to the even one, upwards
        below-halfway        9007199254740992.9999999999999999                 9007199254740992         long+safe  just below the tie
        asymmetric-interval  9007199254740991.4                                9007199254740991         -          below 2^53 a double is a whole number
        halfway-fraction     0.500000000000000166533453693773481063544750213623046875  0.5000000000000002  long    exactly between two doubles: to the even one
        subnormal-boundary   2.2250738585072011e-308                           2.225073858507201e-308   -          the literal that hung PHP and Java
        subnormal-step       9.5e-323                                          9.4e-323                 -          the next subnormal is nearer
        half-smallest-above  2.4703282292062328e-324                           5e-324                   -          just over half of the smallest subnormal
        near-largest         1.7976931348623158e308                            1.7976931348623157e+308  -          rounds back to the largest double
        """,
        twin=_TWIN,
        clause="JCS-NUM-09",
    )


def _spelling() -> Iterator[Vector]:
    page = Page(Category.NUMBER_SPELLING, "JCS-NUM-08", _TO_STRING)
    yield from page.numbers(
        """
        minus-zero            -0              0          -     minus zero is written as zero
        minus-zero-exponent   -0.0e5          0          -     zero, however it is spelt
        minus-zero-fraction   -0.0            0          -     zero, however it is spelt
        zero-huge-exponent    0e400           0          -     zero is zero at every exponent, and in range
        zero-tiny-exponent    0e-400          0          -     zero is not an underflow
        zero-fraction         0.000           0          -     zero, however it is spelt
        zero                  0               0          -     what refused spellings of zero stand beside
        """,
        twin="P4-one",
        clause="JCS-NUM-05",
        source=_APPENDIX_B,
    )
    yield from page.numbers(
        """
        one-point-zero        1.0             1          -     no fraction of zeros
        hundred-point-zero    100.0           100        -     no fraction of zeros, but the zeros of the integer
        upper-exponent        1E+2            100        -     an upper-case letter and a plus sign
        exponent-zeros        1e0002          100        -     zeros before an exponent's digits
        negative-exponent     100e-2          1          -     an exponent that cancels
        fraction-exponent     0.001e3         1          -     an exponent that cancels
        exponent-zero         1e0             1          -     an exponent of nothing
        exponent-minus-zero   1e-0            1          -     an exponent of nothing, with a sign
        fixed-small           0.00001         0.00001    -     five places
        trailing-zeros        1.500           1.5        -     zeros at the end of a fraction
        negative              -1.5            -1.5       -     a sign
        minus-one             -1              -1         -     a sign
        one                   1               1          -     what a refused spelling of one stands beside
        sixteenth             0.0625          0.0625     -     a power of two
        quarter               0.25            0.25       -     what a refused hexadecimal float stands beside
        half                  0.5             0.5        -     what a refused .5 stands beside
        ten                   10              10         -     a zero that must stay
        small-negative        -0.000001       -0.000001  -     a sign does not move the threshold
        """,
        twin="P4-one",
    )
    yield from page.numbers(
        """
        underflow             1e-400                   0  under  too small for a double: zero in core
        underflow-negative    -1e-400                  0  under  too small, and without its sign
        half-smallest         2.4703282292062327e-324  0  under  just below half of the smallest subnormal
        """,
        twin="P1-three-digits-small",
        clause="JCS-NUM-07",
        source="RFC 7493 section 2.2",
    )
    yield from page.numbers(
        """
        underflow-one-digit   2e-324                   0  under  nearer to zero than to the smallest subnormal
        underflow-fixed       0.1e-330                 0  under  spelt with a fraction
        """,
        twin="P2-smallest",
        clause="JCS-PROF-04",
        source="RFC 7493 section 2.2",
    )
    yield from page.numbers(
        """
        pi-long               3.14159265358979323846264338327950288  3.141592653589793  long  the example of RFC 7493 section 2.2
        eighteen-digits       1.00000000000000001               1           long  eighteen significant digits
        eighteen-integer      123456789012345678e-3             123456789012345.67  long  digits before the point count as well
        seventeen-digits      1.0000000000000001                1           -     seventeen significant digits may stand
        thirty-zeros          1.00000000000000000000000000000   1           -     trailing zeros are not significant
        leading-zeros         0.000000000000000000000000000001  1e-30       -     leading zeros are not significant
        zeros-inside          1000000000000000000.1e-18         1           long  zeros between digits are significant
        """,
        twin="P4-seventeen-digits",
        clause="JCS-PROF-03",
        source="RFC 7493 section 2.2",
    )


def _integers() -> Iterator[Vector]:
    page = Page(Category.NUMBER_INTEGERS, "JCS-NUM-06", "RFC 8785 appendix B, notes 1 and 2")
    yield from page.numbers(
        """
        two-to-68           295147905179352825856            295147905179352830000  long+safe  exact digits in, shortest digits out
        int64-min           -9223372036854775808             -9223372036854776000   long+safe  -2^63 as a double
        int64-max           9223372036854775807              9223372036854776000    long+safe  2^63 - 1 is 2^63 as a double
        uint64-max          18446744073709551615             18446744073709552000   long+safe  2^64 - 1 is 2^64 as a double
        seventeen-digits    12345678901234567                12345678901234568      safe       17 digits, of which the double keeps 16
        large-fraction      9007199254740993.5               9007199254740994       safe       no fraction above 2^53
        hundred-digits      1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000  1e+99  -  a long literal with one significant digit
        twenty-two-zeros    10000000000000000000000          1e+22                  -          an integer literal that gets an exponent
        int32-max           2147483647                       2147483647             -          2^31 - 1
        int32-over          2147483648                       2147483648             -          2^31
        uint32-over         4294967296                       4294967296             -          2^32
        sixteen-digits      1234567890123456                 1234567890123456       -          below 2^53
        float-limit         16777217                         16777217               -          2^24 + 1 does not fit single precision
        """,
        twin=_TWIN,
    )
    yield from page.numbers(
        """
        largest-safe        9007199254740991      9007199254740991       -     2^53 - 1
        smallest-safe       -9007199254740991     -9007199254740991      -     -(2^53 - 1)
        two-to-53           9007199254740992      9007199254740992       safe  the first integer that is not safe
        minus-two-to-53     -9007199254740992     -9007199254740992      safe  the first integer that is not safe, negative
        spelt-with-exponent 9007199254740992e0    9007199254740992       safe  the spelling does not make it safe
        spelt-with-point    9007199254740992.0    9007199254740992       safe  the spelling does not make it safe
        large-power         1e17                  100000000000000000     safe  written without an exponent, whatever the literal
        """,
        twin=_TWIN,
        clause="JCS-PROF-05",
    )
    yield from page.numbers(
        """
        canonical-68        295147905179352830000  295147905179352830000  safe  canonical text that is not exactly its double
        beyond-integers     1e21                   1e+21                  -     above 2^53, but not written as an integer
        long-fraction       0.30000000000000004    0.30000000000000004    -     seventeen digits, not exactly a double
        """,
        twin=_TWIN,
        clause="JCS-PROF-06",
    )


def _human() -> Iterator[Vector]:
    page = Page(Category.NUMBER_HUMAN, "JCS-NUM-03", _TO_STRING)
    yield from page.numbers(
        """
        twelve-and-half   12.5          12.5         -  exact in binary
        seven-hundredths  0.07          0.07         -  not 0.070000000000000007
        price             19.99         19.99        -  not 19.989999999999998
        thousands         1234567.891   1234567.891  -  no grouping, no exponent
        small-digits      4.35e-5       0.0000435    -  seven places
        micro             4.35e-6       0.00000435   -  eight places
        below-micro       4.35e-7       4.35e-7      -  an exponent below 10^-6
        ninety-nine       99.99         99.99        -  a price
        tax               0.195         0.195        -  not 0.19500000000000001
        pressure          1013.25       1013.25      -  exact in binary
        latitude          -33.8688      -33.8688     -  a coordinate
        avogadro          6.02214076e23 6.02214076e+23  -  a constant
        planck            6.62607015e-34  6.62607015e-34  -  a constant
        epoch-ms          1767225600000 1767225600000  -  a time stamp in milliseconds
        epoch-fraction    1767225600.123456  1767225600.123456  -  a time stamp with microseconds
        million           1000000       1000000      -  no exponent, no grouping
        hundred-million   123456789     123456789    -  nine digits
        tiny              1.1e-10       1.1e-10      -  an exponent of two digits
        billion-third     3333333333.25 3333333333.25  -  above ten digits
        """,
        twin=_TWIN,
    )
