"""Constructed rows per second, against a plain loop of `json.loads`, `rfc8785.dumps` and SHA-256 over the same rows.

Both run in one process, in turns over the same stretch of the stream, so that a busy machine slows both
alike; with `--processes N`, in as many processes at once on stretches of their own. Neither uses more than one thread,
so the ratio is also given in seconds of the processor, which other programs on the machine do not stretch.

The generator makes document, canonical form and the other columns, and takes the SHA-256 of the canonical forms. The
plain loop is given the documents and only has to canonicalise and hash; documents that it refuses cost it the parsing
up to their defect. Making the stock of each block of rows is the generator's time, in proportion to the rows taken from
it. Target: a ratio of at least 8. `--linear` prints how the time of the generator grows from 10^5 to 10^7 rows, as an
exponent.

Run: `python bench/generate.py [--rows N] [--slice N] [--processes N] [--linear]`
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import rfc8785

from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS, stock_of

SEED = 1
TARGET = 8.0
# Rows before the other side has its turn: enough that each side has its own data in the caches most of the time.
TURN_ROWS = 32768
SLICE_ROWS = 16384


# Seconds by the clock and of the processor.
Spent: TypeAlias = "npt.NDArray[np.float64]"


def now() -> Spent:
    """Both clocks."""
    return np.array((time.perf_counter(), time.process_time()))


@dataclass(frozen=True, slots=True)
class Taken:
    """What each side took over `rows` rows of `size` bytes of documents in all; `stock` is in `ours`."""

    rows: int
    size: int
    ours: Spent
    plain: Spent
    stock: Spent


def digest(column: pa.BinaryArray) -> str:
    """SHA-256 of all bytes of a column."""
    return hashlib.sha256(column.buffers()[2]).hexdigest()


def generate(start: int, count: int) -> pa.RecordBatch:
    """What the generator does for a slice."""
    made = batch(SEED, start, count)
    digest(made.column("canonical"))
    return made


def plain_loop(documents: list[bytes]) -> int:
    """What a program without the generator would do, one document after the other. Gives how many were accepted."""
    accepted = 0
    for document in documents:
        try:
            hashlib.sha256(rfc8785.dumps(json.loads(document))).digest()
        except (ValueError, RecursionError, rfc8785.CanonicalizationError):
            continue
        accepted += 1
    return accepted


def measure(first: int, rows: int, slice_rows: int) -> Taken:
    """Both sides over `rows` rows from `first` on, slice by slice in turns."""
    ours, plain, stock = np.zeros((3, 2))
    size = 0
    # The first slice of a process pays for imports and for warming up the allocator.
    generate(first + rows, slice_rows)
    stock_of.cache_clear()
    for turn in range(first, first + rows, TURN_ROWS):
        end = min(turn + TURN_ROWS, first + rows)
        began = now()
        stock_of(SEED, turn // STOCK_ROWS)
        stocked = now()
        made = [generate(start, min(slice_rows, end - start)) for start in range(turn, end, slice_rows)]
        ended = now()
        stock += stocked - began
        ours += ended - stocked
        documents = [document for each in made for document in each.column("document").to_pylist()]
        size += sum(map(len, documents))
        began = now()
        plain_loop(documents)
        plain += now() - began
    # A stock serves STOCK_ROWS rows, however many of them this stretch had.
    stocks = (first + rows - 1) // STOCK_ROWS - first // STOCK_ROWS + 1
    share = stock * (rows / (stocks * STOCK_ROWS))
    return Taken(rows, size, ours + share, plain, share)


def linear() -> None:
    """Print what the generator alone takes for growing numbers of rows, and the exponents of the growth."""
    taken: list[Spent] = []
    for rows in (10**5, 10**6, 10**7):
        stock_of.cache_clear()
        began = now()
        for start in range(0, rows, SLICE_ROWS):
            generate(start, min(SLICE_ROWS, rows - start))
        spent = now() - began
        taken.append(spent)
        print(f"{rows:>10} rows  {spent[0]:8.2f} s by the clock  {spent[1]:8.2f} s of the processor", flush=True)
    for name, growth in zip(("wall", "processor"), taken[-1] / taken[0], strict=True):
        print(f"exponent by {name} time  {math.log(growth) / math.log(100):.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=STOCK_ROWS, help="rows for each process")
    parser.add_argument("--slice", type=int, default=SLICE_ROWS, help="rows of a slice")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--linear", action="store_true", help="only how the time grows")
    options = parser.parse_args()
    if options.linear:
        linear()
        return
    # Every process begins with a stock of its own.
    span = math.ceil((options.rows + options.slice) / STOCK_ROWS) * STOCK_ROWS
    firsts = [number * span for number in range(options.processes)]
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(measure, firsts, [options.rows] * len(firsts), [options.slice] * len(firsts)))
    rows = sum(each.rows for each in found)
    print(f"{rows} rows of {sum(each.size for each in found) / rows:.0f} bytes, processes: {len(found)}")
    for clock, name in enumerate(("wall", "processor")):
        ours = sum(each.rows / each.ours[clock] for each in found)
        plain = sum(each.rows / each.plain[clock] for each in found)
        stock = sum(each.stock[clock] for each in found) / sum(each.ours[clock] for each in found)
        print(f"by {name} time")
        print(f"  constructed {ours:10.0f} rows/s   of the time, making stocks: {stock:.0%}")
        print(f"  plain loop  {plain:10.0f} rows/s")
        print(f"  ratio       {ours / plain:10.2f}          target {TARGET:.2f}")


if __name__ == "__main__":
    main()
