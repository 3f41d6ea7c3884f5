"""The opening of every run: the committed vectors and the ladder of sizes, which go before the generated rows.

Row by row the columns are those of the stream, and three more: the name under which `vectors show` makes the row again,
the clause of the contract that it is about, and whether an implementation may refuse it for its depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.specs import load_contract
from holdfast.vectors.jcs.construct import SCHEMA
from holdfast.vectors.jcs.ladder import rung, steps
from holdfast.vectors.jcs.measures import Measure, depths, measured
from holdfast.vectors.record import Refused, Vector, load
from holdfast.vectors.taxonomy import Profile

# The opening is cut into this number of slices, which are judged side by side. Rows take turns, so that each slice has
# some of every size.
SLICES = 32
COLUMNS = pa.schema(
    [*SCHEMA, pa.field("name", pa.string()), pa.field("clause", pa.string()), pa.field("deep", pa.bool_())]
)
_LADDER = "ladder"


@dataclass(frozen=True, slots=True)
class Opening:
    """The rows of the opening: `committed` vectors, and the `rungs` of the ladder of `seed` by name.

    Documents with more than `floor` levels may be refused for their depth. Workers get all of it from the driver,
    because on a cluster they cannot read the files of the kit.
    """

    seed: int
    floor: int
    committed: tuple[Mapping[str, Any], ...]
    rungs: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.committed) + len(self.rungs)

    @property
    def slices(self) -> int:
        """How many slices have rows."""
        return min(SLICES, self.count)

    def rows(self, piece: int) -> pa.RecordBatch:
        """Slice number `piece`, made alone. The index of a row is its place among all: vectors first, then rungs."""
        chosen = [self.row(number) for number in range(piece, self.count, SLICES)]
        batch = pa.RecordBatch.from_pylist(chosen, schema=COLUMNS)
        deep = measured(batch.column("document"))[Measure.DEPTH] > self.floor
        return batch.set_column(batch.num_columns - 1, COLUMNS.field("deep"), pa.array(deep))

    def row(self, number: int) -> dict[str, Any]:
        """One row, made alone; `deep` is not known of it."""
        if number < len(self.committed):
            return {"index": number, **self.committed[number]}
        made = rung(self.seed, self.rungs[number - len(self.committed)])
        return {"index": number, **{one: getattr(made, one) for one in COLUMNS.names if hasattr(made, one)}}


def opening_of(seed: int) -> Opening:
    """The whole opening of a seed. Raises SpecError if the committed vectors cannot be read."""
    return Opening(seed, _floor(), tuple(map(_committed, load())), tuple(steps()))


def may_be_too_deep(document: bytes) -> bool:
    """Whether an implementation may refuse the document for its depth (JCS-DEPTH-01, JCS-DEPTH-02)."""
    return depths([document])[0] > _floor()


def _floor() -> int:
    floor = load_contract("jcs").parameters["depth_floor"].value
    assert isinstance(floor, int)
    return floor


def argument_of(seed: int, name: str) -> str:
    """The argument of `vectors show` for a row of the opening."""
    return f"{_LADDER}:{seed}:{name}" if name in steps() else name


def _committed(vector: Vector) -> Mapping[str, Any]:
    refusals = [vector.expected[profile] for profile in Profile]
    return {
        "category": vector.category.value,
        "document": vector.document,
        "canonical": vector.canonical,
        "refused_by": vector.refused_by,
        "reason": next((one.reason for one in refusals if isinstance(one, Refused)), None),
        "name": vector.id,
        "clause": vector.clause,
    }
