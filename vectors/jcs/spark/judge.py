"""The worker's side of `holdfast vectors verify`: one SDK process for each partition, each answer held against its row.

What comes out are rows of these kinds: one `block` for each block (its digest and its counts), or `opening` for each
slice of the opening, `mismatch` rows, the `shortest` mismatch of each cell, which is what a person wants to see first,
and one `reached` row with the greatest measures of rows that agree. Should the runner not start at all, there is one
`failed` row that says why; should processes have died of no document in particular, one `restarted` row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.vectors.jcs.construct import SCHEMA
from holdfast.vectors.jcs.frames import StartError
from holdfast.vectors.jcs.frames.columns import answered as answer_at
from holdfast.vectors.jcs.frames.columns import run_columns
from holdfast.vectors.jcs.frames.process import scrubbed_environment
from holdfast.vectors.jcs.measures import Reached
from holdfast.vectors.jcs.opening import Opening
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS, Block, in_spark, leaf, numbers_in, regrouped
from holdfast.vectors.jcs.spark.tally import AGREE, CATEGORIES, Meaning, Outcome, count, digests, findings, outcomes
from holdfast.vectors.taxonomy import Category, Profile

_ANSWERS = pa.schema(
    [
        ("kind", pa.string()),
        ("block", pa.int64()),
        ("rows", pa.int64()),
        ("leaf", pa.binary()),
        ("cells", pa.binary()),
        ("finding", pa.string()),
        *SCHEMA,
        ("status", pa.string()),
        ("answer", pa.binary()),
        ("name", pa.string()),
        ("clause", pa.string()),
    ]
)
ANSWER_SCHEMA = in_spark(_ANSWERS)
_CATEGORIES = pa.array([category.value for category in CATEGORIES])
_FINDINGS = tuple(Meaning)


@dataclass(frozen=True, slots=True)
class Command:
    """How to run the SDK: seconds without an answer before it is hung, seconds to come up, and what is added to the
    few variables that a runner gets (the mark by which the kit finds what it left running)."""

    words: tuple[str, ...]
    deadline: float
    start: float
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of an exchange of frames."""
        env = {**scrubbed_environment(), **self.environment}
        return {"deadline": self.deadline, "start": self.start, "env": env}

    def run(self, documents: Iterable[pa.BinaryArray], unexplained: Callable[[str], None]) -> Iterator[pa.BinaryArray]:
        """The answers to batches of documents, see `run_columns`."""
        return run_columns(self.words, documents, **self.settings, unexplained=unexplained)


