"""Constructed rows per second, against a plain loop of `json.loads`, `rfc8785.dumps` and SHA-256 over the same rows.

Both run in one process, on one thread, in turns over the same blocks of rows, so that a busy machine slows both alike.
The ratio is also given in seconds of the processor, which other programs on the machine do not stretch.

The generator makes document, canonical form and the other columns, and takes the SHA-256 of the canonical forms; the
stock of each block is made anew. The plain loop is given the documents and only has to canonicalise and hash; documents
that it refuses cost it the parsing up to their defect. Target: a ratio of at least 8. With `--sizes` it prints how the
time of a row grows with the number of rows.

Run: `python -m bench.generate [--batches N] [--sizes 100000,1000000,10000000]`
"""

from __future__ import annotations

import hashlib
import json
import resource
import time

import pyarrow as pa
import rfc8785

from bench.turns import arguments, grown, in_turns, show
from holdfast.vectors.jcs.construct import batch
from holdfast.vectors.jcs.construct.blocks import STOCK_ROWS, stock_of

SEED = 1
TARGET = 8.0
SLICE_ROWS = 16384


def digest(column: pa.BinaryArray) -> str:
    """SHA-256 of all bytes of a column."""
    return hashlib.sha256(column.buffers()[2]).hexdigest()


def generate(first: int, rows: int) -> None:
    """What the generator does for some rows, in slices."""
    for start in range(first, first + rows, SLICE_ROWS):
        digest(batch(SEED, start, min(SLICE_ROWS, first + rows - start)).column("canonical"))


def plain_loop(documents: list[bytes]) -> None:
    """What a program without the generator would do, one document after the other."""
    for document in documents:
        try:
            hashlib.sha256(rfc8785.dumps(json.loads(document))).digest()
        except (ValueError, RecursionError, rfc8785.CanonicalizationError):
            continue


def block(number: int) -> None:
    """The rows of a stock, and the stock."""
    stock_of.cache_clear()
    generate(number * STOCK_ROWS, STOCK_ROWS)


def cost(rows: int) -> float:
    """The CPU seconds that a row takes, of this number of rows."""
    stock_of.cache_clear()
    began = time.process_time()
    generate(0, rows)
    return (time.process_time() - began) / rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, batches=2, sizes="")
    documents = [
        batch(SEED, number * STOCK_ROWS, STOCK_ROWS).column("document").to_pylist()
        for number in range(options.batches + 1)
    ]
    sides = [block, lambda number: plain_loop(documents[number])]
    for clock, name in ((time.perf_counter, "by wall time"), (time.process_time, "by processor time")):
        taken = in_turns(sides, warm_up=1, batches=options.batches, batch=1, clock=clock)
        show(dict(zip(("constructed", "plain loop"), taken, strict=True)), f"{name}, target {TARGET}", each=STOCK_ROWS)
    if options.sizes:
        grown("a row", options.sizes, cost)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
