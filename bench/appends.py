"""Appends, replays and starts of the reference log, each against the bare work under it or at another size.

- *append*: `put` as the adapter calls it: strict decode, signature, one synced batch with the operation's rows, and the
  witness, which is synced after every 32nd batch.
- *bare*: the rows of the same operations, with as many bytes beside them as the reference writes, in synced batches to
  a RocksDB with the options that it comes with. The number that counts is the ratio of the rates, *append* to *bare*,
  over the whole run, in which the syncs of the witness are: at least 0.5. Medians leave out the slowest syncs.
- *bare, later*: the same, each batch begun 0.25 ms late, about what the reference computes for one. No part of the
  target: it tells whether more than this is lost. A disk may answer sooner if it is asked again at once.
- *replay*: a store of each size is opened, its order is built, and every operation is applied from genesis, in a
  process of its own. What each operation beyond the size before takes is about the same at each size, if it is linear.
- *start*: open, order and state of the same store, from genesis and from a checkpoint of all but the last operation.

Seconds of replays and starts are of the processor, which a busy machine changes less.

The sides of the first three take turns, and in turn go first, so that a busy machine slows all alike. A slow disk hides
everything behind the sync, and lifts the ratio: compare ratios at like medians of *bare*.

Run: `python -m bench.appends [--batches N] [--batch N] [--sizes 1000,10000,100000,1000000]`
"""

from __future__ import annotations

import itertools
import multiprocessing
import re
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rocksdict import AccessType, Options, Rdict, WriteBatch, WriteOptions

from bench.turns import Taken, arguments, in_turns, show
from holdfast.reference_impl.m5_log.database import Change
from holdfast.reference_impl.m5_log.opening import MARKS, WATERMARK, number
from holdfast.reference_impl.m5_log.operations import OpCodec, Operation
from holdfast.reference_impl.m5_log.service import Parts
from holdfast.reference_impl.m5_log.terms import Family, load_settings
from holdfast.reference_impl.m5_log.witness import Mark, encode_marks
from holdfast.vectors.m5_log import derive
from holdfast.vectors.spelling import decoded

WARM_UP = 30
LATE = 0.00025
TARGET = 0.5
KEYS = 100
FILLED_AT_ONCE = 1000
CODEC = OpCodec(load_settings({}))


def parts_of(root: Path) -> Parts:
    """The parts of the store in a folder."""
    return Parts(root, {})


def operation(at: int, parents: Sequence[str]) -> bytes:
    """An operation of about 220 bytes."""
    payload = {"key": f"register {at % KEYS}", "value": f"value {at}"}
    return decoded(derive.op({"key": "bench", "ms": at, "parents": parents, "payload": payload}))


def chained(count: int, first: int = 0, before: str = "") -> list[bytes]:
    """Operations, each with the one before it as its parent."""
    made: list[bytes] = []
    for at in range(first, first + count):
        made.append(operation(at, [before] if before else []))
        before = CODEC.op_id(made[-1]).hex()
    return made


def appends(*, batches: int, batch: int) -> tuple[Taken, Taken, Taken]:
    """Seconds of each operation, appended by the reference, written barely, and written barely and late."""
    sent = chained(WARM_UP + batches * batch)
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        parts = parts_of(Path(scratch))
        parts.store.opening.make()
        rows = [_rows(parts, CODEC.decode(raw)) for raw in sent]
        bare, late = (_bare(Path(scratch, name)) for name in ("bare", "late"))
        synced = WriteOptions()
        synced.sync = True

        def put(at: int) -> None:
            assert parts.log.put(sent[at]).new

        def write(at: int, into: Rdict) -> None:
            together = WriteBatch(raw_mode=True)
            for _, key, value in rows[at]:
                assert value is not None
                together.put(key, value)
            into.write(together, synced)

        def write_late(at: int) -> None:
            due = time.perf_counter() + LATE
            while time.perf_counter() < due:
                pass
            write(at, late)

        sides = [put, lambda at: write(at, bare), write_late]
        ours, theirs, later = in_turns(sides, warm_up=WARM_UP, batches=batches, batch=batch)
        for database in (bare, late):
            database.close()
        parts.store.release()
    return ours, theirs, later


