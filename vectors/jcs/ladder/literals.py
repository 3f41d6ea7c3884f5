"""Rungs of numbers: literals of up to 2,000 digits, exponents without end, and the edges of integer types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.construct.decimals import HIDDEN, Decimal, Double, double_of_bits, midpoint
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.ladder.pieces import Defective, Made, Piece, Step, Tools, number_of
from holdfast.vectors.jcs.ladder.sizes import DIGITS, DISTANCES, EXPONENTS, INTEGERS
from holdfast.vectors.taxonomy import Category

_ZEROS = ("0", "-0", "0.0", "-0.00", "0.0000000000000000000000000")
# Where a literal stands: before it, behind it in the document, and behind it in the canonical form.
_PLACES = ((b"", b"", b""), (b"[", b"]", b"]"), (b"[0,", b"]", b"]"), (b'{"a":', b"}", b"}"), (b"[", b" , 0]", b",0]"))
_GREATEST_POWER = 309
# Literals with more digits than these cannot be written out as an integer below the greatest double.
_MOST_WHOLE = 309
_TIED = ("above", "below", "even")


def steps() -> Iterator[Step]:
    """The rungs of numbers."""
    for digits in DIGITS:
        for name, make in (("point", _point), ("fraction", _fraction), ("negative-exponent", _negative_exponent)):
            yield Step(f"digits-{digits}-{name}", Category.NUMBER_TIES, "JCS-NUM-09", partial(make, digits))
        for which in _TIED:
            tied = partial(_tied, digits, which)
            yield Step(f"digits-{digits}-{which}-a-tie", Category.NUMBER_TIES, "JCS-NUM-09", tied)
        for name, spelled in (
            ("trailing-zeros", _trailing_zeros), ("leading-zeros", _leading_zeros), ("shifted-up", _shifted_up),
            ("shifted-down", _shifted_down), ("zero", _long_zero),
        ):  # fmt: skip
            clause = "JCS-NUM-05" if name == "zero" else "JCS-NUM-08"
            yield Step(f"digits-{digits}-{name}", Category.NUMBER_SPELLING, clause, partial(spelled, digits))
        if digits <= _MOST_WHOLE:
            yield Step(f"digits-{digits}-whole", Category.NUMBER_TIES, "JCS-NUM-09", partial(_whole, digits))
        else:
            yield Step(f"digits-{digits}-whole", Category.NUMBER_RANGE, "JCS-NUM-01", partial(_too_great, digits))
    for which in _TIED:
        for number in range(4):
            full = partial(_full_tie, which)
            yield Step(f"digits-full-{which}-a-tie-{number}", Category.NUMBER_TIES, "JCS-NUM-09", full)
    yield from _exponents()
    for base in INTEGERS:
        for distance in DISTANCES:
            for sign in ("", "-"):
                name = f"integer-{'minus-' if sign else ''}{_power(base)}{f'{distance:+}' if distance else ''}"
                for way in ("plain", "otherwise"):
                    make = partial(_integer, sign, base + distance, way)
                    yield Step(f"{name}-{way}", Category.NUMBER_INTEGERS, "JCS-NUM-06", make)


def _exponents() -> Iterator[Step]:
    for exponent in EXPONENTS:
        for mark in ("e", "E+", "e-"):
            named = f"{_power(exponent)}{'-down' if mark == 'e-' else '-up' if mark == 'E+' else ''}"
            for number, zero in enumerate(_ZEROS):
                make = partial(_zero, zero, mark, exponent)
                yield Step(f"zero-{number}-e{named}", Category.NUMBER_SPELLING, "JCS-NUM-05", make)
            if mark == "e-":
                tiny = partial(_tiny, exponent)
                yield Step(f"number-e{named}", Category.NUMBER_SPELLING, "JCS-NUM-07", tiny)
            elif exponent >= _GREATEST_POWER:
                great = partial(_great, mark, exponent)
                yield Step(f"number-e{named}", Category.NUMBER_RANGE, "JCS-NUM-01", great)


def _power(number: int) -> str:
    for base in (2, 10):
        for power in range(15, 129):
            for step in (-1, 0, 1):
                if number == base**power + step:
                    return f"{base}^{power}{step:+}" if step else f"{base}^{power}"
    return str(number)


def _placed(tools: Tools, number: Piece) -> Piece:
    before, behind, canonical = _PLACES[tools.turn % len(_PLACES)]
    return Piece(before + number.canonical + canonical, before + number.written + behind, number.reasons)


def _digits(dice: Dice, count: int) -> str:
    """`count` digits: the first is no 0, and below 1.7 of its power; the last is no 0."""
    return f"1{dice.below(7)}" + "".join([str(dice.below(10)) for _ in range(count - 3)]) + str(dice.between(1, 9))


def _sign(dice: Dice) -> str:
    return dice.pick(("", "-"))


def _made(tools: Tools, digits: str, exponent: int, written: str) -> Made:
    return _placed(tools, number_of(_sign(tools.dice), Decimal(int(digits), exponent), written))


def _point(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    behind = tools.dice.between(1, min(count - 1, 15))
    return _made(tools, digits, behind - count, f"{digits[:behind]}.{digits[behind:]}")


def _fraction(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    return _made(tools, digits, -count, f"0.{digits}")


def _negative_exponent(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    return _made(tools, digits, 1 - count, f"{digits}e-{count - 1}")


def _whole(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    return _made(tools, digits, 0, digits)


def _too_great(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    bad, good = (f"{text}".encode() for text in (digits, f"{digits}e-{count}"))
    return _refused(tools, bad, good, f"{count} digits beyond all doubles")


def _tied(count: int, which: str, tools: Tools) -> Made:
    """A halfway point between two doubles from 2^52 on, written out, and what its last digit makes of it."""
    whole = str(HIDDEN + tools.dice.below(HIDDEN - 1))
    if which == "below":
        fraction = "4" + "9" * (count - len(whole) - 1)
    else:
        zeros = "0" * (count - len(whole) - 2)
        fraction = f"5{zeros}{'1' if which == 'above' else '0'}"
    return _made(tools, whole + fraction, -len(fraction), f"{whole}.{fraction}")


def _full_tie(which: str, tools: Tools) -> Made:
    """A halfway point of hundreds of digits, between doubles near the least normal one."""
    double: Double = double_of_bits((tools.dice.between(1, 60) << 52) | tools.dice.below(HIDDEN))
    half = midpoint(double)
    digits = str(half.digits)
    exponent = half.exponent
    if which != "even":
        step = 1 if which == "above" else -1
        digits, exponent = str(half.digits * 10**20 + step), exponent - 20
    written = f"{digits[0]}.{digits[1:]}E{exponent + len(digits) - 1}"
    return _made(tools, digits, exponent, written)


def _trailing_zeros(count: int, tools: Tools) -> Made:
    number = tools.dice.between(1, 999)
    return _made(tools, str(number), 0, f"{number}.{'0' * (count - len(str(number)))}")


def _leading_zeros(count: int, tools: Tools) -> Made:
    exponent, mark = tools.dice.between(0, 20), tools.dice.pick(("e", "E+", "e-"))
    return _made(tools, "7", -exponent if mark == "e-" else exponent, f"7{mark}{'0' * count}{exponent}")


def _shifted_up(count: int, tools: Tools) -> Made:
    number = tools.dice.between(1, 9)
    return _made(tools, str(number), 0, f"0.{'0' * (count - 1)}{number}e{count}")


def _shifted_down(count: int, tools: Tools) -> Made:
    number = tools.dice.between(1, 9)
    return _made(tools, str(number), 0, f"{number}{'0' * count}e-{count}")


def _long_zero(count: int, tools: Tools) -> Made:
    return _made(tools, "0", 0, f"0.{'0' * count}{tools.dice.pick(('', 'e5', 'E-400', 'e+400'))}")


def _zero(zero: str, mark: str, exponent: int, tools: Tools) -> Made:
    return _placed(tools, Piece(b"0", f"{zero}{mark}{exponent}".encode()))


def _tiny(exponent: int, tools: Tools) -> Made:
    digit = tools.dice.between(1, 9)
    return _made(tools, str(digit), -exponent, f"{digit}e-{exponent}")


def _great(mark: str, exponent: int, tools: Tools) -> Made:
    digit = f"{_sign(tools.dice)}{tools.dice.between(2, 9)}"
    bad, good = (f"{digit}{mark}{power}".encode() for power in (exponent, 300))
    return _refused(tools, bad, good, f"a number with the exponent {exponent}")


def _refused(tools: Tools, bad: bytes, good: bytes, note: str) -> Made:
    before, behind, _ = _PLACES[tools.turn % len(_PLACES)]
    return Defective(before + bad + behind, before + good + behind, Reason.NUMBER_OUT_OF_RANGE, note)


def _integer(sign: str, value: int, way: str, tools: Tools) -> Made:
    digits = str(value)
    written = digits
    if way == "otherwise":
        written = tools.dice.pick((f"{digits}.0", f"{digits}e0", f"{digits[:-1]}.{digits[-1]}E+1", f"{digits}0e-1"))
    return _placed(tools, number_of(sign, Decimal(value, 0), written))
