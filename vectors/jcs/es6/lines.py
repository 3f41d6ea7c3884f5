"""Lines of the published number stream: `HEX,TEXT` and a line feed (shared facts: RFC 8785 test data, README)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.vectors.jcs.es6.slots import LEAST_ROOM, slots

# Four lower-case hexadecimal digits as they lie in memory, for two bytes read as a little-endian number.
_DIGITS: Final = np.frombuffer(
    b"".join(pair.to_bytes(2, "little").hex().encode() for pair in range(1 << 16)), np.uint32
)
_POWERS_OF_16: Final = np.array([1 << (4 * digits) for digits in range(16)], np.uint64)
# A pattern of fewer digits than a machine word writes at once is written by itself; only subnormals have one.
_WORD: Final = 8


def lines(patterns: npt.NDArray[np.uint64]) -> memoryview:
    """The line of every bit pattern (shape `(n,)`), all in one piece of ASCII.

    HEX is the pattern in lower case without leading zeros (`0` for zero), TEXT the canonical text of the double.

    Raises:
        ValueError: a pattern is that of NaN or an infinity.
    """
    count = len(patterns)
    if not count:
        return memoryview(b"")
    # Leading zeros are rare: the sign and the upper three bits of the exponent are zero.
    widths = np.full(count, 16, np.int64)
    narrow = np.flatnonzero(patterns < _POWERS_OF_16[15])
    widths[narrow] = np.maximum(np.searchsorted(_POWERS_OF_16, patterns[narrow], "right"), 1)
    rooms = np.maximum(widths + 1, LEAST_ROOM)
    rows = slots(patterns.view(np.float64), rooms)
    buffer = np.frombuffer(rows.buffer, np.uint8)
    buffer[rows.ends] = ord("\n")
    commas = rows.starts - 1
    # Any eight bytes of the buffer as one word: two writes make the sixteen digits. The first starts where the digits
    # start, the second ends at the comma; they overlap where leading zeros are left out.
    words = np.ndarray((len(buffer) - 7,), np.uint64, buffer=rows.buffer, strides=(1,))
    shifted = patterns.copy()
    shifted[narrow] <<= (4 * (16 - widths[narrow])).astype(np.uint64)
    short = narrow[widths[narrow] < _WORD]
    wide = slice(None) if not len(short) else np.flatnonzero(widths >= _WORD)
    words[(commas - widths)[wide]] = _hex(shifted)[wide, 0]
    words[(commas - _WORD)[wide]] = _hex(patterns)[wide, 1]
    for row in short.tolist():
        start = int(commas[row] - rooms[row]) + 1
        digits = b"%x" % int(patterns[row])
        rows.buffer[start : int(commas[row])] = digits.rjust(int(rooms[row]) - 1, b"\0")
    whole = memoryview(rows.buffer)[1 : int(rows.ends[-1]) + 1]
    # The free room before a pattern of one to four digits.
    return memoryview(bytes(whole).replace(b"\0", b"")) if len(short) else whole


def _hex(patterns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Sixteen digits of each pattern as two words in memory order, shape `(n, 2)`."""
    return _DIGITS.take(patterns.astype(">u8").view("<u2")).view(np.uint64).reshape(-1, 2)
