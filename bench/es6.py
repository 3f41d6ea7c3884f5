"""The published number stream in Spark against a plain Node program for the same stream, as a ratio of lines a second.

    python bench/es6.py [--quick] [--lines N] [--node-lines N] [--small-lines N] [--master M] [--walk] [--json]

Three things are done, one after the other, each in a process of its own, watched by this one:

    node     `bench/es6_node.mjs` over the first 10,000,000 lines, on one thread; its start is not counted
    small    ours over 10,000,000 lines, to compare its memory with
    large    ours over 100,000,000 lines: Python, Java and Spark started and stopped, everything is counted

Printed are lines a second, the ratio of large to node, whether the digests are the published ones, and the highest
resident memory of the whole process tree (every process's own number added up, so what they share counts twice).
`--walk` does without the kit's landmarks: the chain is walked first, as for a stream that was never walked before.
The exit code is 0 only if every digest matches.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from holdfast.vectors.jcs.es6.job import Comparison, Digest
from holdfast.vectors.jcs.es6.stream import LISTED

HERE = Path(__file__).parent
# Often enough to see a peak that lasts as long as one partition.
SAMPLE_S = 0.1
# What the child does: one session, one digest, one line of JSON.
OURS = """
import json, os, sys, tempfile
from pathlib import Path
from holdfast.vectors.jcs.es6.job import environment, run
from holdfast.vectors.jcs.spark.session import SparkSite, opened
lines, master, walked = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "walk"
with tempfile.TemporaryDirectory() as scratch:
    with opened(SparkSite(scratch=Path(scratch), master=master, environment=environment(os.environ))) as spark:
        result = run(lines, spark=spark, known=() if walked else None)
print(json.dumps({"lines": result.lines, "octets": result.octets, "sha256": result.sha256, "job_s": result.seconds}))
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: what it digested, its seconds by the clock and of processors, peak memory of its process tree (MiB).

    Processor seconds say what a run costs on a machine that is busy with something else too.
    """

    name: str
    lines: int
    sha256: str
    comparison: Comparison
    seconds: float
    job_s: float
    cpu_s: float
    peak_mib: float

    @property
    def rate(self) -> float:
        return self.lines / self.seconds


class Tree(threading.Thread):
    """Watches the resident memory and processor time of a process and all that descends from it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._root = psutil.Process(pid)
        self._used: dict[int, float] = {}

    @property
    def cpu_s(self) -> float:
        """The total of all observed processes, up to the last inspection of each."""
        return sum(self._used.values())

    def run(self) -> None:
        while self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE:
            total = 0
            try:
                family = [self._root, *self._root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for process in family:
                try:
                    total += process.memory_info().rss
                    times = process.cpu_times()
                    self._used[process.pid] = times.user + times.system
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total)
            time.sleep(SAMPLE_S)


def measured(name: str, command: list[str]) -> Measured:
    """Run `command`, which prints one JSON object. `seconds` are its own if it says so, otherwise all of them."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    tree = Tree(process.pid)
    tree.start()
    output, _ = process.communicate()
    seconds = time.monotonic() - started
    tree.join()
    if process.returncode:
        raise SystemExit(f"expected {name} to end well; it ended with {process.returncode}")
    said = json.loads(output.splitlines()[-1])
    return Measured(
        name=name,
        lines=said["lines"],
        sha256=said["sha256"],
        comparison=Digest(said["lines"], said["octets"], said["sha256"]).comparison,
        seconds=said.get("seconds", seconds),
        job_s=said.get("job_s", said.get("seconds", seconds)),
        cpu_s=tree.cpu_s,
        peak_mib=tree.peak / (1 << 20),
    )


def node(lines: int) -> Measured:
    program = shutil.which("node")
    if program is None:
        raise SystemExit("expected node on PATH, to measure against; install Node.js 20 or later")
    with tempfile.TemporaryDirectory() as folder:
        patterns = Path(folder) / "patterns"
        patterns.write_text("".join(f"{pattern:x}\n" for pattern in LISTED.tolist()), encoding="ascii")
        return measured("node", [program, str(HERE / "es6_node.mjs"), str(lines), str(patterns)])


def ours(name: str, lines: int, master: str, *, walk: bool) -> Measured:
    return measured(name, [sys.executable, "-P", "-c", OURS, str(lines), master, "walk" if walk else "landmarks"])


def shown(run: Measured) -> str:
    return (
        f"{run.name:6} {run.lines:>12,} lines  {run.seconds:8.1f} s  {run.rate / 1e6:6.2f} M lines/s  "
        f"{run.cpu_s:6.1f} s CPU  "
        f"{run.peak_mib:6.0f} MiB  {run.comparison}  {run.sha256[:16]}…"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="the published number stream: ours against a plain Node program")
    parser.add_argument(
        "--quick", action="store_true", help="1,000,000 lines of Node, 1,000,000 and 10,000,000 of ours"
    )
    parser.add_argument("--node-lines", type=int)
    parser.add_argument("--small-lines", type=int)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--walk", action="store_true", help="without the shipped checkpoints")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    usual = (1_000_000, 1_000_000, 10_000_000) if options.quick else (10_000_000, 10_000_000, 100_000_000)
    given = (options.node_lines, options.small_lines, options.lines)
    node_lines, small_lines, lines = (own or default for own, default in zip(given, usual, strict=True))

    load = psutil.getloadavg()[0]
    plain = node(node_lines)
    small = ours("small", small_lines, options.master, walk=options.walk)
    large = ours("large", lines, options.master, walk=options.walk)
    ratio = large.rate / plain.rate
    runs = (plain, small, large)
    if options.json:
        print(json.dumps({"ratio": ratio, "load_before": load, "runs": [asdict(run) for run in runs]}, indent=2))
    else:
        print(f"{psutil.cpu_count()} cores, load {load:.1f} before the start; master {options.master}")
        for run in runs:
            print(shown(run))
        print(f"of the large run {large.job_s:.1f} s are the job itself, the rest is starting and stopping Spark")
        print(f"memory: {large.peak_mib / small.peak_mib:.2f} times from {small.lines:,} to {large.lines:,} lines")
        print(f"large : node = {ratio:.2f} times the lines a second (target 3, aim 5)")
    return 0 if all(run.comparison is Comparison.MATCH for run in runs) else 1


if __name__ == "__main__":
    raise SystemExit(main())
