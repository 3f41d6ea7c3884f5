"""What Spark costs on top of an SDK, how it scales, and how generating grows.

For each SDK the wall time of `verify --in` (comparing answers, digests and the table included), against a bare loop
that feeds the same frames from the same files to as many processes of the same SDK (`bare`), one loop for
each process. The session is warm and a first run is thrown away. The run on one core has everything on one: session,
workers and SDK. Targets: at most 1.25, and 1 -> 2 cores at least 1.7. With `--constructed` it is `verify --count`,
which makes the rows while it needs them: that costs as much as a third of a fast SDK. Fewer rows than the default show
what a job costs by itself (about half a second).

`--linear` prints how the time of a row of `generate` grows with their number (ratio 1 is linear).

Run: `python -m bench.verify_sdk [--rows N] [--sdk NAME]… [--turns N] [--constructed] [--linear [SIZES]]`
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow.parquet as pq

from bench.turns import grown
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS
from holdfast.vectors.jcs.frames.process import PIPE_BYTES, end, start, widen
from holdfast.vectors.jcs.sdk import find, names
from holdfast.vectors.jcs.spark.generate import GenerateRequest, generate
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import read_manifest
from holdfast.vectors.jcs.spark.results import Generated, Source, Stored, Target, VerifyRequest
from holdfast.vectors.jcs.spark.session import SparkSite, opened
from holdfast.vectors.jcs.spark.storage import Store
from holdfast.vectors.jcs.spark.verify import verify
from holdfast.vectors.taxonomy import Profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
MOST = 1.25
SCALING = 1.7
SEED = 1
# Both processes have the same number of whole stocks to construct from.
ROWS = 16 * STOCK_ROWS


def bare(command: Sequence[str], files: Sequence[str]) -> int:
    """Feed the documents of some files to one process; how many answers came."""

    child = start(command, None, stderr=subprocess.DEVNULL)
    assert child.stdin is not None
    assert child.stdout is not None
    widen(child.stdin)
    widen(child.stdout)
    writer = threading.Thread(target=_write, args=(child.stdin, files), daemon=True)
    answers = 0
    try:
        writer.start()
        # The pipe itself, not Popen's reader, whose buffer is small.
        with open(child.stdout.fileno(), "rb", buffering=PIPE_BYTES, closefd=False) as stream:
            while header := stream.read(5):
                stream.read(int.from_bytes(header[:4], "big"))
                answers += 1
    finally:
        end(child)
        writer.join()
    return answers


def _write(pipe: IO[bytes], files: Sequence[str]) -> None:
    with contextlib.suppress(OSError), open(pipe.fileno(), "wb", buffering=PIPE_BYTES, closefd=False) as stream:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(columns=["document"]):
                for document in batch.column(0).to_pylist():
                    stream.write(len(document).to_bytes(4, "big") + document)
    with contextlib.suppress(OSError):
        pipe.close()


def bare_seconds(command: Sequence[str], files: Sequence[str], processes: int, rows: int) -> float:
    """Wall time of the bare loops, the files dealt out among them."""
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(abs, range(processes)))
        began = time.perf_counter()
        came = sum(pool.map(bare, [command] * processes, [files[i::processes] for i in range(processes)]))
        took = time.perf_counter() - began
    assert came == rows, f"expected {rows} answers, {came} came"
    return took


def spark_seconds(spark: SparkSession, name: str, source: Source, out: Path) -> float:
    """Wall time of the whole verification without shrinking."""
    sdk = find(name)
    command = Command(tuple(sdk.command), 30, 60)
    reference = Command(tuple(find("reference").command), 30, 60)
    target = Target(name, sdk.language, sdk.library, sdk.version, command)
    began = time.perf_counter()
    result = verify(spark, VerifyRequest(target, source, Profile.CORE, reference, kept=10, shrink_s=0), str(out))
    took = time.perf_counter() - began
    assert result.missing == 0
    return took


def measure(scratch: Path, rows: int, wanted: Sequence[str], *, turns: int, stored: bool) -> bool:
    """Print the ratios of each SDK; whether all meet the targets."""
    folder = scratch / "rows"
    spark_s: dict[int, dict[str, float]] = {}
    everywhere = os.sched_getaffinity(0)
    bare_s: dict[str, float] = {}
    for cores in (1, CORES):
        place = scratch / f"session-{cores}"
        place.mkdir()
        # Inherited by the JVM, its workers and their runners.
        os.sched_setaffinity(0, everywhere if cores > 1 else {min(everywhere)})
        with opened(SparkSite(place, master=f"local[{cores}]")) as spark:
            if cores == 1:
                manifest = generate(spark, GenerateRequest(SEED, rows, partitions=2 * CORES), str(folder))
                files = [str(folder / part.path) for part in manifest.parts]
            rows_at = Store(spark, str(folder))
            source = Stored(rows_at, read_manifest(rows_at)) if stored else Generated(SEED, rows)
            spark_seconds(spark, wanted[0], source, scratch / "warm")
            spark_s[cores] = dict.fromkeys(wanted, math.inf)
            bare_s = dict.fromkeys(wanted, math.inf)
            # Side by side, each taken at its best: a busy moment must not fall on one of the two.
            for name in [*wanted] * turns:
                spark_s[cores][name] = min(spark_s[cores][name], spark_seconds(spark, name, source, scratch / "out"))
                if cores == CORES:
                    bare_s[name] = min(bare_s[name], bare_seconds(find(name).command, files, CORES, rows))
    good = True
    print(f"{rows} rows, {CORES} processes")
    print(f"{'sdk':32} {'bare s':>8} {'spark s':>8} {'ratio':>6} {'1 core s':>9} {'scaling':>8}")
    for name in wanted:
        ratio = spark_s[CORES][name] / bare_s[name]
        scaling = spark_s[1][name] / spark_s[CORES][name]
        good &= ratio <= MOST and scaling >= SCALING
        print(
            f"{name:32} {bare_s[name]:8.2f} {spark_s[CORES][name]:8.2f} {ratio:6.2f} {spark_s[1][name]:9.2f} "
            f"{scaling:8.2f}"
        )
    return good


def linear(scratch: Path, sizes: str) -> None:
    """Print how the time of a row of `generate` grows."""
    place = scratch / "session-linear"
    place.mkdir()
    with opened(SparkSite(place, master=f"local[{CORES}]")) as spark:

        def cost(rows: int) -> float:
            began = time.perf_counter()
            generate(spark, GenerateRequest(SEED, rows), str(scratch / f"linear-{rows}"))
            return (time.perf_counter() - began) / rows

        cost(1000)
        grown("a row", sizes, cost)


def main() -> int:
    """Print what was measured; 1 if a target is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--sdk", action="append")
    parser.add_argument("--turns", type=int, default=1, help="the best of this number of runs")
    parser.add_argument("--constructed", action="store_true", help="rows are made while they are needed")
    parser.add_argument("--linear", nargs="?", const="100000,1000000,10000000", metavar="SIZES")
    options = parser.parse_args()
    wanted = options.sdk or [name for name in names() if find(name).command and not name.startswith("reference-")]
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as scratch:
        if options.linear:
            linear(Path(scratch), options.linear)
            return 0
        stored = not options.constructed
        return 0 if measure(Path(scratch), options.rows, wanted, turns=options.turns, stored=stored) else 1


if __name__ == "__main__":
    sys.exit(main())
