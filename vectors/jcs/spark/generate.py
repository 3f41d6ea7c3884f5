"""`holdfast vectors generate`: rows by the million into Parquet, with a manifest of what was really written.

Rows are written in groups of blocks, each by one Spark job with Spark's own commit. Then the group is read back: the
digests in the manifest are of what stands in the files, not of what was meant to. A group's record makes it finished;
the manifest, written last, makes the folder complete.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import convert

from holdfast.vectors.jcs.spark.blocks import (
    BLOCK_ROWS,
    LEAF_SCHEMA,
    ROW_SCHEMA,
    STOCK_BLOCKS,
    Construct,
    Digest,
    Units,
    block_count,
    block_rows,
    partition_digest,
    root,
)
from holdfast.vectors.jcs.spark.manifest import (
    MANIFEST,
    PLAN,
    Group,
    Manifest,
    OutputError,
    Part,
    Plan,
    read_json,
    read_manifest,
    read_plan,
    write_json,
)
from holdfast.vectors.jcs.spark.session import Listener, silent, watched
from holdfast.vectors.jcs.spark.storage import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A group is what is done again after an interruption: about two million rows, more where there are many cores. A
# multiple of STOCK_BLOCKS.
_GROUP_BLOCKS = 128
# Blocks in a file at most: half a million rows, some tens of MiB.
_FILE_BLOCKS = 32
# Each core gets at least this number of stocks of a group.
_GROUP_STOCKS = 2
# A task may have a sixteenth more blocks than its even share.
_ROOM = 16
# Sizes of a unit: divisors of a stock's blocks, the largest first.
_UNIT_BLOCKS = tuple(size for size in range(STOCK_BLOCKS, 0, -1) if STOCK_BLOCKS % size == 0)
_NO_LIMIT = 2**40


@unique
class Mode(Enum):
    """What to do with a folder that holds something already."""

    FRESH = "fresh"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """Which rows, and into how many tasks at a time (None: by the number of cores)."""

    seed: int
    count: int
    partitions: int | None = None


def stream_version() -> str:
    """The version of the generated stream: rows of equal version, seed and index are equal."""
    from holdfast.vectors.jcs import construct

    return str(construct.STREAM)


@dataclass(frozen=True, slots=True)
class Split:
    """A range of blocks as Spark's range of units, in a number of partitions."""

    units: Units
    first: int
    last: int
    partitions: int

    def range(self, spark: SparkSession) -> DataFrame:
        """The units, in order."""
        return spark.range(self.first, self.last, 1, self.partitions)


