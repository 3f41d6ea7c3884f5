"""The jobs on a real session: the same rows however they are split, and no row that is not accounted for."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from holdfast.conformance.cli.vectors.evidence import exit_of_result, parity_json, record
from holdfast.conformance.cli.vectors.parity import describe
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import Run, read_evidence
from holdfast.specs import load_contract, schema
from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.es6.job import Comparison, environment, run
from holdfast.vectors.jcs.es6.stream import ORIGIN, StreamBrokenError, StreamLostError, walk
from holdfast.vectors.jcs.es6.transport import Collector
from holdfast.vectors.jcs.measures import Measure
from holdfast.vectors.jcs.opening import Opening, opening_of
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS, block_count, leaf, partition_digest, root
from holdfast.vectors.jcs.spark.fingerprints import check_fingerprints
from holdfast.vectors.jcs.spark.generate import GenerateRequest as Rows
from holdfast.vectors.jcs.spark.generate import Mode, generate
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import MANIFEST, OutputError, read_manifest
from holdfast.vectors.jcs.spark.numbers import verify_numbers
from holdfast.vectors.jcs.spark.parity import NotFound, Parity, page
from holdfast.vectors.jcs.spark.results import Generated, Result, Stored, Target, VerifyRequest
from holdfast.vectors.jcs.spark.session import SparkSite, opened, watched
from holdfast.vectors.jcs.spark.storage import StorageError, Store
from holdfast.vectors.jcs.spark.tally import Meaning
from holdfast.vectors.jcs.spark.verify import verify
from holdfast.vectors.taxonomy import Category, Profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.vectors.jcs.spark.session import Snapshot

pytestmark = pytest.mark.xdist_group("spark")

COUNT = BLOCK_ROWS + 500
SEED = 11
FAKE = str(Path(__file__).parents[1] / "ladder" / "runner.py")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with opened(SparkSite(scratch=tmp_path_factory.mktemp("spark"), master="local[2]")) as session:
        yield session


def _reference(profile: Profile = Profile.CORE) -> Command:
    return Command(
        (sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", profile.value), 20, 60
    )


def _verified(spark: SparkSession, out: Path, command: Command, *, count: int = 3000, **more: Any) -> Result:
    target = Target("fake", "Python", "json", "1", command)
    profile = more.pop("profile", Profile.CORE)
    request = VerifyRequest(
        target, more.pop("source", Generated(SEED, count)), profile, _reference(profile), shrink_s=1, **more
    )
    return verify(spark, request, str(out))


def recorded(result: Result, folder: Path, status: Exit) -> Run:
    """The whole evidence of a result, which ends with that status."""
    assert record(result, folder / "run.jsonl") is status
    run = read_evidence(folder / "run.jsonl")
    assert run.defects == ()
    return run


def _fake(mode: str) -> Command:
    return Command((sys.executable, FAKE, mode), 20, 60)


@pytest.fixture(scope="module")
def generated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "rows"
    generate(spark, Rows(SEED, COUNT, partitions=2), str(folder))
    return folder


@pytest.fixture
def folder(generated: Path, tmp_path: Path) -> Path:
    """A copy of the rows that a test may damage."""
    return shutil.copytree(generated, tmp_path / "rows")


@pytest.fixture(scope="module")
def constructed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A naive SDK over rows that are made where they are read."""
    return _verified(spark, tmp_path_factory.mktemp("constructed"), _fake("naive"), count=COUNT, partitions=2)


