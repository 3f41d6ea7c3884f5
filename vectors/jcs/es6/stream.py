"""Which doubles the published number stream holds, in which order, and how to start in its middle.

The stream is a sequence of *candidates*: 168 listed bit patterns, 2000 in series from the smallest normal one, and
then four from each block of a chain, block 0 = 32 zero bytes (which gives none), block k+1 = SHA-256(block k), each
eight bytes read little-endian. Candidates of the chain that are zero, NaN or infinite give no line, all others one
each. So a place in the chain is known by three things: how many candidates and how many lines come before it, and the
block it goes on from. (Algorithm: cyberphone/json-canonicalization, testdata/README.md.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, repeat, takewhile
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.vectors.jcs.es6.patterns import LISTED
from holdfast.vectors.jcs.es6.slots import LEAST_ROOM, slots

# Lines of the published number stream: `HEX,TEXT` and a line feed (shared facts: RFC 8785 test data, README)

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


BLOCK_BYTES: Final = 32
CANDIDATES_PER_BLOCK: Final = 4

# Blocks whose lines are made in one piece: 32768 lines, 1.3 MB of text, so that the data stays in the caches.
PIECE_BLOCKS: Final = 8192
# Blocks of a partition where nothing else divides the stream: about a million lines, 42 MB, some 0.2 s of work.
PARTITION_BLOCKS: Final = 1 << 18


class StreamBrokenError(Exception):
    """Partitions that do not join up: the result is not the stream, and its digest has no meaning."""


class StreamLostError(StreamBrokenError):
    """Partitions that did not come, for reasons of the machine or the cluster: it is unknown whether they are right."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place in the stream between two blocks: everything that is needed to go on from it."""

    candidates: int  # before this place; 0, or all listed ones and four for each block
    lines: int  # before this place
    state: bytes  # the last block before it, 32 bytes

    def __post_init__(self) -> None:
        blocks, rest = divmod(self.candidates - len(LISTED), CANDIDATES_PER_BLOCK)
        if self.candidates and (blocks < 0 or rest):
            raise StreamBrokenError(
                f"expected a checkpoint at candidate 0 or {len(LISTED)} + 4k; got {self.candidates}: the chain can "
                "only be entered between two blocks"
            )
        if not 0 <= self.lines <= self.candidates:
            raise StreamBrokenError(
                f"expected 0 to {self.candidates} lines before candidate {self.candidates}; got {self.lines}"
            )
        if len(self.state) != BLOCK_BYTES:
            raise StreamBrokenError(f"expected a block of {BLOCK_BYTES} bytes in a checkpoint; got {len(self.state)}")
        if self.candidates <= len(LISTED) and (self.state.strip(b"\0") or self.lines != self.candidates):
            raise StreamBrokenError(f"expected the chain to begin with zeros behind the listed patterns; got {self}")

    def __str__(self) -> str:
        return f"candidate {self.candidates:,}, line {self.lines:,}, block {self.state.hex()[:16]}…"


ORIGIN: Final = Checkpoint(0, 0, bytes(BLOCK_BYTES))
BEHIND_LISTED: Final = Checkpoint(len(LISTED), len(LISTED), bytes(BLOCK_BYTES))


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the stream: `blocks` blocks from a checkpoint, but nothing behind line `until` of the whole stream.

    Without `blocks` only `until` ends it.
    """

    index: int
    start: Checkpoint
    blocks: int | None
    until: int


@dataclass(slots=True)
class PartitionLines:
    """The lines of one partition, made when iterated: pieces of text, ASCII, each of whole lines.

    Afterwards `made` counts the lines, and `end` is the place behind its last block; where `until` cuts a block in the
    middle, `end.lines` counts that block in full.
    """

    partition: Partition
    made: int = 0
    end: Checkpoint | None = None

    def __iter__(self) -> Iterator[memoryview]:
        for patterns in self.patterns():
            yield lines(patterns)

    def patterns(self) -> Iterator[npt.NDArray[np.uint64]]:
        """The same lines as bit patterns."""
        place, until, left = self.partition.start, self.partition.until, self.partition.blocks
        if not place.candidates:
            place = BEHIND_LISTED
            yield self._counted(LISTED[:until])
        while left != 0 and place.lines < until:
            wanted = min(PIECE_BLOCKS, -(-(until - place.lines) // CANDIDATES_PER_BLOCK))
            if left is not None:
                wanted = min(wanted, left)
                left -= wanted
            blocks, state = chain(place.state, wanted)
            found = doubles(blocks)
            yield self._counted(found[: until - place.lines])
            place = _behind(place, wanted, len(found), state)
        self.end = place

    def _counted(self, patterns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        self.made += len(patterns)
        return patterns


def chain(state: bytes, count: int) -> tuple[bytes, bytes]:
    """The `count` blocks behind `state`, joined, and the last of them (`state` itself if `count` is 0)."""
    sha256 = hashlib.sha256
    blocks: list[bytes] = []
    append = blocks.append
    for _ in repeat(None, count):
        state = sha256(state).digest()
        append(state)
    return b"".join(blocks), state


def doubles(blocks: bytes) -> npt.NDArray[np.uint64]:
    """The bit patterns of the chain's candidates in `blocks` that give a line."""
    patterns = np.frombuffer(blocks, "<u8").astype(np.uint64, copy=False)
    # Without its sign a pattern is 0 for a zero, and from 0x7ff0… on infinite or NaN.
    unsigned = patterns & np.uint64(0x7FFF_FFFF_FFFF_FFFF)
    return patterns[(unsigned - np.uint64(1)) < np.uint64(0x7FEF_FFFF_FFFF_FFFF)]


