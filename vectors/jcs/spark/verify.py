"""`holdfast vectors verify`: one SDK over all rows, and what that shows. This is the driver's side; see `judge`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.vectors.jcs.frames import Answered, Exchange, StartError, Status
from holdfast.vectors.jcs.measures import Reached
from holdfast.vectors.jcs.spark.blocks import Construct, block_count, block_of, block_rows, leaf, regrouped, root
from holdfast.vectors.jcs.spark.generate import split, stream_version, whole_files
from holdfast.vectors.jcs.spark.judge import ANSWER_SCHEMA, Command, Judge, of_files, of_opening, unpacked
from holdfast.vectors.jcs.spark.manifest import KitFaultError, OutputError
from holdfast.vectors.jcs.spark.results import Counterexample, Opened, Result, Source, Stored, VerifyRequest
from holdfast.vectors.jcs.spark.session import Listener, silent, watched
from holdfast.vectors.jcs.spark.shrink import Shrinker, Shrunk
from holdfast.vectors.jcs.spark.storage import StorageError, Store
from holdfast.vectors.jcs.spark.tally import CATEGORIES, CELLS, Meaning, Row, chained, disagreement, summed, table
from holdfast.vectors.taxonomy import Category, Profile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
from holdfast.vectors.jcs.spark.kinds import DiffKind, kinds

# Which clause of the contract a departing row is about, so that a finding can be looked up in its source.
# Rows of the opening name their clause themselves, and that of a generated row is its category's. Where bytes are
# wrong, it follows from what came out otherwise: a number, a string, or the order of members.

# The clauses that are about one kind of thing, and the clause where another one came out otherwise.
_OF_KIND = {DiffKind.NUMBER: "JCS-NUM-03", DiffKind.STRING: "JCS-STR-04", DiffKind.ORDER: "JCS-ORD-05"}
_KIND_OF = {"NUM": DiffKind.NUMBER, "STR": DiffKind.STRING, "SUR": DiffKind.STRING, "ORD": DiffKind.ORDER}


def clause_of(own: str, expected: Answered, answered: Answered) -> str:
    """The clause that a departing row is about, whose `own` is that of its document."""
    if expected.status is Status.CANONICAL and answered.status is Status.CANONICAL:
        found = kinds(expected.body, answered.body)
        if _KIND_OF.get(own.split("-")[1]) not in found:
            return next((_OF_KIND[kind] for kind in _OF_KIND if kind in found), own)
    return own


_ANSWERS = "answers"
# What Spark itself puts beside the answers.
_SPARKS_OWN = ("_SUCCESS", "._SUCCESS.crc", "_temporary")
# What a run wrote carries its token: two runs of one name would otherwise read each other's answers.
_WRITTEN_SCHEMA = f"{ANSWER_SCHEMA}, run string"
# At most this number of blocks of stored rows is generated again. Each takes the time of some ten thousand rows.
SAMPLED_BLOCKS = 4
# A small document that takes longer than this to answer is a hang as far as shrinking is concerned.
_SHRINK_DEADLINE_S = 2.0


def verify(spark: SparkSession, request: VerifyRequest, out: str, *, listener: Listener = silent) -> Result:
    """Run the SDK over all rows; mismatches go to `out`/answers/kind=mismatch as Parquet.

    Raises OutputError when stored rows are not what their manifest says or another run writes to `out` as well,
    StorageError when `out` cannot be used, KitFaultError when the table does not add up.
    """
    from pyspark.sql.functions import lit

    began = time.monotonic()
    _expectations_are_ours(request.source)
    store = Store(spark, out)
    _make_room(store)
    token = secrets.token_hex(16)
    frame = _judged(spark, request).withColumn("run", lit(token))
    title = f"verifying {request.target.name}"
    where = store.at(_ANSWERS)
    begun = _opening(spark, request)
    mode = "overwrite"
    if begun is not None:
        first = begun.withColumn("run", lit(token))
        said_first = f"{title}, the opening"
        watched(spark, said_first, lambda: first.write.mode("overwrite").partitionBy("kind").parquet(where), listener)
        mode = "append"
    watched(spark, title, lambda: frame.write.mode(mode).partitionBy("kind").parquet(where), listener)
    said = spark.read.schema(_WRITTEN_SCHEMA).parquet(where).filter("kind != 'mismatch'").collect()
    # Each task writes a row, so that no row at all means that they were removed.
    if not said or any(row["run"] != token for row in said):
        raise OutputError(f"{store.uri}: another run writes there at the same time; name another --out")
    failures = [row for row in said if row["kind"] == "failed"]
    blocks = [row for row in said if row["kind"] == "block"]
    shortest = [row for row in said if row["kind"] == "shortest"]
    restarted = [row for row in said if row["kind"] == "restarted"]
    cells, leaves, missing, left_out = _counted(blocks, request)
    rows = table(cells)
    _same_rows(request.source, leaves, None if left_out else rows)
    pieces = [row for row in said if row["kind"] == "opening"]
    opened = _opened(request, pieces)
    reached = Reached()
    for row in said:
        if row["kind"] == "reached":
            reached.add(bytes(row["answer"]))
    everything = rows if opened is None else summed(rows, opened.rows)
    in_order = [bytes(row["answer"]) for part in (pieces, blocks) for row in sorted(part, key=lambda row: row["block"])]
    whole = not missing and (opened is None or not opened.missing)
    result = Result(
        target=request.target,
        profile=request.profile,
        stream=stream_version(),
        seed=request.source.seed,
        count=request.source.count,
        root=root(leaves) if not missing and leaves is not None else None,
        generated=rows,
        missing=missing,
        counterexamples=tuple(_counterexamples(request, everything, shortest)),
        mismatches=f"{where}/kind=mismatch",
        failure=failures[0]["reason"] if failures else None,
        seconds=time.monotonic() - began,
        restarts=sum(row["rows"] for row in restarted),
        restarted=restarted[0]["reason"] if restarted else "",
        opened=opened,
        reached=reached.table(),
        answers={one: digest for one, digest in chained(in_order).items() if whole and one in request.categories},
        categories=request.categories,
        left_out=left_out,
    )
    _adds_up(result)
    return result


def _make_room(store: Store) -> None:
    """That the answers of an earlier run, and nothing else, are in their place. Raises StorageError."""
    store.make()
    alien = [name for name in store.names(_ANSWERS) if not name.startswith("kind=") and name not in _SPARKS_OWN]
    if alien:
        raise StorageError(
            f"{store.at(_ANSWERS)}: expected answers of an earlier run or nothing, found {alien[0]!r}, which is left "
            "alone: name another --out"
        )


def _judged(spark: SparkSession, request: VerifyRequest) -> DataFrame:
    source = request.source
    judge = partial(Judge, request.target.command, request.profile, request.kept, only=request.categories)
    if isinstance(source, Stored):
        parts = source.manifest.parts
        files = source.folder.files_here([part.path for part in parts])
        if files is not None:
            # Through the JVM every row would be taken apart and put together again on its way to the worker.
            return spark.range(0, len(files), 1, len(files)).mapInArrow(
                judge(partial(of_files, files=files, count=source.count)), ANSWER_SCHEMA
            )
        largest = max((part.size for part in parts), default=0)
        frame = whole_files(spark, source.folder, [part.path for part in parts], largest)
        return frame.mapInArrow(judge(partial(regrouped, count=source.count)), ANSWER_SCHEMA)
    work = split(spark, 0, block_count(source.count), request.partitions)
    made = Construct(source.seed, source.count, work.units)
    return work.range(spark).mapInArrow(judge(made.blocks), ANSWER_SCHEMA)


def _opening(spark: SparkSession, request: VerifyRequest) -> DataFrame | None:
    """The judged rows of the opening, None without one. A process of the runner for each core, and no more."""
    opening = request.opening
    if opening is None or not opening.slices:
        return None
    source = partial(of_opening, opening=opening)
    judge = Judge(request.target.command, request.profile, request.kept, source, opens=True, only=request.categories)
    partitions = min(opening.slices, request.partitions or spark.sparkContext.defaultParallelism)
    return spark.range(0, opening.slices, 1, partitions).mapInArrow(judge, ANSWER_SCHEMA)


def _opened(request: VerifyRequest, pieces: Sequence[Any]) -> Opened | None:
    """The counts of the opening, each slice once."""
    opening = request.opening
    if opening is None:
        return None
    numbers = [row["block"] for row in pieces]
    if len(set(numbers)) < len(numbers):
        raise OutputError("a slice of the opening was judged twice; the counts would be wrong. Run it again")
    cells = np.zeros(CELLS, dtype=np.int64)
    asked = sum(unpacked(bytes(row["cells"]), cells) for row in pieces)
    held = asked if request.categories == CATEGORIES else sum(row["rows"] for row in pieces)
    leaves = {row["block"]: bytes(row["leaf"]) for row in pieces}
    whole = set(leaves) == set(range(opening.slices)) and held == opening.count
    digest = root([leaves[number] for number in range(opening.slices)]) if whole else None
    return Opened(opening.count, digest, table(cells), opening.count - held, held - asked)


def _counted(blocks: Sequence[Any], request: VerifyRequest) -> tuple[Any, list[bytes] | None, int, int]:
    """The cells of all blocks, their digests in order (None if one is missing), how many rows are missing, and how many
    were left out."""
    count, narrowed = request.source.count, request.categories != CATEGORIES
    cells = np.zeros(CELLS, dtype=np.int64)
    leaves: dict[int, bytes] = {}
    seen = left_out = 0
    for row in blocks:
        number = row["block"]
        if number in leaves:
            raise OutputError(f"block {number} was judged twice; the counts would be wrong. Run it again")
        asked = unpacked(bytes(row["cells"]), cells)
        held = row["rows"] if narrowed else asked
        if not held == row["rows"] == block_rows(number, count):
            raise OutputError(f"block {number} has {block_rows(number, count)} rows, {held} were judged; run it again")
        leaves[number] = bytes(row["leaf"])
        seen += held
        left_out += held - asked
    due = range(block_count(count))
    ordered = [leaves[number] for number in due] if all(number in leaves for number in due) else None
    return cells, ordered, count - seen, left_out


def _expectations_are_ours(source: Source) -> None:
    """That stored rows are of this stream and their seed, shown by making some blocks again, whichever they may be.

    Rows carry what is expected of them, and a manifest that fits other rows is easily written. Their author must
    not choose what an SDK is held against. Of many blocks that were forged one is found here, of few perhaps none:
    only rows that are constructed while they are needed are proven to be ours.
    """
    if not isinstance(source, Stored):
        return
    manifest = source.manifest
    if manifest.stream != stream_version():
        raise OutputError(
            f"{source.folder.uri}: expected rows of stream {stream_version()}, which this holdfast makes, got stream "
            f"{manifest.stream}; generate again"
        )
    blocks = range(block_count(manifest.count))
    listed = [one for part in manifest.parts for one in part.leaves]
    # In order, because neighbours are made from one stock.
    for number in sorted(secrets.SystemRandom().sample(blocks, min(len(blocks), SAMPLED_BLOCKS))):
        if leaf(block_of(manifest.seed, number, manifest.count).rows).hex() != listed[number]:
            raise OutputError(
                f"{source.folder.uri}: block {number} is not what seed {manifest.seed} gives; the folder is damaged, "
                "or of something else: remove it and generate again"
            )


def _same_rows(source: Source, leaves: list[bytes] | None, rows: Sequence[Row] | None) -> None:
    """`rows` is None where some were not asked."""
    if leaves is None or not isinstance(source, Stored):
        return
    found = {row.category.value: row.rows for row in rows or () if row.profile is Profile.CORE and row.rows}
    if rows is not None and found != {name: number for name, number in source.manifest.categories.items() if number}:
        raise OutputError(
            f"{source.folder.uri}: the manifest counts other rows by category than there are; the folder is damaged: "
            "remove it and generate again"
        )
    listed = [one for part in source.manifest.parts for one in part.leaves]
    differing = [number for number, (a, b) in enumerate(zip(leaves, listed, strict=True)) if a.hex() != b]
    if differing or root(leaves) != source.manifest.root:
        raise OutputError(
            f"{source.folder.uri}: the rows of block {differing[0] if differing else '?'} are not those of the "
            "manifest; the folder is damaged: remove it and generate again"
        )


def _adds_up(result: Result) -> None:
    """Every row stands in every profile's table exactly once, or is missing. Raises KitFaultError."""
    for profile in Profile:
        shown = sum(row.rows for row in result.rows if row.profile is profile)
        if shown + result.lost != result.asked:
            raise KitFaultError(
                f"expected {result.asked} rows in the table of {profile.value}, got {shown} and {result.lost} "
                "missing; this is a fault of the kit, please report it"
            )


