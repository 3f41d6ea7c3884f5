"""The digest of the published number stream as a Spark job: workers make partitions, the driver hashes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.vectors.jcs.es6.digest import Digest, digest
from holdfast.vectors.jcs.es6.landmarks import landmarks
from holdfast.vectors.jcs.es6.stream import Checkpoint, Partition, StreamLostError, plan
from holdfast.vectors.jcs.es6.transport import Collector, Sender
from holdfast.vectors.jcs.spark.progress import Listener, silent, watched

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
from enum import StrEnum
from typing import Final

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


def compare(lines: int, octets: int, sha256: str) -> Comparison:
    """The digest (lower-case hexadecimal) and size of the first `lines` lines against the published ones."""
    published = PUBLISHED.get(lines)
    if published is None:
        return Comparison.NO_PUBLISHED_VALUE
    return Comparison.MATCH if published == Published(octets, sha256) else Comparison.MISMATCH


_LOOPBACK = "127.0.0.1"
# Java only passes data on here. Its optimising compiler would take four seconds of processor time at the start: a tenth
# of the time of a hundred million lines, without any gain.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """What to put into the environment of a session that is opened for `run` alone. `run` works without it."""
    return {"JDK_JAVA_OPTIONS": f"{inherited.get('JDK_JAVA_OPTIONS', '')} {_JAVA_OPTIONS}".strip()}


@dataclass(frozen=True, slots=True)
class Es6Result:
    """The digest of the first `lines` lines beside the published one (None where none is published)."""

    lines: int
    octets: int
    sha256: str
    published: str | None
    comparison: Comparison
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
    bound, reached = _addresses(spark.sparkContext)
    with Collector(bound) as collector:
        digesting = _Digesting(collector, partitions)
        digesting.start()
        try:
            done = watched(
                spark,
                f"{lines:,} lines",
                lambda: _delivered(spark.sparkContext, partitions, collector.sender(reached)),
                progress,
            )
        except Exception as error:
            failure = digesting.failure
            collector.close()
            digesting.join()
            if failure is not None:
                raise failure from error
            said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise StreamLostError(
                f"expected Spark to make {len(partitions)} partitions; got {said[:300]}: look at its log"
            ) from error
        if sorted(done) != list(range(len(partitions))):
            raise StreamLostError(
                f"expected each of {len(partitions)} partitions once; Spark says {len(done)} were made"
            )
        digesting.join()
    digested = digesting.outcome()
    published = PUBLISHED.get(lines)
    return Es6Result(
        lines=digested.lines,
        octets=digested.octets,
        sha256=digested.sha256,
        published=None if published is None else published.sha256,
        comparison=compare(digested.lines, digested.octets, digested.sha256),
        partitions=len(partitions),
        seconds=time.monotonic() - started,
    )


def _delivered(context: SparkContext, partitions: Sequence[Partition], send: Sender) -> list[int]:
    delivered: list[int] = context.parallelize(partitions, len(partitions)).map(send).collect()
    return delivered


def _addresses(context: SparkContext) -> tuple[str, str]:
    """Where to listen, and the name under which workers reach it: Spark's own, as its workers must reach it too."""
    conf = context.getConf()
    if conf.get("spark.master", "local").startswith("local"):
        return _LOOPBACK, _LOOPBACK
    host = conf.get("spark.driver.host")
    assert host is not None
    return conf.get("spark.driver.bindAddress", host) or host, host


class _Digesting(threading.Thread):
    """Hashes arriving pieces in order, while the main thread watches Spark. If it fails, the workers are stopped."""

    def __init__(self, collector: Collector, partitions: Sequence[Partition]) -> None:
        super().__init__(name="es6-digest", daemon=True)
        self.failure: BaseException | None = None
        self._digest: Digest | None = None
        self._collector = collector
        self._partitions = partitions

    def run(self) -> None:
        try:
            self._digest = digest(self._partitions, lambda partition: self._collector.pieces(partition.index))
        except BaseException as error:  # the main thread raises it
            self.failure = error
            self._collector.close()

    def outcome(self) -> Digest:
        if self.failure is not None:
            raise self.failure
        if self._digest is None:
            raise StreamLostError("expected a digest; hashing did not end")
        return self._digest
