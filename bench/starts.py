"""What a start of the reference costs: CPU time of its process for a hello, and for an open of each contract.

    python bench/starts.py [--rounds N] [--against PYTHON] [--json]

An adapter is started for each worker, each restart and each state of a disk, so this is most of what a run costs. The
sides take turns: a bare interpreter, the reference of this tree, and with `--against` the reference that another
interpreter finds, as that of another checkout. Printed are the medians of user and system time in milliseconds, and
their ratios. Ratios travel between machines, the milliseconds do not.

The contracts that keep a store answer an open without a configuration with a fault, when all of their code is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from holdfast.servers.environment import scrubbed_environment

CONTRACTS = ("calyx-replay", "hx-sync", "jcs", "mesh-delivery", "rs4a-replay")
ADAPTER = ("-P", "-m", "holdfast.reference_impl", "adapter")


def requests(contract: str | None, workdir: str) -> bytes:
    """A hello, and an open if there is a contract, as lines."""
    asked = [{"id": "1", "op": "hello", "protocol": 1, "kit": "bench", "challenge": "0" * 32}]
    if contract is not None:
        opened = {"contract": contract, "state": "fresh", "workdir": workdir, "clock": "2026-01-01T00:00:00Z"}
        asked.append({"id": "2", "op": "open", **opened})
    return "".join(json.dumps(one) + "\n" for one in asked).encode()


def cpu_seconds(command: Sequence[str], lines: bytes) -> float:
    """User and system time of a process that is given these lines and then the end of file."""
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, env=scrubbed_environment())
    assert child.stdin is not None
    child.stdin.write(lines)
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"expected {' '.join(command)} to end with 0, got {child.returncode}")
    return used.ru_utime + used.ru_stime


def measure(rounds: int, against: str | None) -> dict[str, dict[str, float]]:
    """Median milliseconds of each side, by what is asked."""
    sides = {"bare": [sys.executable, "-c", ""], "here": [sys.executable, *ADAPTER]}
    if against is not None:
        sides["there"] = [against, *ADAPTER]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as workdir:
        for contract in (None, *CONTRACTS):
            lines = requests(contract, workdir)
            taken: dict[str, list[float]] = {side: [] for side in sides}
            # The first round writes the compiled modules.
            for number in range(rounds + 1):
                for side, command in sides.items():
                    seconds = cpu_seconds(command, b"" if side == "bare" else lines)
                    if number:
                        taken[side].append(seconds * 1000)
            found[contract or "hello"] = {side: statistics.median(times) for side, times in taken.items()}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--against", metavar="PYTHON", help="interpreter of another checkout's environment")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(max(1, options.rounds), options.against)
    if options.json:
        print(json.dumps(found))
        return
    for asked, times in found.items():
        line = ", ".join(f"{side} {value:.0f} ms" for side, value in times.items())
        ratios = [f"here/bare = {times['here'] / times['bare']:.1f}"]
        if "there" in times:
            ratios.append(f"here/there = {times['here'] / times['there']:.2f}")
        print(f"{asked:<14} {line}; {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