@pytest.fixture(scope="module")
def naive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same SDK over a few rows."""
    return _verified(spark, tmp_path_factory.mktemp("naive"), _fake("naive"))


def test_the_root_of_two_partitions_is_that_of_the_rows_made_alone(
    spark: SparkSession, generated: Path, tmp_path: Path
) -> None:
    alone = root([leaf(batch(SEED, 0, BLOCK_ROWS)), leaf(batch(SEED, BLOCK_ROWS, 500))])
    once = read_manifest(Store(spark, str(generated)))
    assert once.root == alone
    assert len(once.parts) == 2
    assert set(once.categories) == {category.value for category in Category}
    other = generate(spark, Rows(SEED + 1, COUNT, partitions=1), str(tmp_path / "other"))
    assert (len(other.parts), other.root == alone) == (1, False)


def test_the_manifest_fits_its_published_schema(generated: Path) -> None:
    raw = json.loads((generated / MANIFEST).read_bytes())
    assert schema.explain(schema.published_validator("vectors-manifest"), raw) is None
    assert sum(raw["categories"].values()) == COUNT


def test_what_was_interrupted_is_refused_and_can_be_finished(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    whole = generate(spark, Rows(SEED, 700), str(folder))
    (folder / MANIFEST).unlink()
    with pytest.raises(OutputError, match="half-written"):
        read_manifest(Store(spark, str(folder)))
    with pytest.raises(OutputError, match="--resume"):
        generate(spark, Rows(SEED, 700), str(folder))
    assert generate(spark, Rows(SEED, 700), str(folder), mode=Mode.RESUME).root == whole.root
    (folder / MANIFEST).unlink()
    # Files of a group without its record are of a job that never ended.
    next(folder.glob("_group-*.json")).unlink()
    next(folder.glob("rows-*/*.parquet")).unlink()
    assert generate(spark, Rows(SEED, 700), str(folder), mode=Mode.RESUME).root == whole.root
    with pytest.raises(OutputError, match="seed 11, count 700"):
        generate(spark, Rows(SEED, 701), str(folder), mode=Mode.RESUME)


def test_a_folder_with_other_files_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="other files"):
        generate(spark, Rows(SEED, 10), str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.txt"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: next(folder.glob("rows-*/*.parquet")).unlink(), "it is missing"),
        # The checksum beside it is that of the other one.
        (lambda folder: (folder / MANIFEST).write_text("{}"), "damaged"),
    ],
)
def test_a_damaged_folder_is_seen_before_anything_is_verified_and_is_no_matter_of_usage(
    spark: SparkSession, folder: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(folder)
    with pytest.raises(OutputError, match=said):
        read_manifest(Store(spark, str(folder)))


@pytest.mark.parametrize("fits", [False, True], ids=["the rows alone", "the manifest too"])
def test_other_rows_than_those_of_the_seed_are_seen_while_they_are_verified(
    spark: SparkSession, folder: Path, fits: bool
) -> None:
    raw = json.loads((folder / MANIFEST).read_bytes())
    part = raw["parts"][0]
    rows = parquet.read_table(folder / part["path"])
    easy = pa.array([b"[]"] * len(rows), pa.binary())
    rows = rows.set_column(2, "document", easy)
    if fits:
        rows = rows.set_column(3, "canonical", easy).set_column(4, "refused_by", pa.array([0] * len(rows), pa.int8()))
        rows = rows.set_column(5, "reason", pa.nulls(len(rows), pa.string())).combine_chunks()
        digest = leaf(rows.to_batches()[0])
        part |= {"sha256": partition_digest([digest]), "blocks": [digest.hex()]}
        raw["root"] = root([digest, bytes.fromhex(raw["parts"][1]["blocks"][0])])
    parquet.write_table(rows, folder / part["path"])
    part["bytes"] = (folder / part["path"]).stat().st_size
    _refused(spark, folder, raw, "not what seed" if fits else "not those of the manifest")


def _refused(spark: SparkSession, folder: Path, manifest: dict[str, Any], said: str) -> None:
    """The rows with another manifest, and no checksum of Hadoop's anywhere, are not verified."""
    (folder / MANIFEST).write_text(json.dumps(manifest))
    for file in folder.rglob(".*.crc"):
        file.unlink()
    store = Store(spark, str(folder))
    with pytest.raises(OutputError, match=said):
        _verified(spark, folder.with_name("out"), _reference(), source=Stored(store, read_manifest(store)))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"count": BLOCK_ROWS}, "contradicts itself"),
        ({"count": COUNT - 1}, "contradicts itself"),
        ({"block_rows": 17}, "blocks of 16384 rows"),
        ({"root": f"sha256:{'0' * 64}"}, "expected the root"),
        ({"categories": {"P1": 1}}, "by category"),
        ({"categories": {"P1": COUNT}}, "counts other rows by category"),
        ({"seed": SEED + 1}, f"not what seed {SEED + 1} gives"),
        ({"stream": "0"}, "expected rows of stream"),
        ({"sha256": f"sha256:{'0' * 64}"}, "expected the digest of"),
        ({"path": "../rows/rows-00000000/x"}, "path"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_edited_manifest_is_no_manifest(spark: SparkSession, folder: Path, edit: dict[str, Any], said: str) -> None:
    raw = json.loads((folder / MANIFEST).read_bytes())
    # What a manifest has not itself is of its first part.
    (raw if edit.keys() <= raw.keys() else raw["parts"][0]).update(edit)
    _refused(spark, folder, raw, said)


def test_answers_that_no_run_wrote_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    thesis = tmp_path / "out" / "answers" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("mine")
    with pytest.raises(StorageError, match=r"found 'thesis\.txt', which is left alone"):
        _verified(spark, tmp_path / "out", _reference())
    assert thesis.read_text() == "mine"


def test_a_place_where_no_folder_can_be_is_said_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="name another folder"):
        _verified(spark, tmp_path / "file" / "out", _reference())