@dataclass(frozen=True, slots=True)
class Judge:
    """Rows to what the SDK makes of them.

    Mismatches are of `profile`; at most `kept` of each cell (category and finding) are kept of a partition, the first
    ones; the counts are of all. `source` makes the rows of what a partition got. Those of the opening (`opens`) have
    more columns. Rows of other categories than `only` are left out.
    """

    command: Command
    profile: Profile
    kept: int
    source: Callable[[Iterable[pa.RecordBatch]], Iterable[Block]]
    opens: bool = False
    only: tuple[Category, ...] = CATEGORIES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What one partition shows."""
        waiting: deque[tuple[Block, pa.RecordBatch]] = deque()
        best = _Shortest()
        reached = Reached()
        samples = np.zeros(len(CATEGORIES) * len(_FINDINGS), dtype=np.int64)
        unexplained: list[str] = []
        try:
            for answers in self.command.run(self._documents(batches, waiting), unexplained.append):
                yield from self._judged(*waiting.popleft(), answers, best, reached, samples)
        except StartError as error:
            yield _record([{"kind": "failed", "reason": str(error)}])
            return
        yield from best.records()
        yield _record([{"kind": "reached", "answer": reached.packed()}])
        if unexplained:
            yield _record([{"kind": "restarted", "rows": len(unexplained), "reason": unexplained[0]}])

    def _documents(
        self, batches: Iterable[pa.RecordBatch], waiting: deque[tuple[Block, pa.RecordBatch]]
    ) -> Iterator[pa.BinaryArray]:
        """The documents of each block that are asked; the block waits for its answers, and so do these rows."""
        asked = pa.array([category.value for category in self.only])
        for block in self.source(batches):
            rows = block.rows
            if self.only != CATEGORIES:
                rows = rows.filter(pc.is_in(rows.column("category"), value_set=asked))
            waiting.append((block, rows))
            yield rows.column("document")

    def _judged(
        self,
        block: Block,
        rows: pa.RecordBatch,
        answers: pa.BinaryArray,
        best: _Shortest,
        reached: Reached,
        samples: npt.NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        categories = pc.index_in(rows.column("category"), value_set=_CATEGORIES).to_numpy(zero_copy_only=False)
        refused_by = rows.column("refused_by").to_numpy(zero_copy_only=False)
        # Fewer answers than rows is a defect of the kit: it fails here, and the task with it.
        codes = outcomes(answers, rows.column("canonical"))
        limited = _limited(rows, codes) if self.opens else np.zeros(len(codes), dtype=np.bool_)
        codes[limited] = Outcome.EXPECTED_BYTES
        categories = categories.astype(np.int64)
        cells = count(categories, refused_by, codes)
        yield _record(
            [
                {
                    "kind": "opening" if self.opens else "block",
                    "block": block.number,
                    "rows": block.rows.num_rows,
                    "leaf": leaf(block.rows),
                    "cells": packed(cells),
                    "answer": digests(answers, codes, rows.column("canonical"), categories),
                }
            ]
        )
        found = findings(refused_by, codes, self.profile)
        reached.see(rows, categories, np.flatnonzero((found == AGREE) & ~limited), every=self.opens)
        departing = np.flatnonzero(found != AGREE)
        if len(departing):
            best.see(rows, answers, departing, categories, found)
            kept = self._sampled(departing, categories, found, samples)
            if kept:
                yield _record([_mismatch("mismatch", rows, answers, i, int(found[i])) for i in kept])

    def _sampled(
        self,
        departing: npt.NDArray[np.int64],
        categories: npt.NDArray[np.int64],
        found: npt.NDArray[np.int8],
        samples: npt.NDArray[np.int64],
    ) -> list[int]:
        cells = categories[departing] * len(_FINDINGS) + found[departing]
        # For most runners all cells are full after a few blocks, and no rows are left to inspect.
        wanted = samples[cells] < self.kept
        kept = []
        for i, cell in zip(departing[wanted].tolist(), cells[wanted].tolist(), strict=True):
            if samples[cell] < self.kept:
                samples[cell] += 1
                kept.append(i)
        return kept


@dataclass(slots=True)
class _Shortest:
    """The shortest departing document of each cell so far; of equally short ones the first."""

    held: dict[tuple[int, int], tuple[int, dict[str, Any]]] = field(default_factory=dict)

    def see(
        self,
        rows: pa.RecordBatch,
        answers: pa.BinaryArray,
        departing: npt.NDArray[np.int64],
        categories: npt.NDArray[np.int64],
        found: npt.NDArray[np.int8],
    ) -> None:
        """Consider the departing rows of a block."""
        lengths = pc.binary_length(rows.column("document")).to_numpy(zero_copy_only=False)[departing]
        order = departing[np.argsort(lengths, kind="stable")]
        cells = categories[order] * len(_FINDINGS) + found[order]
        for i in order[np.unique(cells, return_index=True)[1]].tolist():
            cell = (int(categories[i]), int(found[i]))
            length = len(rows.column("document")[i].as_py())
            before = self.held.get(cell)
            if before is None or length < before[0]:
                self.held[cell] = length, _mismatch("shortest", rows, answers, i, int(found[i]))

    def records(self) -> Iterator[pa.RecordBatch]:
        """One row for each cell."""
        if self.held:
            yield _record([row for _, row in self.held.values()])


def _limited(rows: pa.RecordBatch, codes: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Rows that are refused and nest deeper than the contract demands, which RFC 8259 section 9 allows."""
    deep = rows.column("deep").to_numpy(zero_copy_only=False)
    accepted = rows.column("canonical").is_valid().to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.bool_] = deep & accepted & (codes == Outcome.REFUSED)
    return found


def of_files(batches: Iterable[pa.RecordBatch], *, files: Sequence[str], count: int) -> Iterator[Block]:
    """A source: the blocks of the files with these numbers, which hold `count` rows in all."""

    def rows() -> Iterator[pa.RecordBatch]:
        for number in numbers_in(batches):
            with pq.ParquetFile(files[number]) as file:
                yield from file.iter_batches(batch_size=BLOCK_ROWS)

    return regrouped(rows(), count)


def of_opening(batches: Iterable[pa.RecordBatch], *, opening: Opening) -> Iterator[Block]:
    """A source: the slices of the opening with these numbers."""
    return (Block(piece, opening.rows(piece)) for piece in numbers_in(batches))


def _mismatch(kind: str, rows: pa.RecordBatch, answers: pa.BinaryArray, i: int, found: int) -> dict[str, Any]:
    row = {name: rows.column(name)[i].as_py() for name in _ANSWERS.names if name in rows.schema.names}
    status, body = answer_at(answers, i)
    return {**row, "kind": kind, "finding": _FINDINGS[found].value, "status": status.value, "answer": body}


def _record(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{name: row.get(name) for name in _ANSWERS.names} for row in rows], schema=_ANSWERS
    )


def packed(cells: npt.NDArray[np.int64]) -> bytes:
    """Cells for the way: positions and counts of those that are not zero, as pairs of i64, little-endian."""
    where = np.flatnonzero(cells)
    return np.stack([where, cells[where]], axis=1).astype("<i8").tobytes()


def unpacked(data: bytes, into: npt.NDArray[np.int64]) -> int:
    """Add packed cells to `into`; how many rows they hold."""
    pairs = np.frombuffer(data, "<i8").reshape(-1, 2)
    np.add.at(into, pairs[:, 0], pairs[:, 1])
    return int(pairs[:, 1].sum())
