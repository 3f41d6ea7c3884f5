"""The digest of the published number stream as a Spark job: workers make partitions, the driver hashes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.vectors.jcs.es6.digest import Digest, digest
from holdfast.vectors.jcs.es6.landmarks import landmarks
from holdfast.vectors.jcs.es6.published import PUBLISHED, Comparison, compare
from holdfast.vectors.jcs.es6.stream import Checkpoint, Partition, StreamLostError, plan
from holdfast.vectors.jcs.es6.transport import Collector, Sender
from holdfast.vectors.jcs.spark.progress import Listener, silent, watched

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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
