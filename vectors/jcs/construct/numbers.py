"""Number lexemes: doubles chosen by stratum, their canonical text by exact arithmetic, and legal other spellings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from holdfast.vectors.jcs.construct.decimals import (
    HIDDEN,
    MOST_DIGITS,
    Decimal,
    Double,
    Shortest,
    double_of_bits,
    ecmascript,
    exact,
    midpoint,
    nearest,
    round_trips,
    rounded,
    shortest,
)
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.segments import CONTESTED, Lexeme, Reason, Segment

# The decimal exponents of the leading digit of doubles, and so the strata: sign x significant digits x exponent.
LEAST_DECADE = -324
GREATEST_DECADE = 308
STRATA = 2 * MOST_DIGITS * (GREATEST_DECADE - LEAST_DECADE + 1)
# Walks through all strata before any comes again: a prime that does not divide their number.
_STRIDE = 7919
_SAFE = 2**53 - 1
# The least number with more than 17 digits.
_TOO_PRECISE = 10**MOST_DIGITS
# From here on canonical text has an exponent and is no integer literal (ECMA-262 Number::toString).
_WITH_EXPONENT = 10**21
# The bit patterns of 2^53 and of the first double past 10^21.
_FIRST_UNSAFE = Double(HIDDEN, 1).bits
_PAST_INTEGERS = 0x444B_1AE4_D6E2_EF50
_INFINITY = 0x7FF0_0000_0000_0000
# A sign, which is empty or a minus, and a decimal without it.
Signed = tuple[str, Decimal]


def number_lexemes(dice: Dice, block: int) -> dict[Segment, list[Lexeme]]:
    """The number lexemes of a block, by segment. Each source is used until its segment has its count."""
    found: dict[Segment, list[Lexeme]] = {segment: [] for segment in COUNTS}
    for segment in COUNTS:
        source = _strata(dice, block) if segment is Segment.STRATA else _SOURCES[segment](dice)
        while len(found[segment]) < COUNTS[segment]:
            sign, literal = next(source)
            made = lexeme(dice, sign, literal, segment)
            if made is None:
                continue
            belongs = _segment_of(made, segment)
            if belongs is not None:
                found[belongs].append(made)
    return found


def _segment_of(made: Lexeme, wanted: Segment) -> Segment | None:
    # Some strata have lexemes that a strict profile refuses. These belong to the segment of the reason.
    code = max(made.reasons)
    if wanted in CONTESTED:
        return wanted if code == CONTESTED[wanted].code else None
    if code == 0:
        return wanted
    return next(segment for segment, reason in CONTESTED.items() if reason.code == code)


def reading(sign: str, literal: Decimal) -> tuple[str, tuple[Reason, ...]] | None:
    """The canonical text of a literal, and the reasons for which strict profiles refuse it; None if it overflows."""
    literal = literal.stripped()
    if isinstance(literal, Shortest) or round_trips(literal):
        value = literal
    else:
        double = nearest(literal)
        if double is None:
            return None
        value = shortest(double)
    # RFC 8785 writes minus zero as 0.
    canonical = ("" if value.digits == 0 else sign) + ecmascript(value)
    # Canonical text that is an integer literal, and beyond what a double counts exactly.
    unsafe = 0 <= value.exponent <= 21 and _SAFE < value.digits * 10**value.exponent < _WITH_EXPONENT
    found = (
        (Reason.UNSAFE_INTEGER, unsafe),
        (Reason.NUMBER_TOO_PRECISE, literal.digits >= _TOO_PRECISE),
        (Reason.NUMBER_UNDERFLOW, literal.digits != 0 and value.digits == 0),
    )
    return canonical, tuple(reason for reason, applies in found if applies)


def lexeme(dice: Dice, sign: str, literal: Decimal, wanted: Segment) -> Lexeme | None:
    """A literal's canonical text and three spellings of it, none of them canonical if SPELLED ones are wanted.

    None if the literal overflows, or if two strict profiles, or one for two reasons, would refuse it: a document has
    one reason at most.
    """
    read = reading(sign, literal)
    if read is None or len(read[1]) > 1:
        return None
    canonical, reasons = read
    literal, code = literal.stripped(), sum(reason.code for reason in reasons)
    texts = [canonical.encode("ascii")]
    for _ in range(3):
        text = sign + spell(dice, literal)
        if text == canonical and wanted is Segment.SPELLED:
            text = sign + _scientific(literal)
        texts.append(text.encode("ascii"))
    return Lexeme(tuple(texts), (code if Reason.UNSAFE_INTEGER in reasons else 0, code, code, code))


def spell(dice: Dice, value: Decimal) -> str:
    """Some legal spelling of a decimal: a moved point, an exponent in many forms, trailing zeros."""
    digits = str(value.digits)
    length = len(digits)
    # One draw decides everything; its low bits are taken one after the other.
    word = dice.word()
    choice, bits = word & 7, word >> 3
    # Where the point stands without an exponent, counted from the first digit. Zero can have any exponent.
    natural = length + value.exponent if value.digits else 1
    if (choice < 3 and -8 <= natural <= 24) or (choice == 3 and -40 <= natural <= 60):
        point = natural
    elif choice < 6:
        point = 1
    else:
        point = (bits & 0xFFF) % (length + 7) - 3
    exponent = natural - point if value.digits else ((bits >> 12 & 0xFFF) % 801 - 400) * (bits >> 24 & 1)
    if point <= 0:
        text = "0." + "0" * -point + digits
    elif point < length:
        text = f"{digits[:point]}.{digits[point:]}"
    else:
        text = digits + "0" * (point - length) if value.digits else "0"
    if bits >> 25 & 3 == 0:
        text += ("" if "." in text else ".") + "000"[: 1 + (bits >> 27 & 0xFF) % 3]
    if exponent or bits >> 35 & 7 == 0:
        letter = "eE"[bits >> 38 & 1]
        sign = "-" if exponent < 0 or (exponent == 0 and bits >> 39 & 3 == 0) else ("", "+")[bits >> 41 & 1]
        zeros = "000"[: max(0, (bits >> 42 & 7) - 4)]
        text += f"{letter}{sign}{zeros}{abs(exponent)}"
    return text


def _scientific(value: Decimal) -> str:
    # A capital E is never canonical.
    return f"{value.digits}E{value.exponent}"


def digits_of(dice: Dice, length: int) -> int:
    """A number of exactly `length` digits that does not end in 0."""
    if length == 1:
        return dice.between(1, 9)
    room: int = 10 ** (length - 2)
    return (dice.between(1, 9) * room + dice.below(room)) * 10 + dice.between(1, 9)


def _sign(dice: Dice, cases: int = 2) -> str:
    # A minus in one of `cases` cases.
    return "-" if dice.one_in(cases) else ""


def _strata(dice: Dice, block: int) -> Iterator[Signed]:
    for place in count(block * COUNTS[Segment.STRATA]):
        yield stratum(dice, place)


def stratum(dice: Dice, place: int) -> Signed:
    """The sign and a decimal of stratum number `place` of the walk, which is endless and meets each in turn.

    With 16 and 17 digits the shortest text of the double has that many, too; below the normal doubles (from 1e-308
    down) fewer digits exist and the literal alone has them.
    """
    number = place * _STRIDE % STRATA
    sign, length = "-" * (number % 2), number // 2 % MOST_DIGITS + 1
    decade = number // (2 * MOST_DIGITS) + LEAST_DECADE
    for attempt in count():
        literal = Decimal(digits_of(dice, length), decade - length + 1)
        if round_trips(literal):
            return sign, literal
        double = nearest(literal)
        if double is None:
            if attempt > 40:
                # The greatest decade has few numbers with many digits below the limit; 1 is below it with any.
                return sign, Decimal(10 ** (length - 1) + (1 if length > 1 else 0), decade - length + 1)
            continue
        text = shortest(double)
        if len(str(text.digits)) == length and text.exponent == literal.exponent:
            return sign, text
        if length <= 15 or attempt > 12:
            return sign, literal
    raise AssertionError("unreachable")


def _thresholds(dice: Dice) -> Iterator[Signed]:
    around = [nearest(Decimal(1, decade)) for decade in (-8, -7, -6, -5, 20, 21, 22)]
    while True:
        sign = _sign(dice)
        if dice.one_in(4):
            double = dice.pick(around)
            stepped = double.stepped(dice.between(-4, 4)) if double else None
            if stepped is not None:
                yield sign, shortest(stepped)
        else:
            length = dice.between(1, MOST_DIGITS)
            yield sign, Decimal(digits_of(dice, length), dice.pick((-8, -7, -6, -5, 21, 21, 22)) - length + 1)


def _shortest(dice: Dice) -> Iterator[Signed]:
    while True:
        sign, choice = _sign(dice), dice.below(8)
        if choice < 4:
            double: Double | None = double_of_bits(dice.between(1, _INFINITY - 1))
        elif choice == 4:
            near = nearest(Decimal(1, dice.between(-323, GREATEST_DECADE)))
            double = near.stepped(dice.between(-3, 3)) if near else None
        elif choice == 5:
            double = double_of_bits(dice.between(1, 2046) << 52).stepped(dice.between(-2, 2))
        elif choice == 6:
            # Below the normal doubles: any number of bits, so any number of digits.
            double = double_of_bits(dice.between(1, 2 ** dice.between(1, 52)))
        else:
            double = dice.pick((double_of_bits(1), double_of_bits(HIDDEN), double_of_bits(_INFINITY - 1)))
            double = double.stepped(dice.between(-2, 2))
        if double is not None and double.significand:
            # Sometimes the literal has 17 digits where fewer would do.
            yield sign, rounded(exact(double), MOST_DIGITS) if dice.one_in(4) else shortest(double)


def _double_around_one(dice: Dice) -> Double:
    # Within 2^-120 … 2^120, and beyond the safe integers only from 2^71 on: no literal has hundreds of digits.
    power = dice.between(-120, 49) if dice.one_in(2) else dice.between(71, 120)
    return double_of_bits(((1023 + power) << 52) | dice.below(HIDDEN))


def _near_ties(dice: Dice) -> Iterator[Signed]:
    while True:
        choice = dice.below(16)
        if choice == 0:
            # Beyond the greatest double, but nearer to it than to the next power of two.
            yield _sign(dice), Decimal(17976931348623157 + dice.below(2), 292)
            continue
        if choice < 4:
            # Quarters between 2^50 and 2^51: two texts of 17 digits are equally near, the even digit is right (RFC
            # 8785 section 3.2.2.3, "Note 2").
            tie = Double(dice.between(HIDDEN // 2, HIDDEN - 1) * 2 + 1, -2)
            yield _sign(dice), exact(tie) if choice == 1 else shortest(tie)
            continue
        half = rounded(midpoint(_double_around_one(dice)), MOST_DIGITS)
        yield _sign(dice), Decimal(half.digits + dice.between(-1, 1), half.exponent)


def _ties(dice: Dice) -> Iterator[Signed]:
    while True:
        # Now and then a tie of the full length, which needs hundreds of digits.
        long = dice.one_in(24)
        double = double_of_bits(dice.between(HIDDEN, _INFINITY - 1)) if long else _double_around_one(dice)
        half, choice = midpoint(double), dice.below(4)
        if choice == 1:
            half = Decimal(half.digits * 10**5 + dice.between(1, 9), half.exponent - 5)
        elif choice == 2:
            half = Decimal(half.digits * 10**5 - dice.between(1, 9), half.exponent - 5)
        elif choice == 3:
            half = rounded(half, dice.between(18, 25))
        yield _sign(dice), half


def _spelled(dice: Dice) -> Iterator[Signed]:
    while True:
        sign, choice = _sign(dice), dice.below(8)
        if choice == 0:
            yield sign, Decimal(0, 0)
        elif choice < 5:
            yield sign, Decimal(digits_of(dice, dice.between(1, 6)), dice.between(-8, 8))
        else:
            length = dice.between(1, MOST_DIGITS - 2)
            yield sign, Decimal(digits_of(dice, length), dice.between(-300, 290))


def _integers(dice: Dice) -> Iterator[Signed]:
    while True:
        choice = dice.below(6)
        if choice == 0:
            value = _SAFE - dice.below(4)
        elif choice == 1:
            value = 2 ** dice.pick((7, 8, 15, 16, 24, 31, 32, 52, 53)) + dice.between(-2, 2)
        elif choice == 2:
            value = 10 ** dice.between(0, 15) + dice.between(-1, 1)
        else:
            value = dice.below(2 ** dice.between(1, 53))
        yield _sign(dice), Decimal(min(value, _SAFE), 0)


def _human(dice: Dice) -> Iterator[Signed]:
    while True:
        choice = dice.below(4)
        if choice == 0:
            yield _sign(dice, 4), Decimal(dice.below(10 ** dice.between(1, 7)), -2)
        elif choice == 1:
            length = dice.between(1, 5)
            yield _sign(dice, 4), Decimal(digits_of(dice, length), dice.between(-300, 300))
        else:
            length = dice.between(1, 8)
            yield _sign(dice, 4), Decimal(digits_of(dice, length), dice.between(-10, 4))


def _unsafe(dice: Dice) -> Iterator[Signed]:
    while True:
        sign, choice = _sign(dice), dice.below(4)
        if choice < 2:
            # The odd integers here are halfway between two doubles.
            odd = 0 if dice.one_in(4) else 1
            yield sign, Decimal(2**53 + 2 * dice.below(4 if dice.one_in(4) else 1000) + odd, 0)
        elif choice == 2:
            yield sign, Decimal(digits_of(dice, dice.between(1, MOST_DIGITS)), dice.between(0, 20))
        else:
            yield sign, shortest(double_of_bits(dice.between(_FIRST_UNSAFE, _PAST_INTEGERS)))


def _underflow(dice: Dice) -> Iterator[Signed]:
    while True:
        length, choice = dice.between(1, MOST_DIGITS), dice.below(3)
        if choice == 0:
            # Half the least double is 2.4703282292062327208…e-324: so much is still 0.
            yield _sign(dice), Decimal(24703282292062327 - dice.below(3), -340)
        else:
            decade = dice.between(-400, -325) if choice == 1 else -(10 ** dice.between(3, 6))
            yield _sign(dice), Decimal(digits_of(dice, length), decade - length + 1)


# How many lexemes of each segment a block makes, and where they come from. Sources are used in this order.
COUNTS = {
    Segment.STRATA: 576,
    Segment.THRESHOLD: 128,
    Segment.SHORTEST: 256,
    Segment.TIES: 128,
    Segment.SPELLED: 192,
    Segment.INTEGERS: 192,
    Segment.HUMAN: 256,
    Segment.UNSAFE: 128,
    Segment.PRECISE: 96,
    Segment.UNDERFLOW: 48,
}
_SOURCES: dict[Segment, Callable[[Dice], Iterator[Signed]]] = {
    Segment.THRESHOLD: _thresholds,
    Segment.SHORTEST: _shortest,
    Segment.TIES: _near_ties,
    Segment.SPELLED: _spelled,
    Segment.INTEGERS: _integers,
    Segment.HUMAN: _human,
    Segment.UNSAFE: _unsafe,
    Segment.PRECISE: _ties,
    Segment.UNDERFLOW: _underflow,
}
