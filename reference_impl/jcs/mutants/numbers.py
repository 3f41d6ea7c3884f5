"""Bugs about numbers: read as another double, or written in the way of a language."""

from __future__ import annotations

import json
import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.mutants.planting import mutant
from holdfast.reference_impl.jcs.reader import Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Reason, Refusal
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

# Every integer up to here is a double, and no two of them are the same one.
_EXACT = 2**53


class Clamped(Reader):
    def rounded(self, literal: str) -> float:
        double = super().rounded(literal)
        return double if math.isfinite(double) else math.copysign(1.7976931348623157e308, double)


class InfinityIsNull(Reader):
    def number(self, text: str, at: int) -> Any:
        end = self.number_end(text, at)
        return (None, end) if math.isinf(float(text[at:end])) else super().number(text, at)


class RangeTooSmall(Reader):
    def refuse_out_of_range(self, double: float, at: int) -> None:
        if abs(double) >= 1.7976931348623157e308:
            defect(Reason.NUMBER_OUT_OF_RANGE, at)


class CutOff(Reader):
    def rounded(self, literal: str) -> float:
        # 17 digits are enough for anybody, and the others are zeros.
        coefficient, exponent = re.fullmatch(r"(-?[0-9.]+)(.*)", literal).groups()  # type: ignore[union-attr]
        seen, kept = 0, []
        for character in coefficient:
            seen += character.isdigit() and (seen > 0 or character != "0")
            kept.append("0" if character.isdigit() and seen > 17 else character)
        return float("".join(kept) + exponent)


class NoCapitalE(Reader):
    def number_end(self, text: str, at: int) -> int:
        end = super().number_end(text, at)
        capital = text.find("E", at, end)
        return end if capital < 0 else capital


class UnderflowRefused(Reader):
    def refuse_underflow(self, literal: str, double: float, at: int) -> None:
        if double == 0 and re.match(r"[^eE]*[1-9]", literal):
            defect(Reason.NUMBER_UNDERFLOW, at)


class BigAsText(Reader):
    def number(self, text: str, at: int) -> Any:
        double, end = super().number(text, at)
        literal = text[at:end]
        return (literal if re.fullmatch(r"-?[0-9]+", literal) and abs(int(literal)) > _EXACT else double), end


class AsRepr(Writer):
    def number(self, double: float) -> str:
        return repr(double)


class SeventeenDigits(Writer):
    def number(self, double: float) -> str:
        return f"{double:.17g}"


class FifteenDigits(Writer):
    def number(self, double: float) -> str:
        return super().number(float(f"{double:.15g}"))


class HalfUp(Writer):
    def number(self, double: float) -> str:
        digits = len(Decimal(repr(double)).normalize().as_tuple().digits)
        exact = Decimal(double)
        if not exact:
            return super().number(double)
        step = Decimal((0, (1,), exact.adjusted() - digits + 1))
        # The tie goes up, and the text is written as it stands: reading it gives the same double.
        rounded = (exact / step).quantize(Decimal(1), ROUND_HALF_UP) * step
        text = super().number(double)
        return text if Decimal(text) == rounded or digits < 16 else format(rounded.normalize(), "f")


class MinusZero(Writer):
    def number(self, double: float) -> str:
        return "-0" if double == 0 and math.copysign(1, double) < 0 else super().number(double)


class AllDigits(Writer):
    def number(self, double: float) -> str:
        return str(int(double)) if _EXACT < abs(double) < 1e21 else super().number(double)


class EarlyExponent(Writer):
    def number(self, double: float) -> str:
        text = super().number(double)
        if abs(double) < 1e17 or "e" in text:
            return text
        digits = text.lstrip("-").rstrip("0")
        point = f".{digits[1:]}" if digits[1:] else ""
        return f"{'-' * (double < 0)}{digits[0]}{point}e+{len(text.lstrip('-')) - 1}"


class PaddedExponent(Writer):
    def number(self, double: float) -> str:
        return re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", super().number(double))


class _KeepsIntegers(Reader):
    def number(self, text: str, at: int) -> Any:
        double, end = super().number(text, at)
        literal = text[at:end]
        return (int(literal) if re.fullmatch(r"-?[1-9][0-9]*", literal) else double), end


class _WritesIntegers(Writer):
    def scalar(self, value: Value) -> str:
        return json.dumps(value) if isinstance(value, int) else super().scalar(value)


class BigVerbatim(Canonicaliser):
    def canonicalise(self, document: bytes) -> bytes | Refusal:
        reader = _KeepsIntegers(self.reader.limits, self.reader.profile)
        return Canonicaliser(reader, _WritesIntegers()).canonicalise(document)


_BIG = "one of its numbers is large"
_WRITTEN = "one of its numbers is written so"

