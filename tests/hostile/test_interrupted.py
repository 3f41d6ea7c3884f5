"""Ctrl-C, SIGTERM, a closed terminal and SIGKILL of the kit: nothing stays behind, at every moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.hostile.verify import HERE, assert_nothing_remains, environment, processes_of, something_remains, temp_folder

# A server may take so long to come up on a busy machine, and so long to stop when no process waits for it.
APPEARS_S = 60.0
GOES_S = 30.0


def is_adapter(process: psutil.Process) -> bool:
    """Whether it is the hostile adapter of the run."""
    return process.cmdline()[-1:] == [str(HERE / "adapters" / "hang_on_call.py")] and len(process.cmdline()) == 2


def is_server(process: psutil.Process) -> bool:
    """Whether it is a PostgreSQL server."""
    return process.name().startswith("postgres")


def await_child(temp: Path, kit: subprocess.Popen[bytes], wanted: Callable[[psutil.Process], bool]) -> None:
    """Wait until a process of the run is what is wanted."""
    deadline = time.monotonic() + APPEARS_S
    while time.monotonic() < deadline and kit.poll() is None:
        for process in processes_of(temp):
            try:
                if process.pid != kit.pid and wanted(process):
                    return
            except psutil.Error:
                continue
        time.sleep(0.05)
    raise AssertionError(f"the run did not come as far as its adapter or server, its status is {kit.poll()}")


def interrupted(
    words: list[str], number: signal.Signals, wanted: Callable[[psutil.Process], bool], cwd: Path
) -> tuple[int, str]:
    """Start a run, signal its process group in the middle, and wait until all is gone; exit status and output."""
    with temp_folder() as temp, (cwd / "log").open("w+", encoding="utf-8") as log:
        kit = subprocess.Popen(
            [sys.executable, "-m", "holdfast.conformance.cli", "verify", "--evidence", str(cwd / "run.jsonl"), *words],
            cwd=cwd,
            env=environment(temp),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            await_child(temp, kit, wanted)
            # A moment further, into the first requests.
            time.sleep(0.3)
            os.killpg(kit.pid, number)
            status = kit.wait(timeout=GOES_S)
            deadline = time.monotonic() + GOES_S
            while something_remains(temp) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert_nothing_remains(temp)
        finally:
            if kit.poll() is None:
                kit.kill()
                kit.wait()
        log.seek(0)
        return status, log.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name)
def test_nothing_remains_when_the_kit_is_ended_while_an_adapter_hangs(number: signal.Signals, tmp_path: Path) -> None:
    adapter = [sys.executable, str(HERE / "adapters" / "hang_on_call.py")]
    status, said = interrupted(["--contract", "toy", "--", *adapter], number, is_adapter, tmp_path)
    assert status != 0, said
    text = (tmp_path / "run.jsonl").read_text(encoding="utf-8") if (tmp_path / "run.jsonl").exists() else ""
    assert '"type":"footer"' not in text, "a run that was cut off has no footer"
    if number is signal.SIGINT:
        assert status == 12, said
        assert "interrupted" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_no_server_remains_when_the_kit_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    status, said = interrupted(["reference"], number, is_server, tmp_path)
    assert status != 0, said
