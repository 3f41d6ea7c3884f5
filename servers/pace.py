"""How much time a limit grants: the factor of `--slow`, times how much slower this machine is than the usual one.

All limits of time are made for the usual machine: the deadlines of the harness, the patience of a launcher, what the
reference grants its own store and its own commands. A run measures its machine at the start (`measured`), multiplies
with `--slow`, and hands the product on in the environment variable HOLDFAST_SLOW. So harness, launcher and reference
have one factor. What a session may take is counted in its work (`Budget`).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# The variable in which an adapter and a launcher find the factor on every limit, for the limits of their own
# (docs/adapter-protocol.md, "What counts against an adapter").
SLOW_VARIABLE = "HOLDFAST_SLOW"
# Beyond this a limit says nothing any more; `--slow` goes further.
MOST_FACTOR = 8.0
# How often each thing is done. Starts fill their seconds: a quota of processor time is granted for a tenth of a second,
# and until it is used up a program has full speed.
_EXCHANGES, _SYNCS, _STARTING_S = 40, 5, 0.1
# A factor is a whole number of these: less is noise.
_STEP = 0.25
# A process that sends back what it reads, a line at a time.
_ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"
# How many requests the time of a session is made for, and how many of them a start is worth.
_REQUESTS, REQUESTS_OF_A_START = 300, 30


@dataclass(frozen=True, slots=True)
class Pace:
    """What a machine takes, in seconds: an exchange over pipes, a start of a small program, a sync of a file."""

    exchange_s: float
    start_s: float
    sync_s: float

    @property
    def factor(self) -> float:
        """How much slower than the usual machine it is, by what it does worst: from 1 to `MOST_FACTOR`."""
        slower = max(self.exchange_s / USUAL.exchange_s, self.start_s / USUAL.start_s, self.sync_s / USUAL.sync_s)
        return min(MOST_FACTOR, max(1.0, slower // _STEP * _STEP))

    def __str__(self) -> str:
        times = {"an exchange": self.exchange_s, "a start": self.start_s, "a sync": self.sync_s}
        said = ", ".join(f"{what} {seconds * 1000:.3g} ms" for what, seconds in times.items())
        return f"{said}; factor {self.factor:g}"


# Two processors of a small virtual machine, and a disk that is none of the fastest.
USUAL = Pace(exchange_s=0.000_05, start_s=0.013, sync_s=0.01)


def measured(folder: Path) -> Pace:
    """What this machine takes now, by less than a second of work; the syncs are of `folder`. Raises OSError."""
    python = [sys.executable, "-I", "-S", "-c"]
    starts, began = 0, time.monotonic()
    while time.monotonic() < began + _STARTING_S:
        subprocess.run([*python, "pass"], check=False)
        starts += 1
    start_s = (time.monotonic() - began) / starts
    path = folder / f"holdfast-pace-{os.getpid()}"
    with path.open("xb", buffering=0) as file:
        path.unlink()

        def sync() -> None:
            file.write(bytes(64))
            os.fsync(file.fileno())

        sync_s = _usually(_SYNCS, sync)
    pipe = subprocess.PIPE
    with subprocess.Popen([*python, _ECHO], stdin=pipe, stdout=pipe, bufsize=0) as echo:
        stdin, stdout = echo.stdin, echo.stdout
        assert stdin is not None
        assert stdout is not None

        def exchange() -> None:
            stdin.write(b"{}\n")
            stdout.readline()

        exchange()
        exchange_s = _usually(_EXCHANGES, exchange)
    return Pace(exchange_s, start_s, sync_s)


def paced(slow: float, folder: Path) -> float:
    """The factor for `--slow` on this machine. One below 1 asks for short limits, whatever the machine is like."""
    return slow * measured(folder).factor if slow >= 1 else slow


def _usually(count: int, do: Callable[[], object]) -> float:
    """The median of its seconds."""
    took: list[float] = []
    for _ in range(count):
        began = time.monotonic()
        do()
        took.append(time.monotonic() - began)
    return sorted(took)[len(took) // 2]


class Budget:
    """The time in which a session's requests have to be answered: `seconds`, and more for more work than usual.

    Only the time that is spent waiting for the adapter counts.
    """

    def __init__(self, seconds: float) -> None:
        self.spent = 0.0
        self._seconds, self._work = seconds, 0

    def work(self, requests: int) -> None:
        """So many more requests are sent; a start is `REQUESTS_OF_A_START`."""
        self._work += requests

    @property
    def seconds(self) -> float:
        """All of it, for the work so far."""
        return self._seconds * max(1.0, self._work / _REQUESTS)

    @property
    def left(self) -> float:
        """What is not spent yet, never less than 0."""
        return max(0.0, self.seconds - self.spent)

    def grant_again(self) -> None:
        """The machine was too busy: the same time once more."""
        self._seconds *= 2

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """The time in here is spent."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - began


def slowed(environment: Mapping[str, str], factor: float) -> dict[str, str]:
    """An environment in which everything may take `factor` times as long as in this one."""
    return {**environment, SLOW_VARIABLE: repr(factor_of(environment.get(SLOW_VARIABLE, "")) * factor)}


def scaled(seconds: float) -> float:
    """A limit of time that is made for the usual machine without a factor, as it is with that of this process."""
    return seconds * _factor


@contextlib.contextmanager
def adopted(factor: float) -> Iterator[None]:
    """Let this process have the factor meanwhile, never less than 1: a harness finds none in its environment."""
    global _factor
    before, _factor = _factor, max(1.0, factor)
    try:
        yield
    finally:
        _factor = before


def factor_of(text: str) -> float:
    """The factor of a text; never less than 1, because the waits here take some time on any machine."""
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


_factor = factor_of(os.environ.get(SLOW_VARIABLE, ""))
