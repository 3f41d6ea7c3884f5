"""`holdfast vectors es6 --sdk`: an SDK's number text on the published stream, each number spelled another way."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.vectors.jcs.es6.documents import documents
from holdfast.vectors.jcs.es6.landmarks import landmarks
from holdfast.vectors.jcs.es6.stream import Partition, plan
from holdfast.vectors.jcs.frames import Answered, StartError, Status, run
from holdfast.vectors.jcs.frames.process import scrubbed_environment
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import OutputError
from holdfast.vectors.jcs.spark.progress import Listener, silent, watched
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "partition bigint, finding string, rows bigint, line bigint, document binary, canonical binary, said string"
_NAMES = ("partition", "finding", "rows", "line", "document", "canonical", "said")


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
    """Numbers of partitions of the plan to what the SDK makes of their lines."""

    command: Command
    lines: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row for each finding of each partition."""
        partitions = _plan(self.lines)
        for ids in batches:
            for number in ids.column(0).to_pylist():
                rows = list(self._judged(partitions[number]))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([row[i] for row in rows], _TYPES[i]) for i in range(len(_NAMES))], names=list(_NAMES)
                )

    def _judged(self, partition: Partition) -> Iterator[tuple[Any, ...]]:
        counts: Counter[Meaning] = Counter()
        first: dict[Meaning, tuple[int, bytes, bytes, str]] = {}
        waiting: deque[pa.RecordBatch] = deque()
        unexplained: list[str] = []
        try:
            answers = run(
                self.command.words,
                _fed(partition, waiting),
                deadline=self.command.deadline,
                start=self.command.start,
                env={**scrubbed_environment(), **self.command.environment},
                unexplained=unexplained.append,
            )
            for answer in answers:
                rows = waiting.popleft()
                held = [answer, *islice(answers, rows.num_rows - 1)]
                expected = rows.column("canonical").to_pylist()
                # Nearly all agree: compared as whole lists first.
                if held == [(Status.CANONICAL, body) for body in expected]:
                    counts[Meaning.AGREE] += len(held)
                    continue
                for position, (said, body) in enumerate(zip(held, expected, strict=True)):
                    found = disagreement(Answered(Status.CANONICAL, body), said)
                    counts[found] += 1
                    if found is not Meaning.AGREE and found not in first:
                        words = said.body.decode("utf-8", "replace")
                        first[found] = (
                            rows.column("line")[position].as_py(),
                            rows.column("document")[position].as_py(),
                            body,
                            words if said.status is Status.CANONICAL else f"{said.status.value}: {words}",
                        )
        except StartError as error:
            yield partition.index, "failed", 0, None, None, None, str(error)
            return
        for found, rows_found in counts.items():
            yield partition.index, found.value, rows_found, *first.get(found, (None, None, None, None))
        if unexplained:
            yield partition.index, "restarted", len(unexplained), None, None, None, unexplained[0]


_TYPES = (pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), pa.string())


def _plan(lines: int) -> Sequence[Partition]:
    return tuple(plan(lines, landmarks()))


def _fed(partition: Partition, waiting: deque[pa.RecordBatch]) -> Iterator[bytes]:
    for rows in documents(partition):
        waiting.append(rows)
        yield from rows.column("document").to_pylist()


def verify_numbers(spark: SparkSession, lines: int, command: Command, *, listener: Listener = silent) -> NumberResult:
    """Run the SDK over the first `lines` lines. Raises OutputError if the counts cannot be right."""
    number = len(_plan(lines))
    frame = spark.range(0, number, 1, number).mapInArrow(JudgeNumbers(command, lines), _SCHEMA)
    counts: Counter[Meaning] = Counter()
    first: dict[Meaning, Departure] = {}
    failure: str | None = None
    restarts = 0
    for row in sorted(watched(spark, f"{lines:,} numbers", frame.collect, listener), key=lambda r: r["partition"]):
        if row["finding"] == "failed":
            failure = row["said"]
            continue
        if row["finding"] == "restarted":
            restarts += row["rows"]
            continue
        found = Meaning(row["finding"])
        counts[found] += row["rows"]
        if row["line"] is not None and found not in first:
            first[found] = Departure(row["line"], bytes(row["document"]), bytes(row["canonical"]), row["said"])
    result = NumberResult(lines, {found: counts[found] for found in Meaning}, first, failure, restarts)
    if result.missing < 0:
        raise OutputError(f"expected {lines} lines, {sum(counts.values())} were judged; run it again")
    return result