@pytest.mark.parametrize("profile", Profile)
def test_the_reference_agrees_on_every_row_in_its_own_profile(
    spark: SparkSession, tmp_path: Path, profile: Profile
) -> None:
    result = _verified(spark, tmp_path / "out", _reference(profile), profile=profile)
    assert result.total(Meaning.AGREE) == result.count == 3000
    assert result.counterexamples == ()
    run = recorded(result, tmp_path, Exit.OK)
    assert {line.verdict for line in run.verdicts} == {"conforms"}


@pytest.mark.parametrize("on_a_cluster", [False, True], ids=["here", "on a cluster"])
def test_stored_rows_and_constructed_ones_give_the_same_table(
    spark: SparkSession,
    generated: Path,
    constructed: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_a_cluster: bool,
) -> None:
    if on_a_cluster:
        # There the files come through the JVM.
        monkeypatch.setattr(Store, "files_here", lambda *_: None)
    store = Store(spark, str(generated))
    stored = _verified(spark, tmp_path / "a", _fake("naive"), source=Stored(store, read_manifest(store)), partitions=1)
    assert stored.rows == constructed.rows
    assert stored.root == constructed.root == read_manifest(store).root
    assert [(found.category, found.finding, found.index) for found in stored.counterexamples] == [
        (found.category, found.finding, found.index) for found in constructed.counterexamples
    ]


def test_a_naive_sdk_departs_and_the_evidence_says_where(spark: SparkSession, naive: Result, tmp_path: Path) -> None:
    assert naive.row(Category.DUPLICATE_NAMES).counts[Meaning.ACCEPTED] > 0
    assert naive.row(Category.NUMBER_NOTATION).counts[Meaning.WRONG_BYTES] > 0
    smallest = {(found.category, found.finding): found for found in naive.counterexamples}
    assert smallest[Category.DUPLICATE_NAMES, Meaning.ACCEPTED].rows > 0
    run = recorded(naive, tmp_path, Exit.FAIL_OPEN)
    assert run.vectors[0].root == naive.root
    assert run.vectors[0].count == 3000
    verdicts = {line.case: line.verdict for line in run.verdicts}
    assert verdicts["vectors/core/N1"] == "fail_open"
    kept = spark.read.parquet(naive.mismatches)
    assert kept.filter("category = 'N1'").count() == naive.row(Category.DUPLICATE_NAMES).counts[Meaning.ACCEPTED]


def _few_rungs(*begins: str) -> Opening:
    whole = opening_of(SEED)
    return replace(whole, rungs=tuple(name for name in whole.rungs if name.startswith(begins)))


