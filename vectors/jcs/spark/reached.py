"""How far a run reached: by category, the greatest of each measure over rows that were answered as expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.measures import Measure, measured
from holdfast.vectors.jcs.spark.tally import CATEGORIES
from holdfast.vectors.taxonomy import Category

# How many generated rows of each category are measured in a block: the longest ones. All of them would take longer
# than a fast SDK does.
_MEASURED = 8
_SHAPE = (len(CATEGORIES), len(Measure))


@dataclass(frozen=True, slots=True)
class Reached:
    """The greatest measures so far: a line for each category, in their order."""

    most: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_SHAPE, dtype=np.int64))

    def see(
        self,
        rows: pa.RecordBatch,
        categories: npt.NDArray[np.int64],
        agreeing: npt.NDArray[np.int64],
        *,
        every: bool,
    ) -> None:
        """Measure the rows of these numbers, or without `every` the longest of each category."""
        documents = rows.column("document")
        if not every:
            lengths = pc.binary_length(documents).to_numpy(zero_copy_only=False)[agreeing]
            agreeing = agreeing[np.lexsort((-lengths, categories[agreeing]))]
            counted = np.bincount(categories[agreeing], minlength=len(CATEGORIES))
            place = np.arange(len(agreeing)) - np.repeat(np.cumsum(counted) - counted, counted)
            agreeing = agreeing[place < _MEASURED]
        if len(agreeing):
            found = measured(documents.take(pa.array(agreeing)))
            for column, measure in enumerate(Measure):
                np.maximum.at(self.most[:, column], categories[agreeing], found[measure])

    def packed(self) -> bytes:
        """For the way; `add` reads it."""
        return self.most.astype("<i8").tobytes()

    def add(self, packed: bytes) -> None:
        """Take what another one has seen."""
        np.maximum(self.most, np.frombuffer(packed, "<i8").reshape(_SHAPE), out=self.most)

    def table(self) -> Mapping[Category, Mapping[Measure, int]]:
        """By category, each measure that is not 0; a category is left out of which no row was measured."""
        lines = {
            category: {measure: int(value) for measure, value in zip(Measure, line, strict=True) if value}
            for category, line in zip(CATEGORIES, self.most, strict=True)
        }
        return {category: line for category, line in lines.items() if line}
