"""Near misses about what the profiles refuse: noncharacters, precision, underflow, unsafe integers."""

from __future__ import annotations

import re
from decimal import Decimal

from tests.vectors.nearmiss.honest import Honest, NameAware, Number, RefusalError
from tests.vectors.nearmiss.registry import near_miss


@near_miss("noncharacters-refused")
class NoncharactersRefused(Honest):
    """Refuses noncharacters in every profile."""

    def surrogates(self, text: str) -> str:
        self.check_characters(text)
        return super().surrogates(text)


@near_miss("noncharacters-accepted")
class NoncharactersAccepted(Honest):
    """Accepts noncharacters in i-json-strict too."""

    def check_characters(self, text: str) -> None:
        pass


@near_miss("noncharacters-replaced")
class NoncharactersReplaced(Honest):
    """Writes U+FFFD for noncharacters."""

    def surrogates(self, text: str) -> str:
        return "".join("\ufffd" if self.is_noncharacter(ord(c)) else c for c in super().surrogates(text))


@near_miss("noncharacters-first-plane")
class NoncharactersFirstPlane(Honest):
    """Knows the noncharacters of the first plane only."""

    def is_noncharacter(self, code: int) -> bool:
        return code <= 0xFFFF and super().is_noncharacter(code)


@near_miss("noncharacters-without-block")
class NoncharactersWithoutBlock(Honest):
    """Forgets the noncharacters from U+FDD0 to U+FDEF."""

    def is_noncharacter(self, code: int) -> bool:
        return code & 0xFFFE == 0xFFFE


@near_miss("noncharacter-block-too-long")
class NoncharacterBlockTooLong(Honest):
    """Takes U+FDF0 for a noncharacter."""

    def is_noncharacter(self, code: int) -> bool:
        return super().is_noncharacter(code) or code == 0xFDF0


@near_miss("name-noncharacters-accepted")
class NameNoncharactersAccepted(NameAware):
    """Looks for noncharacters in values only."""

    def check_characters(self, text: str) -> None:
        if not self.in_name:
            super().check_characters(text)


@near_miss("underflow-refused")
class UnderflowRefused(Honest):
    """Refuses what becomes zero in every profile."""

    def double(self, literal: str) -> float:
        value = super().double(literal)
        if value == 0 and re.search("[1-9]", re.split("[eE]", literal)[0]):
            raise RefusalError("NUMBER_UNDERFLOW")
        return value


@near_miss("underflow-accepted")
class UnderflowAccepted(Honest):
    """Accepts what becomes zero in i-json-strict too."""

    def check_precision(self, literal: str, value: float) -> None:
        if value != 0:
            super().check_precision(literal, value)


@near_miss("precision-unchecked")
class PrecisionUnchecked(Honest):
    """Accepts any number of digits in i-json-strict."""

    def check_precision(self, literal: str, value: float) -> None:
        if value == 0:
            super().check_precision(literal, value)


@near_miss("zeros-counted")
class ZerosCounted(Honest):
    """Counts the zeros at the ends of a coefficient as significant."""

    def check_precision(self, literal: str, value: float) -> None:
        super().check_precision(literal, value)
        if sum(character.isdigit() for character in re.split("[eE]", literal)[0]) > 17:
            raise RefusalError("NUMBER_TOO_PRECISE")


@near_miss("sixteen-digits-only")
class SixteenDigitsOnly(Honest):
    """Refuses 17 significant digits in i-json-strict, which canonical texts may have."""

    def check_precision(self, literal: str, value: float) -> None:
        super().check_precision(literal, value)
        if len(re.split("[eE]", literal.lstrip("-"))[0].replace(".", "").strip("0")) > 16:
            raise RefusalError("NUMBER_TOO_PRECISE")


@near_miss("fraction-digits-only")
class FractionDigitsOnly(Honest):
    """Counts the digits behind the point only."""

    def check_precision(self, literal: str, value: float) -> None:
        if value == 0 or "." in literal:
            super().check_precision(literal, value)


@near_miss("inexact-refused")
class InexactRefused(Honest):
    """Refuses in i-json-strict every literal that is not exactly a double, 0.1 too."""

    def check_precision(self, literal: str, value: float) -> None:
        super().check_precision(literal, value)
        if Decimal(value) != Decimal(literal):
            raise RefusalError("NUMBER_TOO_PRECISE")


@near_miss("safe-by-literal")
class SafeByLiteral(Honest):
    """Looks at the literal in safe-int, so that 1e17 passes."""

    def check_safe(self, text: str, number: Number) -> None:
        if re.fullmatch("-?[0-9]+", number.literal):
            super().check_safe(text, number)


@near_miss("safe-one-too-many")
class SafeOneTooMany(Honest):
    """Takes 2^53 for a safe integer."""

    def check_safe(self, text: str, number: Number) -> None:
        if abs(number.value) != 2**53:
            super().check_safe(text, number)


@near_miss("safe-positive-only")
class SafePositiveOnly(Honest):
    """Looks at positive integers only."""

    def check_safe(self, text: str, number: Number) -> None:
        if number.value > 0:
            super().check_safe(text, number)


@near_miss("safe-by-value")
class SafeByValue(Honest):
    """Refuses in safe-int every number beyond 2^53, written as an integer or not."""

    def check_safe(self, text: str, number: Number) -> None:
        if abs(number.value) > 2**53 - 1:
            raise RefusalError("UNSAFE_INTEGER")


@near_miss("unsafe-accepted")
class UnsafeAccepted(Honest):
    """Knows no rule for integers in safe-int."""

    def check_safe(self, text: str, number: Number) -> None:
        pass
