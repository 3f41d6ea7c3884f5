"""Which doubles the published number stream holds, in which order, and how to start in its middle.

The stream is a sequence of *candidates*: 168 listed bit patterns, 2000 in series from the smallest normal one, and
then four from each block of a chain, block 0 = 32 zero bytes (which gives none), block k+1 = SHA-256(block k), each
eight bytes read little-endian. Candidates of the chain that are zero, NaN or infinite give no line, all others one
each. So a place in the chain is known by three things: how many candidates and how many lines come before it, and the
block it goes on from. (Algorithm: cyberphone/json-canonicalization, testdata/README.md.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from itertools import pairwise, repeat, takewhile
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

# The bit patterns that the published number stream begins with: 168 chosen ones and 2000 in series.
# Duplicates are part of it. (Source: cyberphone/json-canonicalization, testdata/README.md and numgen programs.)

# Both zeros, and the smallest number of either sign.
_ZEROS: Final = """
    0000000000000000 8000000000000000 0000000000000001 8000000000000001
""".split()

# One number for each decade from -3.3e21 to -3.3e-28; after them come the same without the sign.
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


# Four lower-case hexadecimal digits as they lie in memory, for each two bytes.
_DIGITS: Final = np.frombuffer(b"".join(b"%04x" % pair for pair in range(1 << 16)), np.uint32)
# A pattern below this has fewer than sixteen digits.
_SIXTEEN_DIGITS: Final = np.uint64(1 << 60)


def text(values: npt.NDArray[np.float64]) -> pa.StringArray:
    """The canonical text of every double (shape `(n,)`): RFC 8785 section 3.2.2.3; -0 is `0`.

    Raises ValueError for NaN and infinities.
    """
    return pc.ascii_rtrim(_ended(values), "\n")


def _ended(values: npt.NDArray[np.float64]) -> pa.StringArray:
    """The texts, each with a line feed in the place of orjson's comma: so no byte is moved.

    orjson writes the shortest digits that read back as the double, of several the closest ones. Its notation is that of
    ECMAScript but for whole numbers below 1e21 and for numbers from 1e-6 to 1e-5.
    """
    if not np.isfinite(values).all():
        raise ValueError(
            "expected finite numbers; got NaN or an infinity, which RFC 8785 gives no text: drop them first"
        )
    # -0 + 0 is +0.
    written = orjson.dumps(values + 0.0, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].replace(b",", b"\n") + b"\n"
    ends = np.flatnonzero(np.frombuffer(written, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(written))
    magnitude = np.abs(values)
    whole = (np.trunc(values) == values) & (magnitude < 1e21)
    differing = pa.array(whole | ((magnitude >= 1e-6) & (magnitude < 1e-5)))
    plain = [
        format(Decimal(text.strip()), "f").removesuffix(".0") + "\n" for text in texts.filter(differing).to_pylist()
    ]
    return pc.replace_with_mask(texts, differing, pa.array(plain, pa.string()))


def lines(patterns: npt.NDArray[np.uint64]) -> memoryview:
    """The line of every bit pattern (shape `(n,)`), `HEX,TEXT` and a line feed, all in one piece of ASCII.

    HEX is the pattern in lower case without leading zeros (`0` for zero), TEXT the canonical text of the double. Raises
    ValueError for the pattern of NaN or an infinity.
    """
    if not len(patterns):
        return memoryview(b"")
    digits = pa.py_buffer(_DIGITS.take(patterns.astype(">u8").view(">u2")))
    names = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(patterns), [None, digits]).cast(pa.binary())
    short = patterns < _SIXTEEN_DIGITS
    spelled = pa.array([b"%x" % pattern for pattern in patterns[short].tolist()], pa.binary())
    names = pc.replace_with_mask(names, pa.array(short), spelled).cast(pa.string())
    return memoryview(pc.binary_join_element_wise(names, _ended(patterns.view(np.float64)), ",").buffers()[2])


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
            raise StreamBrokenError(f"expected the chain to begin with zeros after the listed patterns; got {self}")

    def __str__(self) -> str:
        return f"candidate {self.candidates:,}, line {self.lines:,}, block {self.state.hex()[:16]}…"


ORIGIN: Final = Checkpoint(0, 0, bytes(BLOCK_BYTES))
BEHIND_LISTED: Final = Checkpoint(len(LISTED), len(LISTED), bytes(BLOCK_BYTES))


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the stream: `blocks` blocks from a checkpoint, but nothing after line `until` of the whole stream.

    Without `blocks` only `until` ends it.
    """

    index: int
    start: Checkpoint
    blocks: int | None
    until: int


