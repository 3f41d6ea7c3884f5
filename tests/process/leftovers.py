"""Starts the command line in a temp folder of its own, and searches for what it left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.hostile.verify import assert_nothing_remains, environment, processes_of, temp_folder
from tests.pace import busy

STUBBORN = Path(__file__).resolve().parent / "stubborn.py"
# On a busy machine a server may take so long to come up.
APPEARS_S = 60.0
# And this is how long the end of the kit may take to be the end of everything.
GOES_S = 12.0


@dataclass
class Run:
    """A run of the command line: its process, its temp folder, and where it was started."""

    kit: subprocess.Popen[bytes]
    temp: Path
    cwd: Path

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The lines of evidence so far."""
        for path in (self.cwd / "run.jsonl", self.cwd / "run.jsonl.partial"):
            if path.exists():
                # The last line may be on its way.
                whole = path.read_text(encoding="utf-8").split("\n")[:-1]
                return [json.loads(line) for line in whole]
        return []

    @property
    def output(self) -> str:
        """What the kit printed."""
        return (self.cwd / "log").read_text(encoding="utf-8", errors="replace")

    def interrupt(self, number: signal.Signals) -> int:
        """Signal the kit's process group, as a terminal does, or the kit alone if it is to die without a word."""
        if number is signal.SIGKILL:
            self.kit.kill()
        else:
            os.killpg(self.kit.pid, number)
        return self.kit.wait(timeout=busy(GOES_S))


@contextlib.contextmanager
def started(*words: str, temp: Path, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The command line with these words, in a session of its own; at the end nothing of it may remain.

    What a failed test left behind is ended, so that the next one does not meet it.
    """
    kit = subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.conformance.cli", *words],
        **{"env": environment(temp), "stdin": subprocess.DEVNULL, "start_new_session": True, **how},
    )
    try:
        yield kit
        assert_nothing_remains(temp, within=GOES_S)
    finally:
        if kit.poll() is None:
            kit.kill()
            kit.wait()
        for process in processes_of(temp):
            with contextlib.suppress(psutil.Error):
                process.kill()


@contextlib.contextmanager
def running(*words: str, cwd: Path) -> Iterator[Run]:
    """`holdfast verify` with these words; ended at the end, and nothing of it may remain."""
    line = ("verify", "--evidence", str(cwd / "run.jsonl"), *words)
    with (
        temp_folder() as temp,
        (cwd / "log").open("wb") as log,
        started(*line, temp=temp, cwd=cwd, stdout=log, stderr=subprocess.STDOUT) as kit,
    ):
        yield Run(kit, temp, cwd)


def until(fact: Callable[[], bool], *, within: float) -> bool:
    """Whether it becomes a fact in time."""
    deadline = time.monotonic() + within
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.03)
    return True


def adapter(*words: str) -> Sequence[str]:
    """The stubborn adapter behind the options."""
    return ("--", sys.executable, str(STUBBORN), *words)
