"""Bugs about numbers: read as another double, or written in the way of a language."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.reader import Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Reason, Refusal
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.planting import Change, part

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
        # It keeps 17 digits and replaces the others by zeros.
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
        # The tie goes up, and the text is written unchanged: reading it gives the same double.
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


BUGS: Mapping[str, Change] = {
    "range-clamped": part(reader=Clamped),
    "infinity-is-null": part(reader=InfinityIsNull),
    "range-too-small": part(reader=RangeTooSmall),
    "digits-cut-off": part(reader=CutOff),
    "no-capital-e": part(reader=NoCapitalE),
    "underflow-refused": part(reader=UnderflowRefused),
    "big-as-text": part(reader=BigAsText),
    "big-verbatim": part(canonicaliser=BigVerbatim),
    "all-digits": part(writer=AllDigits),
    "as-repr": part(writer=AsRepr),
    "seventeen-digits": part(writer=SeventeenDigits),
    "fifteen-digits": part(writer=FifteenDigits),
    "ties-half-up": part(writer=HalfUp),
    "minus-zero-kept": part(writer=MinusZero),
    "exponent-from-1e17": part(writer=EarlyExponent),
    "exponent-padded": part(writer=PaddedExponent),
}