@dataclass(frozen=True, slots=True)
class Made:
    """A partition as it was made: its text, its lines, and the place after its last block.

    Where `until` cuts a block in the middle, `end.lines` counts that block in full.
    """

    text: bytes
    lines: int
    end: Checkpoint


def pieces(partition: Partition) -> Iterator[tuple[npt.NDArray[np.uint64], Checkpoint]]:
    """The bit patterns of a partition's lines, piece by piece, each with the place after it."""
    place, until, left = partition.start, partition.until, partition.blocks
    if not place.candidates:
        place = BEHIND_LISTED
        yield LISTED[:until], place
    while left != 0 and place.lines < until:
        wanted = min(PIECE_BLOCKS, -(-(until - place.lines) // CANDIDATES_PER_BLOCK))
        if left is not None:
            wanted = min(wanted, left)
            left -= wanted
        blocks, state = chain(place.state, wanted)
        found = doubles(blocks)
        before, place = place, _behind(place, wanted, len(found), state)
        yield found[: until - before.lines], place


def made(partition: Partition) -> Made:
    """The lines of a partition."""
    found = list(pieces(partition))
    return Made(b"".join(lines(each) for each, _ in found), sum(len(each) for each, _ in found), found[-1][1])


def chain(state: bytes, count: int) -> tuple[bytes, bytes]:
    """The `count` blocks after `state`, joined, and the last of them (`state` itself if `count` is 0)."""
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
    """The checkpoint `blocks` blocks after `start`, without making any text."""
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

    They start at the origin and at the `known` checkpoints, which may be wrong (`joined` finds out); after the last
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


def joined(partition: Partition, made: Made, following: Partition | None) -> None:
    """That a partition, as it was made, ends where the following one starts (or, the last one, where the stream ends).

    Raises:
        StreamBrokenError: it does not, or its lines do not add up.
    """
    end = made.end
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
    if made.lines != expected:
        raise StreamBrokenError(f"expected {expected:,} lines of partition {partition.index}; got {made.lines:,}")


# The longest stream with a published digest.
_REACH: Final = 100_000_000
# `python -m vectors.jcs.es6.stream` walks the chain and writes the file again (10 s). No result depends on it: a
# landmark that is not where the partition before it ends breaks the run (`joined`). It saves a walk, 0.1 s for
# each million lines on one core while the other cores wait.
_NAME: Final = "landmarks.json"


def landmarks() -> tuple[Checkpoint, ...]:
    """The shipped checkpoints, in the order of the stream, `PARTITION_BLOCKS` blocks apart, without the origin.

    Raises:
        StreamBrokenError: the file is damaged so much that it cannot be read.
    """
    text = files("holdfast.vectors.jcs.es6").joinpath(_NAME).read_text(encoding="ascii")
    try:
        rows = json.loads(text)["checkpoints"]
        return tuple(Checkpoint(int(before), int(lines), bytes.fromhex(state)) for before, lines, state in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise StreamBrokenError(
            f"expected {_NAME} to list [candidates, lines, block]; got {error!r}: install the kit again"
        ) from error


def rendered() -> str:
    """The text of the file, walked anew."""
    rows, place = [], walk(ORIGIN, PARTITION_BLOCKS)
    while place.lines < _REACH:
        rows.append(f'    [{place.candidates}, {place.lines}, "{place.state.hex()}"]')
        place = walk(place, PARTITION_BLOCKS)
    about = "candidates and lines before each checkpoint, and the last block of the chain before it"
    return f'{{\n  "about": "{about}",\n  "checkpoints": [\n' + ",\n".join(rows) + "\n  ]\n}\n"


if __name__ == "__main__":
    Path(__file__).with_name(_NAME).write_text(rendered(), encoding="ascii")
