"""Rungs of numbers: literals of up to 2,000 digits, exponents without end, and the edges of integer types."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.vectors.jcs.construct.decimals import HIDDEN, Decimal, double_of_bits, midpoint
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.ladder.pieces import Made, Piece, Step, Tools, around, defective, number_of, step
from holdfast.vectors.taxonomy import Category

_ZEROS = ("0", "-0", "0.0", "-0.00", "0.0000000000000000000000000")
# Digits of one literal. 17 distinguish all doubles, 309 fill the range, a halfway literal has up to 767.
_DIGITS = (18, 20, 40, 64, *around(100, 128, 256), 308, 309, 400, 500, *around(512, 767), 800, *around(1000, 1024),
           1500, 2000)  # fmt: skip
# Edges of exponents: of doubles, and of the integers that hold them.
_EXPONENTS = (307, 308, 309, 323, 324, 325, 400, 999, 1000, 4095, 4096, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31,
              2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**100)  # fmt: skip
# Integers that types of languages end at, and the distances from them: doubles near 2^63 and 2^64 lie 1,024 and 2,048
# apart, so the nearest text changes half as far away.
_INTEGERS = (2**31, 2**32, 2**53, 2**63, 2**64, 2**127, 2**128, 10**15, 10**16, 10**17, 10**18, 10**19, 10**20, 10**21)
_NEAR = (0, 1, 2, 3, 256, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049)
_DISTANCES = tuple(sorted({sign * distance for distance in _NEAR for sign in (-1, 1)}))
# Where a literal stands: before it, after it in the document, and after it in the canonical form.
_PLACES = ((b"", b"", b""), (b"[", b"]", b"]"), (b"[0,", b"]", b"]"), (b'{"a":', b"}", b"}"), (b"[", b" , 0]", b",0]"))
_GREATEST_POWER = 309
# Literals with more digits than these cannot be written out as an integer below the greatest double.
_MOST_WHOLE = 309
_TIED = ("above", "below", "even")


def numbers() -> Iterator[Step]:
    """The rungs of numbers."""
    for digits in _DIGITS:
        for name, make in _LONG.items():
            yield step(f"digits-{digits}-{name}", Category.NUMBER_TIES, "JCS-NUM-09", _made, digits, make)
        for which in _TIED:
            yield step(f"digits-{digits}-{which}-a-tie", Category.NUMBER_TIES, "JCS-NUM-09", _tied, digits, which)
        for name, make in _SPELLED.items():
            clause = "JCS-NUM-05" if name == "zero" else "JCS-NUM-08"
            yield step(f"digits-{digits}-{name}", Category.NUMBER_SPELLING, clause, _made, digits, make)
        if digits <= _MOST_WHOLE:
            yield step(f"digits-{digits}-whole", Category.NUMBER_TIES, "JCS-NUM-09", _made, digits, _whole)
        else:
            yield step(f"digits-{digits}-whole", Category.NUMBER_RANGE, "JCS-NUM-01", _too_great, digits)
    for which in _TIED:
        for number in range(4):
            yield step(f"digits-full-{which}-a-tie-{number}", Category.NUMBER_TIES, "JCS-NUM-09", _full_tie, which)
    for exponent in _EXPONENTS:
        for mark, direction in (("e", ""), ("E+", "-up"), ("e-", "-down")):
            named = f"e{_power(exponent)}{direction}"
            for number, zero in enumerate(_ZEROS):
                written = f"{zero}{mark}{exponent}"
                yield step(f"zero-{number}-{named}", Category.NUMBER_SPELLING, "JCS-NUM-05", _zero, written)
            if mark == "e-":
                yield step(f"number-{named}", Category.NUMBER_SPELLING, "JCS-NUM-07", _made, exponent, _tiny)
            elif exponent >= _GREATEST_POWER:
                yield step(f"number-{named}", Category.NUMBER_RANGE, "JCS-NUM-01", _great, mark, exponent)
    for base in _INTEGERS:
        for distance in _DISTANCES:
            for sign in ("", "-"):
                name = f"integer-{'minus-' if sign else ''}{_power(base)}{f'{distance:+}' if distance else ''}"
                for way in ("plain", "otherwise"):
                    value = base + distance
                    yield step(f"{name}-{way}", Category.NUMBER_INTEGERS, "JCS-NUM-06", _integer, sign, value, way)


def _power(number: int) -> str:
    for base in (2, 10):
        for power in range(15, 129):
            for beside in (-1, 0, 1):
                if number == base**power + beside:
                    return f"{base}^{power}{beside:+}" if beside else f"{base}^{power}"
    return str(number)


def _placed(tools: Tools, number: Piece) -> Piece:
    before, behind, canonical = _PLACES[tools.turn % len(_PLACES)]
    return Piece(before + number.canonical + canonical, before + number.written + behind, number.reasons)


def _digits(dice: Dice, count: int) -> str:
    """`count` digits: the first is no 0, and below 1.7 of its power; the last is no 0."""
    return f"1{dice.below(7)}" + "".join([str(dice.below(10)) for _ in range(count - 3)]) + str(dice.between(1, 9))


# What is drawn for a size: digits, their exponent, and how they are written.
_Number = Callable[[Dice, int], tuple[str, int, str]]


def _made(count: int, make: _Number, tools: Tools) -> Made:
    digits, exponent, written = make(tools.dice, count)
    return _placed(tools, number_of(_sign(tools.dice), Decimal(int(digits), exponent), written))


def _sign(dice: Dice) -> str:
    return dice.pick(("", "-"))


def _point(dice: Dice, count: int) -> tuple[str, int, str]:
    digits, behind = _digits(dice, count), dice.between(1, min(count - 1, 15))
    return digits, behind - count, f"{digits[:behind]}.{digits[behind:]}"


def _fraction(dice: Dice, count: int) -> tuple[str, int, str]:
    digits = _digits(dice, count)
    return digits, -count, f"0.{digits}"


def _negative_exponent(dice: Dice, count: int) -> tuple[str, int, str]:
    digits = _digits(dice, count)
    return digits, 1 - count, f"{digits}e-{count - 1}"


def _whole(dice: Dice, count: int) -> tuple[str, int, str]:
    digits = _digits(dice, count)
    return digits, 0, digits


def _trailing_zeros(dice: Dice, count: int) -> tuple[str, int, str]:
    number = str(dice.between(1, 999))
    return number, 0, f"{number}.{'0' * (count - len(number))}"


def _leading_zeros(dice: Dice, count: int) -> tuple[str, int, str]:
    exponent, mark = dice.between(0, 20), dice.pick(("e", "E+", "e-"))
    return "7", -exponent if mark == "e-" else exponent, f"7{mark}{'0' * count}{exponent}"


def _shifted_up(dice: Dice, count: int) -> tuple[str, int, str]:
    number = str(dice.between(1, 9))
    return number, 0, f"0.{'0' * (count - 1)}{number}e{count}"


def _shifted_down(dice: Dice, count: int) -> tuple[str, int, str]:
    number = str(dice.between(1, 9))
    return number, 0, f"{number}{'0' * count}e-{count}"


def _long_zero(dice: Dice, count: int) -> tuple[str, int, str]:
    return "0", 0, f"0.{'0' * count}{dice.pick(('', 'e5', 'E-400', 'e+400'))}"


def _tiny(dice: Dice, exponent: int) -> tuple[str, int, str]:
    digit = str(dice.between(1, 9))
    return digit, -exponent, f"{digit}e-{exponent}"


_LONG: dict[str, _Number] = {"point": _point, "fraction": _fraction, "negative-exponent": _negative_exponent}
_SPELLED: dict[str, _Number] = {
    "trailing-zeros": _trailing_zeros, "leading-zeros": _leading_zeros, "shifted-up": _shifted_up,
    "shifted-down": _shifted_down, "zero": _long_zero,
}  # fmt: skip


def _tied(count: int, which: str, tools: Tools) -> Made:
    """A halfway point between two doubles from 2^52 on, written out, and what its last digit makes of it."""
    whole = str(HIDDEN + tools.dice.below(HIDDEN - 1))
    if which == "below":
        fraction = "4" + "9" * (count - len(whole) - 1)
    else:
        zeros = "0" * (count - len(whole) - 2)
        fraction = f"5{zeros}{'1' if which == 'above' else '0'}"
    return _made(count, lambda *_: (whole + fraction, -len(fraction), f"{whole}.{fraction}"), tools)


def _full_tie(which: str, tools: Tools) -> Made:
    """A halfway point of hundreds of digits, between doubles near the least normal one."""
    half = midpoint(double_of_bits((tools.dice.between(1, 60) << 52) | tools.dice.below(HIDDEN)))
    digits, exponent = str(half.digits), half.exponent
    if which != "even":
        digits, exponent = str(half.digits * 10**20 + (1 if which == "above" else -1)), exponent - 20
    written = f"{digits[0]}.{digits[1:]}E{exponent + len(digits) - 1}"
    return _made(0, lambda *_: (digits, exponent, written), tools)


def _zero(written: str, tools: Tools) -> Made:
    return _placed(tools, Piece(b"0", written.encode()))


def _too_great(count: int, tools: Tools) -> Made:
    digits = _digits(tools.dice, count)
    return _refused(tools, digits, f"{digits}e-{count}", f"{count} digits beyond all doubles")


def _great(mark: str, exponent: int, tools: Tools) -> Made:
    digit = f"{_sign(tools.dice)}{tools.dice.between(2, 9)}{mark}"
    return _refused(tools, f"{digit}{exponent}", f"{digit}300", f"a number with the exponent {exponent}")


def _refused(tools: Tools, bad: str, good: str, note: str) -> Made:
    before, behind, _ = _PLACES[tools.turn % len(_PLACES)]
    return defective(Category.NUMBER_RANGE, before, bad.encode(), good.encode(), behind, note)


def _integer(sign: str, value: int, way: str, tools: Tools) -> Made:
    digits = str(value)
    written = digits
    if way == "otherwise":
        written = tools.dice.pick((f"{digits}.0", f"{digits}e0", f"{digits[:-1]}.{digits[-1]}E+1", f"{digits}0e-1"))
    return _placed(tools, number_of(sign, Decimal(value, 0), written))