def walk(start: Checkpoint, blocks: int) -> Checkpoint:
    """The checkpoint `blocks` blocks behind `start`, without making any text."""
    place = start if start.candidates else BEHIND_LISTED
    while blocks:
        wanted = min(blocks, PIECE_BLOCKS)
        made, state = chain(place.state, wanted)
        place = _behind(place, wanted, len(doubles(made)), state)
        blocks -= wanted
    return place


def _behind(place: Checkpoint, blocks: int, lines_given: int, state: bytes) -> Checkpoint:
    return Checkpoint(place.candidates + CANDIDATES_PER_BLOCK * blocks, place.lines + lines_given, state)


def plan(
    total: int, known: tuple[Checkpoint, ...] = (), partition_blocks: int = PARTITION_BLOCKS
) -> Iterator[Partition]:
    """The partitions of the first `total` lines, in order.

    They start at the origin and at the `known` checkpoints, which may be wrong (`joined` finds out); behind the last
    of these the chain is walked, `partition_blocks` at a time, which takes about 0.1 s for each million lines.

    Raises:
        ValueError: `total` is not positive, or the known checkpoints are not in order.
    """
    if total < 1:
        raise ValueError(f"expected a positive number of lines; got {total}")
    if any(after.candidates <= before.candidates for before, after in pairwise((ORIGIN, *known))):
        raise ValueError("expected known checkpoints in the order of the stream, without the origin; got them mixed up")
    start, index = ORIGIN, 0
    for end in takewhile(lambda checkpoint: checkpoint.lines < total, known):
        yield Partition(index, start, _blocks_before(end) - _blocks_before(start), total)
        start, index = end, index + 1
    # Not all candidates give a line, so the last partition cannot know its number of blocks; `until` ends it.
    while total - start.lines > CANDIDATES_PER_BLOCK * partition_blocks:
        yield Partition(index, start, partition_blocks, total)
        start, index = walk(start, partition_blocks), index + 1
    yield Partition(index, start, None, total)


def _blocks_before(place: Checkpoint) -> int:
    return max(place.candidates - len(LISTED), 0) // CANDIDATES_PER_BLOCK


def joined(partition: Partition, lines_made: int, end: Checkpoint, following: Partition | None) -> None:
    """That a partition, as it was made, ends where the following one starts (or, the last one, where the stream ends).

    Raises:
        StreamBrokenError: it does not, or its lines do not add up.
    """
    if following is not None and end != following.start:
        raise StreamBrokenError(
            f"expected partition {partition.index} to end where partition {following.index} starts, at "
            f"{following.start}; got {end}: a checkpoint between them is wrong, or one of them was made wrongly"
        )
    if following is None and end.lines < partition.until:
        raise StreamBrokenError(
            f"expected the last partition to reach line {partition.until:,}; got {end}: the plan of the stream is wrong"
        )
    expected = min(end.lines, partition.until) - partition.start.lines
    if lines_made != expected:
        raise StreamBrokenError(f"expected {expected:,} lines of partition {partition.index}; got {lines_made:,}")
