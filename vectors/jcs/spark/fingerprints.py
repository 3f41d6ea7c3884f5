"""`holdfast vectors fingerprints`: single-field mutations of requests by the million, held against each other.

Distinct requests must never share a fingerprint and equal ones must never differ, over all rows at once: Spark groups
them by fingerprint and by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.vectors.derive import derive
from holdfast.vectors.fingerprints.rows import COVERED, row_at
from holdfast.vectors.jcs.spark.blocks import in_spark, numbers_in
from holdfast.vectors.jcs.spark.manifest import OutputError
from holdfast.vectors.jcs.spark.session import Listener, silent, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("base", pa.int64()),
        ("key", pa.string()),
        ("field", pa.string()),
        ("identity", pa.binary()),
        ("fingerprint", pa.binary()),
    ]
)
# Rows of one step of a task.
_STEP = 8_192
_TASKS_PER_CORE = 4
# Faults that are shown of each kind; the counts are of all.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Family:
    """What the rows of one key show.

    `shared` fingerprints belong to several requests, `differing` requests have several fingerprints; `examples` are
    the rows (`index`) of the first of them.
    """

    key: str
    rows: int
    requests: int
    fingerprints: int
    shared: int
    differing: int
    examples: tuple[str, ...]

    @property
    def shows(self) -> bool:
        """Whether there were distinct requests and equal ones at all: else nothing was tried."""
        return 1 < self.requests < self.rows

    @property
    def sound(self) -> bool:
        """Whether each request has one fingerprint and each fingerprint one request."""
        return self.shows and not self.shared and not self.differing and self.requests == self.fingerprints


def mutations(seed: int, start: int, count: int) -> pa.RecordBatch:
    """The rows `start` to `start + count - 1` of `seed`: those of `fingerprints.rows`, with their fingerprints."""
    rows = []
    for row in (row_at(seed, index) for index in range(start, start + count)):
        shown = {name: getattr(row, name) for name in SCHEMA.names[:-1]}
        rows.append({**shown, "fingerprint": bytes.fromhex(derive(row.key, row.request))})
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class Mutate:
    """Numbers of steps to rows."""

    seed: int
    count: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each step, in order."""
        for step in numbers_in(batches):
            start = step * _STEP
            yield mutations(self.seed, start, min(_STEP, self.count - start))


def check_fingerprints(
    spark: SparkSession, seed: int, count: int, *, listener: Listener = silent
) -> tuple[Family, ...]:
    """What `count` rows show, by key. Raises OutputError if rows are missing."""
    steps = -(-count // _STEP)
    tasks = max(1, min(steps, spark.sparkContext.defaultParallelism * _TASKS_PER_CORE))
    rows = spark.range(0, steps, 1, tasks).mapInArrow(Mutate(seed, count), in_spark(SCHEMA)).persist()
    try:
        found = watched(spark, f"{count:,} requests", lambda: _counted(rows), listener)
        by_fingerprint = watched(
            spark, "comparing fingerprints", lambda: _groups(rows, "fingerprint", "identity"), listener
        )
        by_identity = watched(spark, "comparing requests", lambda: _groups(rows, "identity", "fingerprint"), listener)
    finally:
        rows.unpersist()
    if sum(found.values()) != count:
        raise OutputError(f"expected {count} requests, got {sum(found.values())}; run it again")
    return tuple(_family(key, found.get(key, 0), by_fingerprint, by_identity) for key in COVERED)


def _counted(rows: DataFrame) -> dict[str, int]:
    return {row["key"]: row["count"] for row in rows.groupBy("key").count().collect()}


def _groups(rows: DataFrame, by: str, differing: str) -> list[Any]:
    """For each key: groups, groups in which `differing` is not the same everywhere, and the first rows of some."""
    from pyspark.sql import functions as f

    grouped = rows.groupBy("key", by).agg(
        (f.min(differing) != f.max(differing)).alias("bad"), f.min("index").alias("first"), f.max("index").alias("last")
    )
    example = f.when(f.col("bad"), f.struct("first", "last"))
    return list(
        grouped.groupBy("key")
        .agg(
            f.count("*").alias("groups"),
            f.sum(f.col("bad").cast("bigint")).alias("bad"),
            f.slice(f.sort_array(f.collect_list(example)), 1, _SHOWN).alias("examples"),
        )
        .collect()
    )


def _family(key: str, rows: int, by_fingerprint: list[Any], by_identity: list[Any]) -> Family:
    prints = next((row for row in by_fingerprint if row["key"] == key), None)
    requests = next((row for row in by_identity if row["key"] == key), None)
    if prints is None or requests is None:
        return Family(key, rows, 0, 0, 0, 0, ())
    examples = [
        *(f"rows {one['first']} and {one['last']} share a fingerprint" for one in prints["examples"]),
        *(f"rows {one['first']} and {one['last']} are equal and differ" for one in requests["examples"]),
    ]
    return Family(key, rows, requests["groups"], prints["groups"], prints["bad"], requests["bad"], tuple(examples))
