"""Near misses that read or write numbers wrongly."""

from __future__ import annotations

import re
import struct
from decimal import ROUND_DOWN, Context, Decimal

from tests.vectors.nearmiss.honest import Honest, Number, RefusalError, digits_of
from tests.vectors.nearmiss.registry import near_miss


@near_miss("percent-15g")
class Percent15(Honest):
    """Writes 15 significant digits."""

    def shortest(self, value: float) -> tuple[str, int]:
        return digits_of(f"{value:.15g}")


@near_miss("percent-17g")
class Percent17(Honest):
    """Writes 17 significant digits."""

    def shortest(self, value: float) -> tuple[str, int]:
        return digits_of(f"{value:.17g}")


@near_miss("percent-17g-as-is")
class Percent17AsIs(Honest):
    """Writes what %.17g writes."""

    def number_text(self, number: Number) -> str:
        return f"{number.value:.17g}"


@near_miss("single-precision")
class SinglePrecision(Honest):
    """Keeps numbers in single precision."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        try:
            return float(struct.unpack("f", struct.pack("f", value))[0])
        except OverflowError:
            raise RefusalError("NUMBER_OUT_OF_RANGE") from None


@near_miss("repr-as-is")
class ReprAsIs(Honest):
    """Writes what repr of Python writes: 1.0, 1e-07, 1e+16."""

    def number_text(self, number: Number) -> str:
        return repr(number.value)


@near_miss("python-numbers")
class PythonNumbers(Honest):
    """Writes integers digit by digit and other numbers as repr does, as json.dumps does."""

    def number_text(self, number: Number) -> str:
        if re.fullmatch("-?[0-9]+", number.literal):
            return str(int(number.literal))
        return repr(number.value)


@near_miss("gcvt-thresholds")
class GcvtThresholds(Honest):
    """Writes an exponent below 10^-4 and from 10^17 on, as %g and gcvt do."""

    def layout(self, digits: str, point: int) -> str:
        return super().layout(digits, point) if -4 < point <= 17 else self.with_exponent(digits, point - 1)


@near_miss("java-double-to-string")
class JavaDouble(Honest):
    """Writes what Double.toString writes: 1.0E10."""

    def layout(self, digits: str, point: int) -> str:
        if -3 < point <= 7:
            text = super().layout(digits, point)
            return text if "." in text else text + ".0"
        return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


@near_miss("big-integers-verbatim")
class BigIntegersVerbatim(Honest):
    """Writes integer literals digit by digit, however large."""

    def number_text(self, number: Number) -> str:
        if re.fullmatch("-?[0-9]+", number.literal):
            return str(int(number.literal))
        return super().number_text(number)


@near_miss("literals-verbatim")
class LiteralsVerbatim(Honest):
    """Writes numbers as they are spelt."""

    def number_text(self, number: Number) -> str:
        return number.literal


@near_miss("integers-exact")
class IntegersExact(Honest):
    """Writes all digits of an integral double, not the shortest ones."""

    def number_text(self, number: Number) -> str:
        if 2**53 <= abs(number.value) < 1e21:
            return str(int(number.value))
        return super().number_text(number)


@near_miss("integers-64-bit")
class Integers64Bit(Honest):
    """Writes integer literals as 64-bit integers where they fit."""

    def number_text(self, number: Number) -> str:
        if re.fullmatch("-?[0-9]+", number.literal) and -(2**63) <= int(number.literal) < 2**63:
            return str(int(number.literal))
        return super().number_text(number)


@near_miss("big-integers-refused")
class BigIntegersRefused(Honest):
    """Refuses integer literals beyond 2^53 in every profile, its own output too."""

    def double(self, literal: str) -> float:
        if re.fullmatch("-?[0-9]+", literal) and abs(int(literal)) > 2**53 - 1:
            raise RefusalError("UNSAFE_INTEGER")
        return super().double(literal)


@near_miss("inexact-integers-refused")
class InexactIntegersRefused(Honest):
    """Refuses integer literals that are not exactly a double, which some canonical texts are not."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        if re.fullmatch("-?[0-9]+", literal) and int(literal) != int(value):
            raise RefusalError("NUMBER_TOO_PRECISE")
        return value


@near_miss("keep-minus-zero")
class KeepMinusZero(Honest):
    """Writes minus zero with its sign."""

    def number_text(self, number: Number) -> str:
        return "-0" if str(number.value) == "-0.0" else super().number_text(number)