def split(spark: SparkSession, first: int, blocks: int, partitions: int | None) -> Split:
    """Blocks `first` … `first + blocks - 1` for the cores there are, or in `partitions` partitions if they allow.

    `first` is a multiple of a stock's blocks.
    """
    cores = spark.sparkContext.defaultParallelism
    # As many as there are cores, or a multiple: rows cost the same everywhere, so all cores end together. No more than
    # needed, because each task of `verify` starts a runner, and some take a second to get up to speed.
    wanted = partitions or cores * -(-blocks // (cores * _FILE_BLOCKS))
    # Whole stocks, or large pieces of them, as long as the largest task hardly grows by that: a stock that is made once
    # more costs less than a block.
    even = -(-blocks // wanted)
    most = even + even // _ROOM
    size = next(size for size in _UNIT_BLOCKS if _largest(blocks, size, wanted) <= most)
    number = -(-blocks // size)
    return Split(Units(size, first + blocks), first // size, first // size + number, max(1, min(number, wanted)))


def _largest(blocks: int, size: int, partitions: int) -> int:
    """How many blocks the largest partition has, as Spark cuts a range of units of `size` blocks."""
    units = -(-blocks // size)
    bounds = [min(blocks, size * (units * number // partitions)) for number in range(partitions + 1)]
    return max(end - begin for begin, end in pairwise(bounds))


def generate(
    spark: SparkSession, request: GenerateRequest, out: str, *, mode: Mode = Mode.FRESH, listener: Listener = silent
) -> Manifest:
    """Generate the rows of `request` into folder `out`.

    Raises OutputError when the folder holds something else, is half-written (and `mode` is not RESUME), or what was
    read back is not what was asked for; StorageError when it cannot be used.
    """
    store = Store(spark, out)
    plan = _plan(spark, request, store, mode)
    if store.exists(MANIFEST):
        return read_manifest(store)
    records: list[Group] = []
    for first, blocks in plan.groups:
        record = _finished(store, first)
        if record is None:
            record = _write_group(spark, plan, store, first, blocks, listener)
        records.append(record)
    manifest = _manifest(plan, records)
    write_json(store, MANIFEST, manifest)
    return read_manifest(store)


def _plan(spark: SparkSession, request: GenerateRequest, store: Store, mode: Mode) -> Plan:
    """The plan of this folder: the one that stands there when resuming, else a new one, written down."""
    found = read_plan(store)
    if found is None:
        if not store.is_empty():
            raise OutputError(f"{store.uri}: expected an empty folder or none, found other files; name another folder")
        new = _new_plan(spark, request)
        write_json(store, PLAN, new)
        return new
    asked = (stream_version(), request.seed, request.count, BLOCK_ROWS)
    if found.asked != asked:
        raise OutputError(
            f"{store.uri} holds rows of stream {found.stream}, seed {found.seed}, count {found.count}; asked for "
            f"stream {asked[0]}, seed {request.seed}, count {request.count}: name another folder or remove it"
        )
    if mode is not Mode.RESUME:
        if store.exists(MANIFEST):
            raise OutputError(f"{store.uri} holds these rows already; read them, name another folder, or remove it")
        raise OutputError(
            f"{store.uri} is half-written: generating it was interrupted. Finish it with --resume, or remove it"
        )
    return found


def _new_plan(spark: SparkSession, request: GenerateRequest) -> Plan:
    blocks = block_count(request.count)
    size = max(_GROUP_BLOCKS, spark.sparkContext.defaultParallelism * _GROUP_STOCKS * STOCK_BLOCKS)
    groups = tuple((first, min(size, blocks - first)) for first in range(0, blocks, size))
    files = split(spark, 0, min(size, blocks), request.partitions).partitions
    return Plan(stream_version(), request.seed, request.count, BLOCK_ROWS, groups, files)


def _folder(first: int) -> str:
    return f"rows-{first:08d}"


def _record(first: int) -> str:
    return f"_group-{first:08d}.json"


def _finished(store: Store, first: int) -> Group | None:
    """The record of a group whose files are all there, None if it has to be written (again)."""
    if not store.exists(_record(first)):
        return None
    record = convert(read_json(store, _record(first)), Group)
    found = store.files(_folder(first))
    whole = all(found.get(part.path.rpartition("/")[2]) == part.size for part in record.parts)
    return record if whole else None


def _write_group(spark: SparkSession, plan: Plan, store: Store, first: int, blocks: int, listener: Listener) -> Group:
    store.remove(_record(first))
    name = f"rows {first * BLOCK_ROWS} to {min(plan.count, (first + blocks) * BLOCK_ROWS) - 1}"
    folder = _folder(first)
    work = split(spark, first, blocks, plan.files_per_group)
    frame = work.range(spark).mapInArrow(Construct(plan.seed, plan.count, work.units), ROW_SCHEMA)
    watched(spark, f"writing {name}", lambda: frame.write.mode("overwrite").parquet(store.at(folder)), listener)
    sizes = {file: size for file, size in store.files(folder).items() if file.endswith(".parquet")}
    read = whole_files(spark, store, [f"{folder}/{file}" for file in sizes], max(sizes.values(), default=0))
    digests = read.selectExpr("*", "_metadata.file_name as file").mapInArrow(Digest(plan.count), LEAF_SCHEMA)
    rows = watched(spark, f"reading back {name}", digests.collect, listener)
    record = _checked(plan, first, blocks, rows, folder, sizes)
    write_json(store, _record(first), record)
    return record


def whole_files(spark: SparkSession, store: Store, paths: Sequence[str], largest: int) -> DataFrame:
    """The rows of some files, each file one partition, in its own order. `largest` is the longest file's bytes."""
    # Spark packs files into partitions of `maxPartitionBytes`, each weighing its length and the cost of opening it,
    # and cuts longer files: with both limits at the longest file none is cut and none shares a partition.
    limit = str(min(_NO_LIMIT, max(1, largest)))
    spark.conf.set("spark.sql.files.maxPartitionBytes", limit)
    spark.conf.set("spark.sql.files.openCostInBytes", limit)
    return spark.read.schema(ROW_SCHEMA).parquet(*(store.at(path) for path in paths))


def _checked(plan: Plan, first: int, blocks: int, rows: Sequence[Any], folder: str, sizes: Mapping[str, int]) -> Group:
    """The record of a group, after holding what was read back against what was asked for. Raises OutputError."""
    found = {row["block"]: row for row in rows}
    due = range(first, first + blocks)
    if len(rows) != blocks or set(found) != set(due):
        raise OutputError(f"{folder}: expected {blocks} blocks to be read back, got {len(rows)}; generate again")
    for number in due:
        if found[number]["rows"] != block_rows(number, plan.count):
            raise OutputError(f"{folder}: block {number} has {found[number]['rows']} rows; generate again")
    categories: Counter[str] = Counter()
    for row in rows:
        categories.update(json.loads(row["categories"]))
    return Group(dict(categories), tuple(_parts([found[n] for n in due], folder, sizes)))


def _parts(rows: Sequence[Any], folder: str, sizes: Mapping[str, int]) -> Iterator[Part]:
    """The files of a group in the order of their blocks."""
    by_file: dict[str, list[Any]] = {}
    for row in rows:
        by_file.setdefault(row["file"], []).append(row)
    for file, held in by_file.items():
        leaves = [bytes(row["leaf"]) for row in held]
        yield Part(
            path=f"{folder}/{file}",
            first_block=held[0]["block"],
            rows=sum(row["rows"] for row in held),
            size=sizes[file],
            sha256=partition_digest(leaves),
            leaves=tuple(one.hex() for one in leaves),
        )


def _manifest(plan: Plan, records: Sequence[Group]) -> Manifest:
    parts = tuple(part for record in records for part in record.parts)
    categories: Counter[str] = Counter()
    for record in records:
        categories.update(record.categories)
    leaves = [bytes.fromhex(one) for part in parts for one in part.leaves]
    rows = sum(part.rows for part in parts)
    if rows != plan.count or sum(categories.values()) != plan.count or len(leaves) != block_count(plan.count):
        raise OutputError(f"expected {plan.count} rows, the files hold {rows}; remove the folder and generate again")
    return Manifest(
        plan.stream, plan.seed, plan.count, plan.block_rows, root(leaves), dict(sorted(categories.items())), parts
    )
