"""ECMAScript's Number::toString as an Arrow column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.es6.slots import LEAST_ROOM, slots

# The room before a text, and the byte that ends the row before.
_GAP = LEAST_ROOM + 1


def text(values: npt.NDArray[np.float64]) -> pa.StringArray:
    """The canonical text of every double of `values`, shape `(n,)`: RFC 8785 section 3.2.2.3; -0 is `0`.

    At most about 80 million values (Arrow's offsets of 32 bits).

    Raises:
        ValueError: a value is NaN or infinite.
    """
    count = len(values)
    rows = slots(values, LEAST_ROOM)
    ends = rows.ends - _GAP * np.arange(1, count + 1)
    if count and ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"expected at most 2 GiB of text; got {ends[-1]} bytes: make the column in several pieces")
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends
    free = np.frombuffer(rows.buffer, np.uint8)
    starts = rows.starts
    for back in range(1, _GAP + 1):
        free[starts - back] = 0
    # The bytes that close the array follow the last text.
    del free
    packed = bytes(memoryview(rows.buffer)[: int(rows.ends[-1])] if count else b"").replace(bytes(_GAP), b"")
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(packed))
