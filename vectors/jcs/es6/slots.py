"""ECMAScript's text of many doubles at once, each with free room before it in one shared buffer.

orjson writes an array of doubles as shortest round-trip decimals, closest to the double where several are as short
(ECMA-262 Number::toString with Note 2, which RFC 8785 section 3.2.2.3 demands), but in a notation of its own. Two
things are done to its output, and both without moving a byte of it:

- between any two numbers a *pad* is serialised too, a double whose text has just the wanted length; its place is the
  room that callers fill (with an identifier, a separator), so lines need no joining, which would cost more than the
  numbers
- where the notations differ (integers, [1e16, 1e21), [1e-7, 1e-5)), the text is made to fit: the two bytes of a final
  `.0` are given to the next room, and the few other numbers are left out, with a pad of their length in their place,
  and written afterwards

The assumptions about orjson's notation are checked once, when this module is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

# The smallest free room: the shortest text of a pad ("1.0") and its comma, plus the ".0" that the number before it may
# have given up.
LEAST_ROOM: Final = 6

# 25 bytes is the longest text there is (-0.0000012345678901234567); the longest pad is one shorter.
_LONGEST_PAD: Final = 24
# From here on every notation is exponential (ECMA-262 Number::toString, step 6: n > 21).
_EXPONENT_FROM: Final = 1e21
# orjson writes integers from here on with an exponent, ECMAScript only from 1e21.
_THEIR_EXPONENT_FROM: Final = 1e16
# orjson writes an exponent below 1e-5, ECMAScript below 1e-6. 1e-7 decides on which side 1e-6 is.
_THEIR_EXPONENT_BELOW: Final = 1e-5
_EXPONENT_BELOW: Final = 1e-7

_PROBE: Final = (
    1e21,
    1.5e300,
    1e16,
    1.2e17,
    1e15,
    9007199254740991.0,
    4503599627370495.5,
    1e-5,
    9.9e-6,
    1e-7,
    0.0,
    5e-324,
)
_PROBE_TEXT: Final = (
    b"[1e+21,1.5e+300,1e+16,1.2e+17,1000000000000000.0,9007199254740991.0,4503599627370495.5,0.00001,9.9e-6,1e-7,0.0,"
    b"5e-324]"
)


@dataclass(frozen=True, slots=True)
class Slots:
    """Row i of n: its text is `buffer[starts[i]:ends[i]]`; all from `ends[i - 1]` (0 before the first) is free.

    The free room is the byte at `ends[i - 1]`, which may end the row before, and then the room that was asked for.
    """

    buffer: bytearray
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


def slots(values: npt.NDArray[np.float64], rooms: npt.NDArray[np.int64] | int) -> Slots:
    """The canonical text of every value (shape `(n,)`), with `rooms` bytes of free room before each.

    Zero of either sign is `0`. A room is from `LEAST_ROOM` to 23 bytes.

    Raises:
        ValueError: a value is not finite (it has no text), or a room is out of bounds.
    """
    if not np.isfinite(values).all():
        raise ValueError(
            "expected finite numbers; got NaN or an infinity, which RFC 8785 gives no text: drop them first"
        )
    count = len(values)
    if not count:
        return Slots(bytearray(), np.empty(0, np.int64), np.empty(0, np.int64))
    magnitude = np.abs(values)
    whole = (np.trunc(values) == values) & (magnitude < _EXPONENT_FROM)
    other = (whole & (magnitude >= _THEIR_EXPONENT_FROM)) | (
        (magnitude < _THEIR_EXPONENT_BELOW) & (magnitude >= _EXPONENT_BELOW)
    )
    # How many bytes longer the text becomes than what is serialised in its place.
    growth = np.where(whole, -2, 0)
    written = np.empty(2 * count, np.float64)
    written[1::2] = values
    # -0 + 0 is +0.
    written[1::2] += 0.0
    others = np.flatnonzero(other)
    texts = _texts(values[others])
    if texts:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        places = np.minimum(lengths, _LONGEST_PAD)
        written[2 * others + 1] = _PADS[places]
        growth[others] = lengths - places
    pads = np.empty(count, np.int64)
    pads[:] = rooms
    if pads.min() < LEAST_ROOM or pads.max() >= _LONGEST_PAD:
        raise ValueError(
            f"expected rooms of {LEAST_ROOM} to {_LONGEST_PAD - 1} bytes; got {pads.min()} to {pads.max()}"
        )
    # "," pad "," stands between two texts: one byte that ends the row before, the room, and what the text before grew.
    pads -= 1
    pads[1:] += growth[:-1]
    written[0::2] = _PADS[pads]
    buffer = bytearray(_serialised(written))
    commas = np.flatnonzero(np.frombuffer(buffer, np.uint8) == ord(","))
    if len(commas) != 2 * count - 1:
        raise ValueError(f"expected {2 * count} serialised numbers; got {len(commas) + 1}: is orjson another version?")
    starts = commas[0::2] + 1
    ends = np.empty(count, np.int64)
    ends[:-1] = commas[1::2]
    ends[-1] = len(buffer) - 1
    ends += growth
    if growth[-1] > 0:
        # No room follows the last text.
        buffer.append(0)
    for row, text in zip(others.tolist(), texts, strict=True):
        buffer[starts[row] : ends[row]] = text
    return Slots(buffer, starts, ends)


def _serialised(values: npt.NDArray[np.float64]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)


def _texts(values: npt.NDArray[np.float64]) -> list[bytes]:
    """The texts of values that orjson writes with an exponent and ECMAScript perhaps without."""
    return [_rewritten(token) for token in _serialised(values)[1:-1].split(b",")] if len(values) else []


def _rewritten(token: bytes) -> bytes:
    """ECMAScript's notation (Number::toString, steps 6 to 10) of a number in scientific notation.

    With the digits s of k digits and the value s x 10^(n-k).
    """
    mantissa, _, exponent = token.partition(b"e")
    sign = b"-" if mantissa.startswith(b"-") else b""
    lead, _, fraction = mantissa.lstrip(b"-").partition(b".")
    digits = lead + fraction
    point = int(exponent) + 1
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, b"0")
    if -6 < point <= 0:
        return sign + b"0." + b"0" * -point + digits
    return token


def _pads() -> npt.NDArray[np.float64]:
    """For each length from 3 to `_LONGEST_PAD` a double whose serialised text is that long."""
    pads = np.full(_LONGEST_PAD + 1, np.nan)
    digits = "12345678912345671"
    for length in range(3, _LONGEST_PAD + 1):
        # 17 bytes hold a point and 16 digits; longer ones need an exponent, the longest a sign too.
        sign = "-" if length == _LONGEST_PAD else ""
        mantissa = digits[: length - 1] if length <= 17 else digits[: length - 6 - len(sign)]
        pads[length] = float(f"{sign}{mantissa[0]}.{mantissa[1:]}" + ("" if length <= 17 else "e-100"))
    return pads


def _checked_pads() -> npt.NDArray[np.float64]:
    """The pads, after a check that orjson writes as this module expects."""
    pads = _pads()
    wanted = list(range(3, _LONGEST_PAD + 1))
    got = [len(_serialised(pads[length : length + 1])) - 2 for length in wanted]
    probe = _serialised(np.array(_PROBE))
    if got != wanted or probe != _PROBE_TEXT:
        raise ImportError(
            f"expected orjson to write {_PROBE_TEXT.decode()} and pads of {wanted} bytes; got {probe.decode()} and "
            f"{got} from orjson {orjson.__version__}: install a version that this kit's constraints name"
        )
    return pads


_PADS: Final = _checked_pads()
