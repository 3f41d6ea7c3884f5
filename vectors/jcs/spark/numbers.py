"""`holdfast vectors es6 --sdk`: an SDK's number text on the published stream, each number spelled another way.

A document is an array of one number, written with 17 significant digits and an exponent (`[-3.3333333333333333E+20]`):
enough digits to name every double, and never the canonical spelling, so that no program passes by copying. A wrong
answer can only come from the number text or from the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.construct import SCHEMA
from holdfast.vectors.jcs.es6.stream import Partition, landmarks, pieces, plan, text
from holdfast.vectors.jcs.frames import Status
from holdfast.vectors.jcs.spark.blocks import Block, numbers_in
from holdfast.vectors.jcs.spark.judge import ANSWER_SCHEMA, Command, Judge, unpacked
from holdfast.vectors.jcs.spark.manifest import OutputError
from holdfast.vectors.jcs.spark.session import Listener, silent, watched
from holdfast.vectors.jcs.spark.tally import CELLS, Meaning, table
from holdfast.vectors.taxonomy import Category, Profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Rows of a batch: 1.2 MB, and small enough that a runner which is fed from it starts at once.
BATCH_ROWS = 16_384
_CATEGORY = Category.NUMBER_SHORTEST


def documents(batches: Iterable[pa.RecordBatch], *, partitions: tuple[Partition, ...]) -> Iterator[Block]:
    """The documents of these partitions of a `stream.plan`, in order, by the number of their first line.

    They need no digest to be checked against: `canonical` comes from the same code that makes the lines of `job.run`.
    """
    for number in numbers_in(batches):
        line = partitions[number].start.lines
        for patterns, _ in pieces(partitions[number]):
            for first in range(0, len(patterns), BATCH_ROWS):
                values = patterns[first : first + BATCH_ROWS].view(np.float64)
                count = len(values)
                spelled = [b"[%.16E]" % value for value in values.tolist()]
                canonical = pc.binary_join_element_wise("[", text(values), "]", "").cast(pa.binary())
                due = [np.zeros(count, dtype=np.int8), pa.nulls(count, pa.string())]
                columns = [range(line, line + count), [_CATEGORY.value] * count, spelled, canonical, *due]
                yield Block(line, pa.record_batch(columns, schema=SCHEMA))
                line += count


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
    counts: Mapping[Meaning, int]
    first: Mapping[Meaning, Departure]
    failure: str | None
    restarts: int = 0

    @property
    def missing(self) -> int:
        """Lines that nothing is known of."""
        return self.lines - sum(self.counts.values())


def verify_numbers(spark: SparkSession, lines: int, command: Command, *, listener: Listener = silent) -> NumberResult:
    """Run the SDK over the first `lines` lines. Raises OutputError if the counts cannot be right."""
    partitions = tuple(plan(lines, landmarks()))
    number = len(partitions)
    judge = Judge(command, Profile.CORE, 1, partial(documents, partitions=partitions))
    frame = spark.range(0, number, 1, number).mapInArrow(judge, ANSWER_SCHEMA)
    cells = np.zeros(CELLS, dtype=np.int64)
    first: dict[Meaning, Departure] = {}
    failure: str | None = None
    restarts = 0
    for row in sorted(watched(spark, f"{lines:,} numbers", frame.collect, listener), key=lambda row: row["index"] or 0):
        if row["kind"] == "failed":
            failure = row["reason"]
        elif row["kind"] == "restarted":
            restarts += row["rows"]
        elif row["kind"] == "block":
            unpacked(bytes(row["cells"]), cells)
        elif row["kind"] == "mismatch":
            words = bytes(row["answer"]).decode("utf-8", "replace")
            said = words if row["status"] == Status.CANONICAL else f"{row['status']}: {words}"
            departure = Departure(row["index"], bytes(row["document"]), bytes(row["canonical"]), said)
            first.setdefault(Meaning(row["finding"]), departure)
    own = [row for row in table(cells) if row.category is _CATEGORY and row.profile is Profile.CORE]
    result = NumberResult(lines, own[0].counts, first, failure, restarts)
    if result.missing < 0:
        raise OutputError(f"expected {lines} lines, {lines - result.missing} were judged; run it again")
    return result