MUTANTS = (
    mutant(
        "range-clamped",
        "A number out of range is the largest double",
        part(reader=Clamped),
        {"NUM-01": "fail_open"},
        also("verify meets the same number, and then compares", "VER-03"),
    ),
    mutant(
        "infinity-is-null",
        "A number out of range is null",
        part(reader=InfinityIsNull),
        {"NUM-01": "fail_open"},
        also("verify meets the same number, and then compares", "VER-03"),
    ),
    mutant(
        "range-too-small",
        "The largest double is refused",
        part(reader=RangeTooSmall),
        {"NUM-01": "over_refusal"},
        also("the largest double is among its numbers", "NUM-03 IDEM-01 IDEM-02 VER-01"),
    ),
    mutant(
        "digits-cut-off",
        "Digits behind the 17th are zeros",
        part(reader=CutOff),
        {"NUM-09": "wrong_reason"},
        also("one of its numbers has many digits", "NUM-01 NUM-06 PROF-06 IDEM-02"),
    ),
    mutant(
        "no-capital-e",
        "A capital E is no exponent",
        part(reader=NoCapitalE),
        {"NUM-08": "over_refusal"},
        also("one of its numbers has a capital E", "NUM-01 NUM-05 IDEM-02 VER-02"),
    ),
    mutant(
        "underflow-refused",
        "Every profile refuses what becomes zero",
        part(reader=UnderflowRefused),
        {"NUM-07": "over_refusal"},
        also("one of its numbers becomes zero", "PROF-06 IDEM-01"),
    ),
    mutant(
        "big-as-text",
        "Integers beyond 2^53 become strings",
        part(reader=BigAsText),
        {"NUM-06": "wrong_reason"},
        also(_BIG, "NUM-01 NUM-02 NUM-09 IDEM-01 VER-01 VER-02 PURE-01 PROF-03 PROF-05 PROF-06"),
    ),
    mutant(
        "big-verbatim",
        "Integers are written as they came",
        part(canonicaliser=BigVerbatim),
        {"NUM-06": "wrong_reason", "VER-02": "fail_open"},
        also(_BIG, "NUM-01 NUM-02 NUM-09 PURE-01 PROF-03 PROF-05 PROF-06 IDEM-02"),
    ),
    mutant(
        "all-digits",
        "Integers beyond 2^53 are written with all the digits of their double",
        part(writer=AllDigits),
        {"NUM-06": "wrong_reason"},
        also(_BIG, "NUM-02 NUM-09 IDEM-01 VER-01 PROF-03 PROF-06"),
    ),
    mutant(
        "as-repr",
        "Numbers are written as Python shows them",
        part(writer=AsRepr),
        {"NUM-02": "wrong_reason"},
        also("every integer gets a point and a zero", EVERYTHING),
    ),
    mutant(
        "seventeen-digits",
        "Numbers are written with 17 digits",
        part(writer=SeventeenDigits),
        {"NUM-03": "wrong_reason"},
        also(
            _WRITTEN,
            "GRAM-02 NUM-01 NUM-02 NUM-04 NUM-05 NUM-06 NUM-07 NUM-08 NUM-09 IDEM-01 IDEM-02 VER-01 VER-02 "
            "PROF-01 PROF-03 PROF-04 PROF-06",
        ),
    ),
    mutant(
        "fifteen-digits",
        "Numbers are rounded to 15 digits",
        part(writer=FifteenDigits),
        {"NUM-03": "wrong_reason"},
        also(
            _WRITTEN,
            "NUM-01 NUM-02 NUM-04 NUM-06 NUM-09 IDEM-01 VER-01 VER-02 PURE-01 PROF-03 PROF-05 PROF-06 VER-03",
        )
        | also("the largest doubles become infinite, and the writer fails", "UTF8-01 GRAM-01 DUP-01"),
    ),
    mutant(
        "ties-half-up",
        "Of two equally close digit strings the higher is written",
        part(writer=HalfUp),
        {"NUM-04": "wrong_reason"},
        also("one of its numbers lies between", "NUM-06 IDEM-02"),
    ),
    mutant(
        "minus-zero-kept",
        "Minus zero keeps its sign",
        part(writer=MinusZero),
        {"NUM-05": "wrong_reason", "VER-02": "fail_open"},
        also("minus zero is among its numbers", "NUM-07 PROF-01 PROF-04 IDEM-02 TOP-01"),
    ),
    mutant(
        "exponent-from-1e17",
        "Numbers from 1e17 on have an exponent",
        part(writer=EarlyExponent),
        {"NUM-02": "wrong_reason"},
        also(_BIG, "NUM-06 NUM-09 IDEM-01 VER-01 VER-02 PROF-03 PROF-06"),
    ),
    mutant(
        "exponent-padded",
        "An exponent has at least two digits",
        part(writer=PaddedExponent),
        {"NUM-02": "wrong_reason"},
        also(_WRITTEN, "IDEM-01 IDEM-02 VER-01"),
    ),
)
