"""The digest of the published number stream as a Spark job: workers make partitions, the driver hashes them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from holdfast.vectors.jcs.es6.stream import Checkpoint, Made, Partition, StreamLostError, joined, landmarks, made, plan
from holdfast.vectors.jcs.es6.transport import Collector
from holdfast.vectors.jcs.spark.session import Listener, silent, watched
from holdfast.vectors.jcs.spark.storage import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# The published SHA-256 of the first N lines, and the comparison of a digest with it.
# Source: cyberphone/json-canonicalization, testdata/README.md.


@dataclass(frozen=True, slots=True)
class Published:
    """The published size and digest of the first lines of the stream."""

    octets: int
    sha256: str


PUBLISHED: Final = {
    1_000: Published(37_967, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"),
    10_000: Published(399_022, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"),
    100_000: Published(4_031_728, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"),
    1_000_000: Published(40_357_417, "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16"),
    10_000_000: Published(403_630_048, "b9f8a44a91d46813b21b9602e72f112613c91408db0b8341fb94603d9db135e0"),
    100_000_000: Published(4_036_326_174, "0f7dda6b0837dde083c5d6b896f7d62340c8a2415b0c7121d83145e08a755272"),
}


class Comparison(StrEnum):
    """The result of comparing a digest with the published one. Only `MATCH` is a pass."""

    MATCH = "MATCH"
    MISMATCH = "MISMATCH"
    NO_PUBLISHED_VALUE = "NO PUBLISHED VALUE"

    @property
    def exit_code(self) -> int:
        """0, 20 (the kit's own number text is wrong) or 12 (nothing was shown); docs/exit-codes."""
        return {Comparison.MATCH: 0, Comparison.MISMATCH: 20, Comparison.NO_PUBLISHED_VALUE: 12}[self]


@dataclass(frozen=True, slots=True)
class Digest:
    """Of the first `lines` lines: their size in bytes and SHA-256 in lower-case hexadecimal."""

    lines: int
    octets: int
    sha256: str

    @property
    def published(self) -> str | None:
        """The published SHA-256 of as many lines."""
        found = PUBLISHED.get(self.lines)
        return None if found is None else found.sha256

    @property
    def comparison(self) -> Comparison:
        """This digest and size against the published ones."""
        if self.lines not in PUBLISHED:
            return Comparison.NO_PUBLISHED_VALUE
        same = PUBLISHED[self.lines] == Published(self.octets, self.sha256)
        return Comparison.MATCH if same else Comparison.MISMATCH


def digest(partitions: Sequence[Partition], source: Callable[[Partition], Made] = made) -> Digest:
    """The digest of all `partitions`, which are a whole `plan`; without a `source` they are made here.

    The SHA-256 of the whole cannot be computed from those of parts, so all text passes this place, in order. It only
    hashes (1.6 GB/s where the processor helps; a million lines are 40 MB) and checks that the partitions join.

    Raises:
        StreamBrokenError: one does not join up with the next, or lines are missing.
    """
    hashed, octets = hashlib.sha256(), 0
    # One partition is hashed while the next one is fetched.
    with ThreadPoolExecutor(1) as hasher:
        under_way = hasher.submit(hashed.update, b"")
        for partition, following in zip(partitions, [*partitions[1:], None], strict=True):
            found = source(partition)
            joined(partition, found, following)
            under_way.result()
            under_way = hasher.submit(hashed.update, found.text)
            octets += len(found.text)
    return Digest(partitions[-1].until, octets, hashed.hexdigest())


_LOOPBACK = "127.0.0.1"
# Java only passes data on here. Its optimising compiler would take four seconds of processor time at the start: a tenth
# of the time of a hundred million lines, without any gain.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """What to put into the environment of a session that is opened for `run` alone. `run` works without it."""
    return {"JDK_JAVA_OPTIONS": f"{inherited.get('JDK_JAVA_OPTIONS', '')} {_JAVA_OPTIONS}".strip()}


@dataclass(frozen=True, slots=True)
class Es6Result(Digest):
    """The digest of the first `lines` lines beside the published one."""

    partitions: int
    seconds: float  # of the job; the session's start is not in it

    def summary(self) -> tuple[str, ...]:
        """Plain lines for a terminal; the last one is `result: …`."""
        return (
            f"lines: {self.lines:,} ({self.octets:,} bytes, {self.partitions} partitions, {self.seconds:.1f} s)",
            f"sha256: {self.sha256}",
            f"published: {self.published or 'none for this number of lines'}",
            f"result: {self.comparison}",
        )


def run(
    lines: int,
    *,
    spark: SparkSession,
    progress: Listener = silent,
    known: Sequence[Checkpoint] | None = None,
) -> Es6Result:
    """Make the first `lines` lines in `spark` and compare their SHA-256 with the published one.

    `known` are the checkpoints to start partitions from (in place of the kit's landmarks); wrong ones break the run.

    Raises:
        ValueError: `lines` is not positive.
        StreamLostError: partitions did not arrive, or Spark failed: no digest, so no result.
        StreamBrokenError: partitions did not join up: the kit made them wrongly.
    """
    started = time.monotonic()
    partitions = tuple(plan(lines, landmarks() if known is None else tuple(known)))
    context = spark.sparkContext
    bound, reached = _addresses(context)
    with ThreadPoolExecutor(1) as pool, Collector(bound) as collector:
        # Hashes what arrives while this thread watches Spark. If it fails, the workers find nobody to send to.
        hashing = pool.submit(digest, partitions, collector.take)
        hashing.add_done_callback(lambda done: collector.close() if done.exception() else None)
        send = collector.sender(reached)
        parts = context.parallelize(partitions, len(partitions))
        try:
            watched(spark, f"{lines:,} lines", lambda: parts.foreach(send), progress)
        except Exception as error:
            if hashing.done():
                hashing.result()
            said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise StreamLostError(
                f"expected Spark to make {len(partitions)} partitions; got {said[:300]}: look at its log"
            ) from error
        found = hashing.result()
    return Es6Result(found.lines, found.octets, found.sha256, len(partitions), time.monotonic() - started)


def _addresses(context: SparkContext) -> tuple[str, str]:
    """Where to listen, and the name under which workers reach it: Spark's own, as its workers must reach it too."""
    if is_local(context.master):
        return _LOOPBACK, _LOOPBACK
    conf = context.getConf()
    host = conf.get("spark.driver.host")
    assert host is not None
    return conf.get("spark.driver.bindAddress", host) or host, host
