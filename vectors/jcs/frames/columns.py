"""The same exchange in Arrow columns, for millions of documents: no Python object for a document that conforms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.frames.answer import Answered, Frames, Status
from holdfast.vectors.jcs.frames.exchange import (
    BLOCK_BYTES,
    BLOCK_DOCUMENTS,
    START_S,
    Block,
    Exchange,
    Listener,
    unheard,
)

_EMPTY = pa.scalar(b"", pa.binary())


def run_columns(
    command: Sequence[str],
    batches: Iterable[pa.BinaryArray],
    *,
    deadline: float,
    start: float = START_S,
    env: Mapping[str, str] | None = None,
    unexplained: Listener = unheard,
) -> Iterator[pa.BinaryArray]:
    """As `run`, for whole batches: for each batch of documents one array of answers, of the same length and order.

    An answer is kept as its frame (length, status byte, body), so that a batch is compared in one go:
    `pc.equal(answers, canonical_frames(expected))` is true where the SDK gave exactly the expected bytes.
    `status_bytes` and `answered` take frames apart. Batches hold no nulls. Some are read while answers to earlier
    ones are still out. Raises StartError.
    """
    sizes: deque[int] = deque()

    def cut() -> Iterator[Block]:
        for batch in batches:
            sizes.append(len(batch))
            yield from _blocks(batch)

    with Exchange(command, deadline=deadline, start=start, env=env, unexplained=unexplained) as exchange:
        # Joined once for each batch: a copy for each block would cost more than all else here.
        held: list[pa.BinaryArray] = []
        came = 0
        for frames in exchange.checked(cut()):
            held.append(_array(frames))
            came += len(frames)
            while sizes and came >= sizes[0]:
                size = sizes.popleft()
                joined = pa.concat_arrays(held)
                yield joined[:size]
                held = [joined[size:]]
                came -= size
        # Only batches without a row are left.
        for _ in sizes:
            yield pa.array([], pa.binary())


def canonical_frames(bodies: pa.BinaryArray) -> pa.BinaryArray:
    """The frames of answers with these canonical bytes; null where the bytes are null."""
    header = np.zeros(len(bodies), dtype=[("length", ">u4"), ("status", "u1")])
    header["length"] = pc.fill_null(pc.binary_length(bodies), 0).to_numpy(zero_copy_only=False)
    header["status"] = Status.CANONICAL.byte
    return _prefixed(header, bodies)


def status_bytes(answers: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """The status byte (`Status.byte`) of each answer."""
    offsets, data = _buffers(answers)
    return data[offsets[:-1] + 4]


def answered(answers: pa.BinaryArray, row: int) -> Answered:
    """One answer of a batch on its own."""
    frame: bytes = answers[row].as_py()
    return Frames(frame, [0, len(frame)]).answers()[0]


def _blocks(batch: pa.BinaryArray) -> Iterator[Block]:
    lengths = pc.binary_length(batch).to_numpy(zero_copy_only=False).astype(">u4")
    framed = _prefixed(lengths, batch)
    offsets, data = _buffers(framed)
    view = data.data
    begin, rows = 0, len(batch)
    while begin < rows:
        # At least one document, at most `BLOCK_DOCUMENTS`, and no more bytes than a block takes.
        room = int(np.searchsorted(offsets, offsets[begin] + BLOCK_BYTES, side="right")) - 1
        end = min(max(begin + 1, room), begin + BLOCK_DOCUMENTS, rows)
        yield Block.of(end - begin, view[offsets[begin] : offsets[end]], _documents(batch, begin))
        begin = end


def _documents(batch: pa.BinaryArray, begin: int) -> Callable[[int], bytes]:
    def document(row: int) -> bytes:
        value: bytes = batch[begin + row].as_py()
        return value

    return document


def _prefixed(prefixes: npt.NDArray[Any], bodies: pa.BinaryArray) -> pa.BinaryArray:
    """Each body after its prefix."""
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(prefixes.itemsize), len(prefixes), [None, pa.py_buffer(prefixes)]
    )
    return pc.binary_join_element_wise(fixed.cast(pa.binary()), bodies.cast(pa.binary()), _EMPTY)


def _buffers(array: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets of the rows, one more than there are, and the bytes that they point into."""
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    rows = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return rows, np.frombuffer(data, np.uint8)


def _array(frames: Frames) -> pa.BinaryArray:
    offsets = pa.py_buffer(np.array(frames.at, np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), len(frames), [None, offsets, pa.py_buffer(frames.data)])
