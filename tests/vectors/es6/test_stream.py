"""The published number stream: its order, its digests, and that partitions join up or break."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from holdfast.vectors.jcs.es6.job import PUBLISHED, Comparison, Digest, digest
from holdfast.vectors.jcs.es6.stream import (
    LISTED,
    ORIGIN,
    PARTITION_BLOCKS,
    Checkpoint,
    Partition,
    StreamBrokenError,
    doubles,
    joined,
    landmarks,
    lines,
    made,
    plan,
    walk,
)
from tests.vectors.es6 import oracle


def plainly(count: int) -> str:
    """The stream as its description says it, one value after the other."""
    made = [f"{pattern:x},{oracle.text(oracle.double(pattern))}\n" for pattern in LISTED.tolist()]
    block = bytes(32)
    while len(made) < count:
        block = hashlib.sha256(block).digest()
        values = [(pattern, oracle.double(pattern)) for pattern in struct.unpack("<4Q", block)]
        made += [f"{pattern:x},{oracle.text(value)}\n" for pattern, value in values if value and math.isfinite(value)]
    return "".join(made[:count])


def digest_here(count: int) -> Digest:
    return digest(tuple(plan(count)))


def whole(partitions: tuple[Partition, ...]) -> bytes:
    return b"".join(made(partition).text for partition in partitions)


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000, 1_000_000])
def test_the_digest_of_a_published_size_matches(count: int) -> None:
    assert digest_here(count).comparison is Comparison.MATCH


@pytest.mark.parametrize("count", [1, 3, 168, 2_167, 2_168, 2_169, 2_170, 2_173, 5_001, 9_000])
def test_any_number_of_lines_is_a_beginning_of_the_stream(count: int) -> None:
    text = plainly(9_000).splitlines(keepends=True)
    assert whole(tuple(plan(count))).decode() == "".join(text[:count])


@pytest.mark.parametrize("blocks", [1, 7, 128, 1_000, 4_999, 20_000])
def test_partitions_of_any_size_give_the_same_digest(blocks: int) -> None:
    count = 2_168 + 5_003 if blocks < 100 else 60_001
    partitions = tuple(plan(count, partition_blocks=blocks))
    assert (len(partitions) == 1) == (4 * blocks >= count)
    assert digest(partitions) == digest_here(count)


@pytest.mark.parametrize("member", ["state", "lines", "candidates"])
@pytest.mark.parametrize("off", [-4, 4])
def test_a_checkpoint_that_is_off_breaks_the_stream(member: str, off: int) -> None:
    place = walk(ORIGIN, 20_000)
    assert digest(tuple(plan(100_000, (place,)))) == digest_here(100_000)
    assert place.lines < place.candidates - 4
    wrong: Any = bytes([place.state[0] ^ 1]) + place.state[1:] if member == "state" else getattr(place, member) + off
    with pytest.raises(StreamBrokenError, match="expected partition 0 to end where partition 1 starts"):
        digest(tuple(plan(100_000, (replace(place, **{member: wrong}),))))


def test_a_partition_that_loses_a_line_breaks_the_stream() -> None:
    partition = next(iter(plan(5_000)))
    whole = made(partition)
    joined(partition, whole, None)
    with pytest.raises(StreamBrokenError, match="expected 5,000 lines of partition 0; got 4,999"):
        joined(partition, replace(whole, lines=4_999), None)


def test_a_partition_that_stops_too_early_breaks_the_stream() -> None:
    partition = replace(next(iter(plan(5_000))), blocks=3)
    with pytest.raises(StreamBrokenError, match="expected the last partition to reach line 5,000"):
        digest((partition,))


@pytest.mark.parametrize(
    ("candidates", "lines", "state"),
    [(5, 5, bytes(32)), (2_170, 2_170, bytes(32)), (2_172, 2_173, bytes(32)), (2_172, 2_170, bytes(31)),
     (2_168, 2_168, b"\1" * 32), (0, 0, b"\1" * 32), (2_168, 2_167, bytes(32)), (2_172, -1, bytes(32))],
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_is_refused(candidates: int, lines: int, state: bytes) -> None:
    with pytest.raises(StreamBrokenError, match="expected"):
        Checkpoint(candidates, lines, state)


def test_checkpoints_out_of_order_are_refused() -> None:
    known = (walk(ORIGIN, 20), walk(ORIGIN, 10))
    with pytest.raises(ValueError, match="in the order of the stream"):
        tuple(plan(1_000_000, known))


@pytest.mark.parametrize("count", [0, -1])
def test_no_lines_are_no_stream(count: int) -> None:
    with pytest.raises(ValueError, match="expected a positive number of lines"):
        tuple(plan(count))


def test_zeros_and_what_is_not_finite_give_no_line() -> None:
    patterns = [
        0,
        1 << 63,
        1,
        0x7FF0 << 48,
        0xFFF0 << 48,
        0x7FF8 << 48,
        (1 << 64) - 1,
        0x7FEF << 48,
        0xFFEFFFFFFFFFFFFF,
    ]
    given = doubles(struct.pack(f"<{len(patterns)}Q", *patterns)).tolist()
    assert given == [1, 0x7FEF << 48, 0xFFEFFFFFFFFFFFFF]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_has_no_text_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        lines(np.array([value]).view(np.uint64))


def test_the_shipped_landmarks_are_on_the_chain() -> None:
    first, second, *_ = landmarks()
    assert walk(ORIGIN, PARTITION_BLOCKS) == first
    assert walk(first, PARTITION_BLOCKS) == second
    apart = {after.candidates - before.candidates for before, after in zip(landmarks(), landmarks()[1:], strict=False)}
    assert apart == {4 * PARTITION_BLOCKS}
    assert landmarks()[-1].lines < max(PUBLISHED) <= landmarks()[-1].lines + 4 * PARTITION_BLOCKS


def test_a_digest_is_a_match_a_mismatch_or_nothing() -> None:
    published = PUBLISHED[1_000]
    assert Digest(1_000, published.octets, published.sha256).comparison is Comparison.MATCH
    assert Digest(1_000, published.octets, PUBLISHED[10_000].sha256).comparison is Comparison.MISMATCH
    assert Digest(1_000, published.octets + 1, published.sha256).comparison is Comparison.MISMATCH
    assert Digest(1_001, published.octets, published.sha256).comparison is Comparison.NO_PUBLISHED_VALUE
    assert [comparison.exit_code for comparison in Comparison] == [0, 20, 12]