@near_miss("minus-zero-refused")
class MinusZeroRefused(Honest):
    """Refuses minus zero."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        if str(value) == "-0.0":
            raise RefusalError("NUMBER_OUT_OF_RANGE")
        return value


@near_miss("exponent-without-plus")
class ExponentWithoutPlus(Honest):
    """Leaves the plus sign of an exponent out."""

    def with_exponent(self, digits: str, exponent: int) -> str:
        return super().with_exponent(digits, exponent).replace("+", "")


@near_miss("exponent-upper-case")
class ExponentUpperCase(Honest):
    """Writes the letter of an exponent in upper case."""

    def with_exponent(self, digits: str, exponent: int) -> str:
        return super().with_exponent(digits, exponent).upper()


@near_miss("exponent-two-digits")
class ExponentTwoDigits(Honest):
    """Writes an exponent with at least two digits, as C does."""

    def with_exponent(self, digits: str, exponent: int) -> str:
        return digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{exponent:+03d}"


@near_miss("exponent-with-point-zero")
class ExponentWithPointZero(Honest):
    """Writes 1.0e+21."""

    def with_exponent(self, digits: str, exponent: int) -> str:
        return super().with_exponent(digits if digits[1:] else digits + "0", exponent)


@near_miss("never-exponent")
class NeverExponent(Honest):
    """Writes all digits and no exponent."""

    def with_exponent(self, digits: str, exponent: int) -> str:
        if exponent >= len(digits) - 1:
            return digits + "0" * (exponent + 1 - len(digits))
        if exponent < 0:
            return "0." + "0" * (-exponent - 1) + digits
        return digits[: exponent + 1] + "." + digits[exponent + 1 :]


@near_miss("exponent-one-early")
class ExponentOneEarly(Honest):
    """Writes an exponent from 10^20 on."""

    def layout(self, digits: str, point: int) -> str:
        return self.with_exponent(digits, point - 1) if point == 21 else super().layout(digits, point)


@near_miss("exponent-one-late")
class ExponentOneLate(Honest):
    """Writes 10^21 without an exponent."""

    def layout(self, digits: str, point: int) -> str:
        return digits + "0" * (22 - len(digits)) if point == 22 else super().layout(digits, point)


@near_miss("small-one-late")
class SmallOneLate(Honest):
    """Writes 10^-7 without an exponent."""

    def layout(self, digits: str, point: int) -> str:
        return "0.000000" + digits if point == -6 else super().layout(digits, point)


@near_miss("small-one-early")
class SmallOneEarly(Honest):
    """Writes 10^-6 with an exponent."""

    def layout(self, digits: str, point: int) -> str:
        return self.with_exponent(digits, -6) if point == -5 else super().layout(digits, point)


@near_miss("digits-cut-off")
class DigitsCutOff(Honest):
    """Reads 17 digits of a literal and drops the rest."""

    def double(self, literal: str) -> float:
        if literal.lower() in ("-0", "0"):
            return super().double(literal)
        super().double(literal)
        return float(Context(prec=17, rounding=ROUND_DOWN).create_decimal(literal))


@near_miss("tie-digit-up")
class TieDigitUp(Honest):
    """Rounds the last digit up where two shortest texts are equally near."""

    def shortest(self, value: float) -> tuple[str, int]:
        digits, point = super().shortest(value)
        last = Decimal(1).scaleb(point - len(digits))
        if abs(Decimal(value) - Decimal(digits).scaleb(point - len(digits)) - last / 2) == 0:
            return str(int(digits) + 1), point
        return digits, point


@near_miss("not-the-nearest-digit")
class NotTheNearestDigit(Honest):
    """Takes any shortest text that reads back, not the nearest one."""

    def shortest(self, value: float) -> tuple[str, int]:
        digits, point = super().shortest(value)
        lower = str(int(digits) - 1)
        if len(lower) == len(digits) > 1 and float(f"{lower}e{point - len(digits)}") == value:
            return lower.rstrip("0"), point
        return digits, point


@near_miss("subnormals-flushed")
class SubnormalsFlushed(Honest):
    """Takes subnormal numbers for zero."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        return 0.0 if abs(value) < 2.2250738585072014e-308 else value


@near_miss("halfway-away")
class HalfwayAway(Honest):
    """Reads an integer halfway between two doubles as the larger one."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        if re.fullmatch("[0-9]{16}", literal) and int(literal) - int(value) == 1:
            return value + 2
        return value


@near_miss("infinity-to-null")
class InfinityToNull(Honest):
    """Writes null for a number that is too large."""

    def overflow(self, value: float) -> float:
        return value

    def number_text(self, number: Number) -> str:
        return "null" if number.value in (float("inf"), float("-inf")) else super().number_text(number)


@near_miss("infinity-as-word")
class InfinityAsWord(Honest):
    """Writes Infinity for a number that is too large."""

    def overflow(self, value: float) -> float:
        return value

    def number_text(self, number: Number) -> str:
        words = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
        return words.get(number.value) or super().number_text(number)


@near_miss("infinity-clamped")
class InfinityClamped(Honest):
    """Takes the largest double for a number that is too large."""

    def overflow(self, value: float) -> float:
        return 1.7976931348623157e308 if value > 0 else -1.7976931348623157e308


@near_miss("largest-refused")
class LargestRefused(Honest):
    """Compares literals, not doubles, with the largest double."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        if abs(Decimal(literal)) > Decimal("1.7976931348623157e308"):
            raise RefusalError("NUMBER_OUT_OF_RANGE")
        return value
