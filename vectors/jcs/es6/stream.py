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

from holdfast.vectors.jcs.es6.slots import LEAST_ROOM, slots

# The bit patterns that the published number stream begins with: 168 chosen ones and 2000 in series.
# Duplicates are part of it. (Source: cyberphone/json-canonicalization, testdata/README.md and numgen programs.)

# Both zeros, and the smallest number of either sign.
_ZEROS: Final = """
    0000000000000000 8000000000000000 0000000000000001 8000000000000001
""".split()

# One number for each decade from -3.3e21 to -3.3e-28; behind them come the same without the sign.
_DECADES: Final = """
    c46696695dbd1cc3 c43211ede4974a35 c3fce97ca0f21056 c3c7213080c1a6ac c39280f39a348556 c35d9b1f5d20d557
    c327af4c4a80aaac c2f2f2a36ecd5556 c2be51057e155558 c28840d131aaaaac c253670dc1555557 c21f0b4935555557
    c1e8d5d42aaaaaac c1b3de4355555556 c17fca0555555556 c1496e6aaaaaaaab c114585555555555 c0e046aaaaaaaaab
    c0aa0aaaaaaaaaaa c074d55555555555 c040aaaaaaaaaaab c00aaaaaaaaaaaab bfd5555555555555 bfa1111111111111
    bf6b4e81b4e81b4f bf35d867c3ece2a5 bf0179ec9cbd821e becbf647612f3696 be965e9f80f29212 be61e54c672874db
    be2ca213d840baf8 bdf6e80fe033c8c6 bdc2533fe68fd3d2 bd8d51ffd74c861c bd5774ccac3d3817 bd22c3d6f030f9ac
    bcee0624b3818f79 bcb804ea293472c7 bc833721ba905bd3 bc4ebe9c5db3c61e bc18987d17c304e5 bbe3ad30dfcf371d
    bbaf7b816618582f bb792f9ab81379bf bb442615600f9499 bb101e77800c76e1 bad9ca58cce0be35 baa4a1e0a3e6fe90
    ba708180831f320d ba3a68cd9e985016
""".split()

# Short decimals, neighbours of one, of 0.3, of the smallest normal number, both largest, and the values of RFC 8785
# Appendix B: 2^53, 2^68, 1e21, 1e23, 1e-6, ties.
_EDGES: Final = """
    4024000000000000 4014000000000000 3fe0000000000000 3fa999999999999a 3f747ae147ae147b 3f40624dd2f1a9fc
    3f0a36e2eb1c432d 3ed4f8b588e368f1 3ea0c6f7a0b5ed8d 3e6ad7f29abcaf48 3e35798ee2308c3a 3ed539223589fa95
    3ed4ff26cd5a7781 3ed4f95a762283ff 3ed4f8c60703520c 3ed4f8b72f19cd0d 3ed4f8b5b31c0c8d 3ed4f8b58d1c461a
    3ed4f8b5894f7f0e 3ed4f8b588ee37f3 3ed4f8b588e47da4 3ed4f8b588e3849c 3ed4f8b588e36bb5 3ed4f8b588e36937
    3ed4f8b588e368f8 3ed4f8b588e368f1 3ff0000000000000 bff0000000000000 bfeffffffffffffa bfeffffffffffffb
    3feffffffffffffa 3feffffffffffffb 3feffffffffffffc 3feffffffffffffe bfefffffffffffff bfefffffffffffff
    3fefffffffffffff 3fefffffffffffff 3fd3333333333332 3fd3333333333333 3fd3333333333334 0010000000000000
    000ffffffffffffd 000fffffffffffff 7fefffffffffffff ffefffffffffffff 4340000000000000 c340000000000000
    4430000000000000 44b52d02c7e14af5 44b52d02c7e14af6 44b52d02c7e14af7 444b1ae4d6e2ef4e 444b1ae4d6e2ef4f
    444b1ae4d6e2ef50 3eb0c6f7a0b5ed8c 3eb0c6f7a0b5ed8d 41b3de4355555553 41b3de4355555554 41b3de4355555555
    41b3de4355555556 41b3de4355555557 becbf647612f3696 43143ff3c1cb0959
""".split()

# The smallest normal number, and how many follow it in steps of one unit in the last place (itself included).
_SMALLEST_NORMAL: Final = 0x0010_0000_0000_0000
_SERIAL: Final = 2000


def _listed() -> npt.NDArray[np.uint64]:
    decades = [int(pattern, 16) for pattern in _DECADES]
    chosen = [
        *(int(pattern, 16) for pattern in _ZEROS),
        *decades,
        *(pattern & 0x7FFF_FFFF_FFFF_FFFF for pattern in decades),
        *(int(pattern, 16) for pattern in _EDGES),
    ]
    listed = np.array([*chosen, *range(_SMALLEST_NORMAL, _SMALLEST_NORMAL + _SERIAL)], np.uint64)
    listed.setflags(write=False)
    return listed


# All of them, in order: 2168 patterns, each of them one line.
LISTED: Final = _listed()


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