def _bare(path: Path) -> Rdict:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    return Rdict(str(path), options, access_type=AccessType.read_write())


def _rows(parts: Parts, found: Operation) -> list[Change]:
    meta = [(Family.META, WATERMARK, number(0)), (Family.META, MARKS, encode_marks(Mark(), Mark()))]
    return [*parts.log.rows(found), *meta]


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds of the processor for opening a store, its order and its state; the memory of the process at most."""

    opened: float
    ordered: float
    state: float
    bytes: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.opened + self.ordered + self.state


def started(root: Path, *, latest: bool) -> Start:
    """What it takes to have the state, from the latest checkpoint or from genesis. For a process of its own."""
    parts = parts_of(root)
    began = time.process_time()
    opened = parts.store.writing()
    there = time.process_time()
    opened.dag.order()
    ordered = time.process_time()
    if latest:
        assert parts.replay.latest(opened).checkpoint_id is not None
    else:
        parts.replay.full(opened)
    done = time.process_time()
    parts.store.release()
    return Start(there - began, ordered - there, done - ordered, most_memory())


def most_memory() -> int:
    """The bytes that this process had in memory at most. What getrusage says is also of the process that forked it."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return int(found.group(1)) * 1024


def apart(root: Path, *, latest: bool = False) -> Start:
    """The same in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(started, root, latest=latest).result()


def filled(root: Path, size: int) -> Parts:
    """A store of `size` operations; they are written many at a time, which leaves the same rows."""
    parts, before = parts_of(root), ""
    parts.store.opening.make()
    for first in range(0, size, FILLED_AT_ONCE):
        made = [CODEC.decode(raw) for raw in chained(min(FILLED_AT_ONCE, size - first), first, before)]
        before = made[-1].op_id.hex()
        parts.log.write(parts.store.writing(), made)
    return parts


@dataclass(frozen=True, slots=True)
class Growth:
    """What one more operation takes."""

    seconds: float
    bytes: float


def starts(size: int) -> tuple[Start, Start]:
    """A start of a store of this size, from genesis and from a checkpoint."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        root = Path(scratch)
        parts = filled(root, size)
        if size:
            parts.log.checkpoint_create(size - 1)
        parts.store.release()
        # The first opening writes the log into tables; it does not count.
        apart(root)
        return apart(root), apart(root, latest=size > 0)


def whole(side: Taken) -> float:
    """The seconds of a whole run."""
    return sum(itertools.chain.from_iterable(side))


def report(sizes: Sequence[int]) -> None:
    """Print what each size takes, and what each operation takes that it has more than the size before."""
    before, less = 0, starts(0)[0]
    first = Growth(0, 0)
    for at, size in enumerate(sizes):
        full, restored = starts(size)
        growth = Growth((full.seconds - less.seconds) / (size - before), (full.bytes - less.bytes) / (size - before))
        # What is fixed, and what is allocated in steps, is not small beside the least size.
        first = growth if at < 2 else first
        print(
            f"{size:>9,} operations: open {full.opened:6.2f} s, order {full.ordered:5.2f} s, "
            f"replay {size / full.state:7,.0f} a second; start {full.seconds:6.2f} s, "
            f"from a checkpoint {restored.seconds:6.2f} s, ratio {restored.seconds / full.seconds:.2f}"
        )
        print(
            f"{'':>9}  each more: {growth.seconds * 1e6:5.0f} us, ratio {growth.seconds / first.seconds:.2f}; "
            f"{growth.bytes:6.0f} bytes, ratio {growth.bytes / first.bytes:.2f}",
            flush=True,
        )
        before, less = size, full


def main() -> None:
    """Print rates and their ratio, how it spreads over tenths of the run, and how replays and starts grow."""
    options = arguments(__doc__, batches=100, batch=10, sizes="1000,10000,100000,1000000")
    sides = appends(batches=options.batches, batch=options.batch)
    show(dict(zip(("append", "bare", "bare, later"), sides, strict=True)))
    rates = ", ".join(f"{whole(side) / whole(sides[0]):.2f}" for side in sides[1:])
    print(f"ratios of the rates of the whole run: {rates}; target {TARGET:.2f} for bare")
    report(sorted(int(size) for size in options.sizes.split(",")))


if __name__ == "__main__":
    main()
