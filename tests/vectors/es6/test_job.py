"""The digest of the stream as a Spark job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.vectors.jcs.es6.job import Comparison, environment, run
from holdfast.vectors.jcs.es6.stream import ORIGIN, StreamBrokenError, StreamLostError, walk
from holdfast.vectors.jcs.es6.transport import Collector
from holdfast.vectors.jcs.spark.session import Snapshot, SparkSite, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with opened(
        SparkSite(scratch=tmp_path_factory.mktemp("spark"), master="local[2]", environment=environment(os.environ))
    ) as session:
        yield session


def test_several_partitions_match_the_published_digest(spark: SparkSession) -> None:
    known = tuple(walk(ORIGIN, blocks) for blocks in (1, 5_000, 15_000, 24_000))
    seen: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    result = run(100_000, spark=spark, known=known, progress=listen)
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
