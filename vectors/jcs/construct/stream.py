"""The stream of constructed vectors: row `index` of seed `seed`, in slices or alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.construct.blocks import blocks_of, stock_of
from holdfast.vectors.jcs.construct.defects import DefectPlace
from holdfast.vectors.jcs.construct.dice import Integers, Words, below, byte, derive, keys_of, lane
from holdfast.vectors.jcs.construct.drafts import Drafts, Menu, draw, menu, table
from holdfast.vectors.jcs.construct.fragments import FORMS
from holdfast.vectors.jcs.construct.recipes import RECIPES
from holdfast.vectors.jcs.construct.segments import PROFILES_OF_CODE, TEXT_OF_CODE
from holdfast.vectors.jcs.construct.stock import Side, Stock
from holdfast.vectors.jcs.construct.writing import write_canonical, write_documents
from holdfast.vectors.taxonomy import Category

# Every change of the content of rows must raise this: seeds and indices in reports name rows of one version.
STREAM = 3
SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64()),
        pa.field("category", pa.string()),
        pa.field("document", pa.binary()),
        pa.field("canonical", pa.binary()),
        pa.field("refused_by", pa.int8()),
        pa.field("reason", pa.string()),
    ]
)
# Arrow's binary arrays hold 2 GiB; a row is at most some 100 KiB, and a few hundred bytes in the mean.
MOST_ROWS = 2**20
_CATEGORIES = tuple(Category)
_NOT_CANONICAL = _CATEGORIES.index(Category.NOT_CANONICAL)
_ROWS = 101  # sets the keys of rows apart from the keys of stocks
_LANE_CATEGORY, _LANE_DEFECT, _LANE_CHANGE = 32, 33, 34


@dataclass(frozen=True, slots=True)
class Row:
    """One row, generated or a rung of the ladder, with data that the columns lack.

    `canonical` is None when every profile refuses. `refused_by` is the sum of `Profile.bit` of the profiles that
    refuse, and `reason` why, one of the reasons if there are several. A negative row has one defect, which `note`
    describes, and a `twin`: the same document without it, which profile `core` accepts.
    """

    name: str
    category: Category
    clause: str
    document: bytes
    canonical: bytes | None
    refused_by: int
    reason: str | None
    note: str
    twin: bytes | None


def batch(seed: int, start: int, count: int) -> pa.RecordBatch:
    """Rows `start` … `start + count - 1` of `seed`, as SCHEMA has them.

    A pure function of seed and index: any slicing gives the same rows. Slices that do not cross a multiple of
    `blocks.STOCK_ROWS` are the fastest. Raises ValueError for a negative seed, start or count, or more than MOST_ROWS
    rows.
    """
    _check(seed, start, count)
    parts = [_rows(seed, block, indices)[0] for block, indices in blocks_of(start, count)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return pa.RecordBatch.from_pylist([], schema=SCHEMA)
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def row(seed: int, index: int) -> Row:
    """Row `index` of `seed`, made alone. Raises ValueError for a negative seed or index."""
    _check(seed, index, 1)
    (block, indices), *_ = blocks_of(index, 1)
    made, defect_numbers = _rows(seed, block, indices)
    (values,) = made.drop_columns(["index"]).to_pylist()
    number = int(defect_numbers[0])
    category = Category(values.pop("category"))
    note, twin = "", None
    if number >= 0:
        note = stock_of(seed, block).defects[number].note
        twin = _rows(seed, block, indices, Side.TWIN)[0].column("document")[0].as_py()
    return Row(f"{seed}:{index}", category, category.clause, **values, note=note, twin=twin)


def twins(seed: int, start: int, count: int) -> pa.BinaryArray:
    """The documents of the same rows with each defect taken out; rows without a defect are as they are."""
    _check(seed, start, count)
    parts = [_rows(seed, block, indices, Side.TWIN)[0].column("document") for block, indices in blocks_of(start, count)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())


def _check(seed: int, start: int, count: int) -> None:
    if not 0 <= seed < 2**63:
        raise ValueError(f"a seed is from 0 to 2^63 - 1, not {seed}")
    if start < 0 or start + count > 2**62:
        raise ValueError(f"an index is from 0 to 2^62, not {start}")
    if not 0 <= count <= MOST_ROWS:
        raise ValueError(f"a slice has at most {MOST_ROWS} rows, not {count}; ask for several")


@cache
def _recipes() -> tuple[Menu, Integers]:
    shares = table({number: RECIPES[category].share for number, category in enumerate(_CATEGORIES)})
    return menu([RECIPES[category] for category in _CATEGORIES]), shares


@cache
def _row_key(seed: int) -> int:
    return derive(seed, _ROWS)


def _rows(seed: int, block: int, indices: Integers, side: Side = Side.BAD) -> tuple[pa.RecordBatch, Integers]:
    """Rows of one block, and the number of the defect of each in the stock, or -1."""
    stock = stock_of(seed, block)
    tables, shares = _recipes()
    keys = keys_of(_row_key(seed), indices)
    categories = shares[byte(lane(keys, _LANE_CATEGORY), 0)]
    faults = stock.faults
    numbers = faults.drawn(categories, lane(keys, _LANE_DEFECT))
    change = lane(keys, _LANE_CHANGE)
    # How a document of N9 is made not canonical: 0 whitespace before, 1 members, 2 a number, 3 whitespace after.
    changed = np.where(categories == _NOT_CANONICAL, byte(change, 0) & 3, -1)
    drafts = draw(stock, tables, categories, keys, keys, faults.needs(numbers, changed == 1))
    _change(drafts, changed, change)
    documents, codes = write_documents(stock, drafts, faults.plants(stock.defect_start, numbers, side))
    negative = numbers >= 0
    if side is Side.BAD:
        documents = _encoded(stock, documents, numbers)
    codes = np.where(negative, faults.reasons[numbers], codes)
    canonical = pc.if_else(pa.array(negative), pa.scalar(None, pa.binary()), write_canonical(stock, drafts))
    columns = [
        pa.array(indices),
        _words([category.value for category in _CATEGORIES], categories),
        documents,
        canonical,
        pa.array(np.asarray(PROFILES_OF_CODE, dtype=np.int8)[codes]),
        _words(TEXT_OF_CODE, codes),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), numbers


def _words(words: list[str] | tuple[str | None, ...], numbers: Integers) -> pa.StringArray:
    return pa.array(words, pa.string()).take(pa.array(numbers))


def _change(drafts: Drafts, changed: Integers, draws: Words) -> None:
    forms = 1 + below(draws, FORMS - 1)
    drafts.lead = np.where(changed == 0, forms, drafts.lead)
    drafts.trail = np.where(changed == 3, forms, drafts.trail)
    drafts.ordering = np.where(changed == 1, 2, drafts.ordering)
    at = (drafts.starts[:-1] + drafts.planted)[changed == 2]
    # No spelling of a lexeme of the segment `SPELLED` is canonical but the first.
    drafts.value_spelling[at] = 1 + byte(draws[changed == 2], 1) % 3


def _encoded(stock: Stock, documents: pa.BinaryArray, numbers: Integers) -> pa.BinaryArray:
    """The same documents, those with a defect of their encoding in that encoding."""
    mask = stock.faults.places[numbers] == DefectPlace.ENCODING
    places = np.flatnonzero(mask)
    if len(places) == 0:
        return documents
    made = []
    for place in places.tolist():
        defect = stock.defects[numbers[place]]
        made.append(defect.bad + documents[place].as_py().decode("ascii").encode(defect.codec))
    return pc.replace_with_mask(documents, pa.array(mask), pa.array(made, pa.binary()))