def _counterexamples(request: VerifyRequest, rows: Sequence[Row], shortest: Sequence[Any]) -> Iterator[Counterexample]:
    """One for each cell, the open ones shrunk first; all from the shortest row over all partitions."""
    best: dict[tuple[Category, Meaning], Any] = {}
    for row in shortest:
        cell = (Category(row["category"]), Meaning(row["finding"]))
        if cell not in best or (len(row["document"]), row["index"]) < (
            len(best[cell]["document"]),
            best[cell]["index"],
        ):
            best[cell] = row
    counts = {row.category: row.counts for row in rows if row.profile is request.profile}
    order = sorted(best, key=lambda cell: (list(Meaning).index(cell[1]), list(Category).index(cell[0])))
    with _shrinker(request) as shrinker:
        for category, found in order:
            row = best[category, found]
            document = bytes(row["document"])
            expected = expected_of(row, request.profile)
            answered = Answered(Status(row["status"]), bytes(row["answer"] or b""))
            assert disagreement(expected, answered) is found
            clause = clause_of(row["clause"] or category.clause, expected, answered)
            # What crashes or hangs costs seconds for each attempt; the row as it is has to do.
            shrunk = None if found is Meaning.NO_VERDICT else _shrunk(shrinker, document, expected, category)
            if shrunk is not None:
                document, expected, answered = shrunk.document, shrunk.expected, shrunk.answered
            yield Counterexample(
                category=category,
                finding=found,
                rows=counts[category][found],
                index=row["index"],
                name=row["name"],
                clause=clause,
                document=document,
                expected=expected,
                answered=answered,
                shrunk=shrunk is not None,
            )


def _shrunk(shrinker: Shrinker, document: bytes, expected: Answered, category: Category) -> Shrunk | None:
    try:
        return shrinker.shrink(document, expected, category)
    except StartError:
        # The runner is gone since; what it answered stands.
        return None


def expected_of(row: Mapping[str, Any], profile: Profile) -> Answered:
    """What the construction expects of a row in `profile`; a refusal has the contract's reason as its body."""
    if row["refused_by"] & profile.bit:
        return Answered(Status.REFUSED, str(row["reason"]).encode())
    return Answered(Status.CANONICAL, bytes(row["canonical"]))


@contextmanager
def _shrinker(request: VerifyRequest) -> Iterator[Shrinker]:
    def dialogue(command: Command) -> Exchange:
        return Exchange(command.words, **command.settings | {"deadline": min(command.deadline, _SHRINK_DEADLINE_S)})

    with dialogue(request.reference) as oracle, dialogue(request.target.command) as sdk:
        yield Shrinker(oracle, sdk, until=time.monotonic() + request.shrink_s)
