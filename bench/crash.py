"""What the tracer costs a store, how many kills and states a minute tries, and how soon the classic bug is found.

The stores are those of the kit's tests. The slowdown is that of the same writes with and without the tracer, in turns,
each at its best, without start and stop. Kills and states include a fresh start of the store, all checks and a second
restart. The classic bug is an acknowledgement before the sync; its time is that of the whole layer, recording
included. PostgreSQL is a server of its own in each work directory, begun on a copy of one cluster, with all its
processes traced. Targets on one core: 400 kills a minute on SQLite, 60 on PostgreSQL, the classic bug in under a
second.

The last lines are of a store that makes its six writes out of 34,000 small ones, synced after each of the six or never:
how long its recording takes, how long the first and the next 200 states take to be made, and what memory this process
has taken at most. Targets: 2 s to the first state once it is recorded, 256 MiB.

Run: `python bench/crash.py [--seconds S] [--puts N]`
"""

from __future__ import annotations

import argparse
import math
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

# The stores are tests' own: they are found by their place, as pytest finds them.
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import postgres_store
from holdfast.conformance.faults import sweep as layers
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.model.plan import Plan
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.subject import perform
from holdfast.conformance.faults.sweep import Sweep
from holdfast.conformance.faults.tracer import Injection
from tests.faults.stores.catalogue import ENVIRONMENT, STORES, Store


class Postgres(Store):
    """A store on a PostgreSQL of its own, which stands beside this file."""

    def command(self, go_store: Path | None = None) -> tuple[str, ...]:
        del go_store
        return (sys.executable, "-m", "bench.postgres_store", self.variant)


POSTGRES = Postgres("postgres", "right")
RIGHT = ("sqlite-wal_full", "sqlite-delete_extra", "rocks-sync", "lmdb_store-default", "plain-right", "log-right")
CLASSIC = ("sqlite-wal_off", "log-ack_first", "rocks-no_sync", "plain-none")
TURNS = 3
MANY, MANY_WRITES = str(Path(__file__).parents[1] / "tests" / "faults" / "stores" / "many.py"), 34_000


def store(name: str) -> Store:
    """The store of that name."""
    return next(one for one in STORES if one.name == name)


def lines(one: Store) -> Lines:
    """A subject that is never in a hurry."""
    return Lines(one.command(), environment=ENVIRONMENT, limits=Limits().scaled(10))


def seconds_of(one: Store, count: int, base: Path | None, *, traced: bool) -> float:
    """The time of `count` writes, one after the other."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as place:
        folder = Path(place, "work")
        folder.mkdir()
        if base is not None:
            shutil.copytree(base, folder, dirs_exist_ok=True)
        subject = lines(one)
        subject.start(folder, Injection().argv(Path(place, "recording"), folder) if traced else ())
        began = time.perf_counter()
        history = perform(subject, puts(count))
        took = time.perf_counter() - began
        subject.stop()
        assert len(history.must) == count
    return took


def slowdown(one: Store, count: int, base: Path | None) -> tuple[float, float]:
    """Seconds without and with the tracer."""
    best = [math.inf, math.inf]
    for _ in range(TURNS):
        for place, traced in enumerate((False, True)):
            best[place] = min(best[place], seconds_of(one, count, base, traced=traced))
    return best[0], best[1]


def measure(one: Store, options: argparse.Namespace, base: Path | None = None) -> None:
    """Print a line for a right store, each run of which begins on a copy of `base`."""
    bare, traced = slowdown(one, options.puts, base)
    with Sweep(lambda: lines(one), puts(6), base=base) as sweep:
        sweep.baseline()
        kills, states = (sweep.trial(layer).report(options.seconds) for layer in (Layer.KILL, Layer.POWER))
    each = [f"{60 * report.tried / report.seconds:.0f}" for report in (kills, states)]
    print(f"{one.name:24} {bare:8.3f} {traced:9.3f} {traced / bare:6.2f} {each[0]:>10} {each[1]:>11}", flush=True)


def measure_many(mode: str) -> None:
    """Print a line for a store of many writes."""
    subject = Lines((sys.executable, MANY, str(MANY_WRITES // 6), mode), limits=Limits().scaled(10))
    with Sweep(lambda: subject, puts(6)) as sweep:
        times = [time.perf_counter()]
        run = sweep.baseline()
        times.append(time.perf_counter())
        plan = iter(Plan(run.recording, acknowledgements=run.promises.acknowledged.values()))
        for count in (1, 200):
            # None is held: each would hold its point.
            assert sum(1 for _ in islice(plan, count)) == count
            times.append(time.perf_counter())
    recorded, first, more = (after - before for before, after in pairwise(times))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{MANY_WRITES:,} writes, {mode}: recorded in {recorded:.1f} s, first state {first:.1f} s, "
        f"next 200 {more:.1f} s, {most:.0f} MiB at most",
        flush=True,
    )


def main(arguments: Sequence[str]) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0, help="for each layer of each store")
    parser.add_argument("--puts", type=int, default=300, help="writes whose time is taken")
    options = parser.parse_args(arguments)
    print(f"{'store':24} {'bare s':>8} {'traced s':>9} {'ratio':>6} {'kills/min':>10} {'states/min':>11}")
    for name in RIGHT:
        measure(store(name), options)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as place:
        postgres_store.make_template(Path(place))
        measure(POSTGRES, options, Path(place))
    for mode in ("sync", "nosync"):
        measure_many(mode)
    layers.MOST_FINDINGS = 1
    for name in CLASSIC:
        one = store(name)
        with Sweep(lambda one=one: lines(one), puts(3)) as sweep:  # type: ignore[misc]
            report = sweep.trial(Layer.POWER).report(options.seconds)
        found = report.findings[0].verdict.kind.value if report.findings else "NOT FOUND"
        print(f"{name:24} {found} in {report.seconds:.2f} s, {report.tally}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
