"""`holdfast vectors es6 --sdk`: an SDK's number text on the published stream, each number spelled another way.

A document is an array of one number, written with 17 significant digits and an exponent (`[-3.3333333333333333E+20]`):
enough digits to name every double, and never the canonical spelling, so that no program passes by copying. A wrong
answer can only come from the number text or from the parser.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.es6.stream import Partition, landmarks, pieces, plan, text
from holdfast.vectors.jcs.frames import StartError, Status
from holdfast.vectors.jcs.frames.columns import answered
from holdfast.vectors.jcs.spark.blocks import in_spark
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import OutputError
from holdfast.vectors.jcs.spark.session import Listener, silent, watched
from holdfast.vectors.jcs.spark.tally import Meaning, findings, outcomes
from holdfast.vectors.taxonomy import Profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Rows of a batch: 1.2 MB, and small enough that a runner which is fed from it starts at once.
BATCH_ROWS = 16_384
# `line` is counted from 0, in the whole stream.
_DOCUMENT = [("line", pa.int64()), ("document", pa.binary()), ("canonical", pa.binary())]
_FINDING = pa.schema(
    [("partition", pa.int64()), ("finding", pa.string()), ("rows", pa.int64()), *_DOCUMENT, ("said", pa.string())]
)


def documents(partition: Partition) -> Iterator[pa.RecordBatch]:
    """The documents of one partition of a `stream.plan`, in order, with their canonical forms.

    They need no digest to be checked against: `canonical` comes from the same code that makes the lines of `job.run`.
    """
    line = partition.start.lines
    for patterns, _ in pieces(partition):
        for first in range(0, len(patterns), BATCH_ROWS):
            values = patterns[first : first + BATCH_ROWS].view(np.float64)
            spelled = [b"[%.16E]" % value for value in values.tolist()]
            canonical = pc.binary_join_element_wise("[", text(values), "]", "").cast(pa.binary())
            columns = [range(line, line + len(values)), spelled, canonical]
            yield pa.record_batch(columns, schema=pa.schema(_DOCUMENT))
            line += len(values)


@dataclass(frozen=True, slots=True)
class Departure:
    """The first line on which an SDK departs: its number from 0, the document, what is expected, what was said."""

    line: int
    document: bytes
    canonical: bytes
    said: str


@dataclass(frozen=True, slots=True)
class NumberResult:
    """Lines by finding, and the first departure of each; `failure` says why a runner never started.

    `restarts` processes failed although each of their numbers was answered when it was asked again.
    """

    lines: int
    counts: dict[Meaning, int]
    first: dict[Meaning, Departure]
    failure: str | None
    restarts: int = 0

    @property
    def missing(self) -> int:
        """Lines that nothing is known of."""
        return self.lines - sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class JudgeNumbers:
    """Numbers of partitions to what the SDK makes of their lines."""

    command: Command
    partitions: tuple[Partition, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row for each finding of each partition."""
        for ids in batches:
            for number in ids.column(0).to_pylist():
                rows = [{"partition": number, **row} for row in self._judged(self.partitions[number])]
                yield pa.RecordBatch.from_pylist(rows, schema=_FINDING)

    def _judged(self, partition: Partition) -> Iterator[dict[str, Any]]:
        counts: Counter[Meaning] = Counter()
        first: dict[Meaning, dict[str, Any]] = {}
        waiting: deque[pa.RecordBatch] = deque()
        unexplained: list[str] = []

        def fed() -> Iterator[pa.BinaryArray]:
            for rows in documents(partition):
                waiting.append(rows)
                yield rows.column("document")

        try:
            for answers in self.command.run(fed(), unexplained.append):
                rows = waiting.popleft()
                codes = outcomes(answers, rows.column("canonical"))
                found = findings(np.zeros(len(codes), dtype=np.int8), codes, Profile.CORE)
                for code, place, times in zip(*np.unique(found, return_index=True, return_counts=True), strict=True):
                    meaning = tuple(Meaning)[code]
                    counts[meaning] += int(times)
                    if meaning is not Meaning.AGREE and meaning not in first:
                        status, body = answered(answers, int(place))
                        words = body.decode("utf-8", "replace")
                        said = words if status is Status.CANONICAL else f"{status.value}: {words}"
                        first[meaning] = {**rows.slice(int(place), 1).to_pylist()[0], "said": said}
        except StartError as error:
            yield {"finding": "failed", "rows": 0, "said": str(error)}
            return
        for meaning, times in counts.items():
            yield {"finding": meaning.value, "rows": times, **first.get(meaning, {})}
        if unexplained:
            yield {"finding": "restarted", "rows": len(unexplained), "said": unexplained[0]}


def verify_numbers(spark: SparkSession, lines: int, command: Command, *, listener: Listener = silent) -> NumberResult:
    """Run the SDK over the first `lines` lines. Raises OutputError if the counts cannot be right."""
    partitions = tuple(plan(lines, landmarks()))
    number = len(partitions)
    frame = spark.range(0, number, 1, number).mapInArrow(JudgeNumbers(command, partitions), in_spark(_FINDING))
    counts: dict[Meaning, int] = dict.fromkeys(Meaning, 0)
    first: dict[Meaning, Departure] = {}
    failure: str | None = None
    restarts = 0
    for row in sorted(watched(spark, f"{lines:,} numbers", frame.collect, listener), key=lambda r: r["partition"]):
        if row["finding"] == "failed":
            failure = row["said"]
        elif row["finding"] == "restarted":
            restarts += row["rows"]
        else:
            found = Meaning(row["finding"])
            counts[found] += row["rows"]
            if row["line"] is not None and found not in first:
                first[found] = Departure(row["line"], bytes(row["document"]), bytes(row["canonical"]), row["said"])
    result = NumberResult(lines, counts, first, failure, restarts)
    if result.missing < 0:
        raise OutputError(f"expected {lines} lines, {sum(counts.values())} were judged; run it again")
    return result