def test_the_opening_finds_what_no_generated_row_shows_and_names_clause_and_section(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = _verified(spark, tmp_path / "out", _fake("edge-63"), opening=_few_rungs("integer-2^63"), count=400)
    assert sum(row.counts[Meaning.WRONG_BYTES] for row in result.generated) == 0
    assert result.row(Category.NUMBER_INTEGERS).counts[Meaning.WRONG_BYTES] > 0
    run = recorded(result, tmp_path, Exit.NON_CONFORMING)
    found = run.vectors[0].counterexamples[0]
    assert (found.clause, found.section) == ("JCS-NUM-06", load_contract("jcs").clauses["JCS-NUM-06"].section)
    opening = run.vectors[0].opening
    assert opening is not None
    assert opening.count == result.asked - 400
    assert [line.clauses for line in run.verdicts if line.case == "vectors/core/P5"] == [("JCS-NUM-06",)]
    path = tmp_path / "run.jsonl"
    path.write_bytes(path.read_bytes().replace(f'"count":{opening.count},'.encode(), b'"count":1,'))
    assert any("the opening's table" in str(defect) for defect in read_evidence(path).defects)


def test_a_verdict_says_how_far_it_reached_and_a_limit_of_depth_is_no_departure(
    spark: SparkSession, tmp_path: Path
) -> None:
    opening = _few_rungs("depth-first-", "depth-bare-", "members-1001-")
    result = _verified(spark, tmp_path / "out", _fake("depth-limit"), opening=opening, count=400)
    assert result.total(Meaning.AGREE) == result.asked
    assert result.reached[Category.SIZE][Measure.DEPTH] == opening.floor
    assert result.reached[Category.SIZE][Measure.MEMBERS] == 1001
    assert record(result, tmp_path / "run.jsonl") is Exit.OK
    right = _verified(spark, tmp_path / "right", _reference(), opening=opening, count=400)
    assert right.reached[Category.SIZE][Measure.DEPTH] == 100_000
    assert right.opened is not None
    assert result.opened is not None
    assert right.opened.digest == result.opened.digest


@pytest.mark.sweep
def test_what_crashes_the_runner_costs_only_its_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    naive = _verified(spark, tmp_path / "a", _fake("naive"), count=2000)
    crashing = _verified(spark, tmp_path / "b", _fake("crash"), count=2000)
    rows = batch(SEED, 0, 2000)
    deadly = sum(b"]]]" in document for document in rows.column("document").to_pylist())
    assert 0 < crashing.total(Meaning.NO_VERDICT) <= deadly
    assert crashing.missing == 0
    for before, after in zip(naive.own(), crashing.own(), strict=True):
        gone = after.counts[Meaning.NO_VERDICT]
        assert after.rows == before.rows
        assert 0 <= before.counts[Meaning.AGREE] - after.counts[Meaning.AGREE] <= gone
    assert exit_of_result(crashing) is Exit.FAIL_OPEN


def test_a_runner_that_answers_everything_and_dies_now_and_then_does_not_pass(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = _verified(spark, tmp_path / "out", _fake("tired"), count=30)
    assert result.total(Meaning.AGREE) == 30
    assert result.restarts > 0
    assert "exited with status 5" in result.restarted
    run = recorded(result, tmp_path, Exit.INCOMPLETE)
    assert {line.verdict for line in run.verdicts} == {"no_verdict"}
    assert {line.silence for line in run.verdicts} == {"crash"}
    numbers = verify_numbers(spark, 25, _fake("tired"))
    assert numbers.counts[Meaning.AGREE] == 25
    assert numbers.restarts > 0


def test_a_runner_that_aborts_when_its_input_ends_does_not_pass(spark: SparkSession, tmp_path: Path) -> None:
    # The first 138 rows of the seed have all categories.
    result = _verified(spark, tmp_path / "out", _fake("abort-at-end"), count=200, partitions=1)
    assert result.total(Meaning.AGREE) == 200
    assert result.without_rows == ()
    assert result.restarts == 1
    assert "SIGABRT at the end of its input" in result.restarted
    assert exit_of_result(result) is Exit.INCOMPLETE


@pytest.mark.parametrize("other", ["right", "nothing"])
def test_answers_of_another_run_in_the_same_place_are_not_taken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    _verified(spark, tmp_path / "right", _reference(), count=200)
    assert exit_of_result(_verified(spark, tmp_path / "out", _reference(), count=200)) is Exit.OK

    def overtaken(*arguments: Any) -> None:
        watched(*arguments)
        answers = tmp_path / "out" / "answers"
        shutil.rmtree(answers)
        if other == "right":
            shutil.copytree(tmp_path / "right" / "answers", answers)
        else:
            answers.mkdir()

    monkeypatch.setattr("holdfast.vectors.jcs.spark.verify.watched", overtaken)
    with pytest.raises(OutputError, match="another run writes there"):
        _verified(spark, tmp_path / "out", _fake("naive"), count=200)


def test_a_runner_that_never_answers_is_no_verdict_everywhere_and_exit_13(spark: SparkSession, tmp_path: Path) -> None:
    result = _verified(spark, tmp_path / "out", _fake("dead"), count=60)
    assert result.total(Meaning.NO_VERDICT) == 60
    assert exit_of_result(result) is Exit.ADAPTER
    gone = _verified(spark, tmp_path / "gone", Command((str(tmp_path / "nothing"),), 5, 5), count=60)
    assert gone.missing == 60
    assert gone.root is None
    assert "does not exist" in (gone.failure or "")
    assert exit_of_result(gone) is Exit.ADAPTER


def test_parity_puts_everybody_in_one_page_and_one_published_json(
    spark: SparkSession, naive: Result, tmp_path: Path
) -> None:
    reference = Target("reference", "Python", "holdfast reference", "1", _reference())
    core = VerifyRequest(reference, Generated(SEED, 3000), Profile.CORE, _reference(), shrink_s=5)
    results = (verify(spark, core, str(tmp_path / "r")), naive)
    found = Parity(results, (NotFound("zig-json", "Zig", "std.json", "no <zig> here"),))
    assert found.faults == ()
    assert [one.target.name for one in found.departing] == ["fake"]
    raw = parity_json(found, Exit.OK)
    assert schema.explain(schema.published_validator("vectors-parity"), raw) is None
    text = page(found, describe)
    assert text.count("<svg") == len(Profile)
    assert "no &lt;zig&gt; here" in text
    assert "http" not in text.replace("http-equiv", "")
    with pytest.raises(ValueError, match="same rows"):
        Parity((results[0], _verified(spark, tmp_path / "o", _reference(), count=40)), ())


def test_the_number_stream_goes_through_an_sdk(spark: SparkSession) -> None:
    good = verify_numbers(spark, 3000, _reference())
    assert good.counts[Meaning.AGREE] == 3000
    naive = verify_numbers(spark, 3000, _fake("naive"))
    assert naive.missing == 0
    assert naive.counts[Meaning.WRONG_BYTES] > 0
    assert naive.first[Meaning.WRONG_BYTES].document.startswith(b"[")


def test_fingerprints_are_compared_over_all_partitions(spark: SparkSession) -> None:
    families = check_fingerprints(spark, SEED, 2_000)
    assert sum(family.rows for family in families) == 2_000
    assert all(family.sound for family in families)


def test_progress_is_told_of_tasks(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[Snapshot] = []
    generate(spark, Rows(SEED, 10), str(tmp_path / "rows"), listener=seen.append)
    assert {snapshot.title.split()[0] for snapshot in seen} == {"writing", "reading"}
    assert all(snapshot.done <= snapshot.total for snapshot in seen)


def test_every_block_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    result = _verified(spark, tmp_path / "out", _reference(), count=40)
    said = spark.read.parquet(os.path.dirname(result.mismatches)).filter("kind = 'block'")
    assert said.count() == block_count(40)


# The digest of the stream of numbers


def test_several_partitions_match_the_published_digest(spark: SparkSession) -> None:
    known = tuple(walk(ORIGIN, blocks) for blocks in (1, 500, 1_500, 1_900))
    seen: list[Snapshot] = []
    result = run(10_000, spark=spark, known=known, progress=seen.append)
    assert (result.comparison, result.partitions) == (Comparison.MATCH, 5)
    assert result.summary()[-1] == "result: MATCH"
    assert seen


def test_lines_without_a_published_digest_are_no_match(spark: SparkSession) -> None:
    result = run(1_234, spark=spark)
    assert result.comparison is Comparison.NO_PUBLISHED_VALUE
    assert result.published is None
    assert result.summary()[-1] == "result: NO PUBLISHED VALUE"


def test_a_corrupted_checkpoint_is_an_error_not_a_match(spark: SparkSession, tmp_path: Path) -> None:
    first, second = walk(ORIGIN, 5_000), walk(ORIGIN, 10_000)
    damaged = replace(first, state=first.state[::-1])
    with pytest.raises(StreamBrokenError, match="expected partition 0 to end where partition 1 starts"):
        run(100_000, spark=spark, known=(damaged, second))
    assert run(1_000, spark=spark).comparison is Comparison.MATCH


def nowhere(_: object) -> None:
    raise ConnectionRefusedError


def test_a_worker_that_cannot_work_is_an_error_not_a_match(spark: SparkSession) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Collector, "sender", lambda *_: nowhere)
        with pytest.raises(StreamLostError, match="expected Spark to make 1 partitions"):
            run(1_000, spark=spark)


def test_java_options_of_the_user_are_kept() -> None:
    assert environment({"JDK_JAVA_OPTIONS": "-Xmx2g"})["JDK_JAVA_OPTIONS"].startswith("-Xmx2g -XX:")
    assert environment({})["JDK_JAVA_OPTIONS"].startswith("-XX:")
