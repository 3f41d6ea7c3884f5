"""The reference on a machine that is slow, or busy with other work: nothing sound is accused or left unproven."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.hostile.test_starvation import crowded
from tests.hostile.verify import environment, temp_folder

# Both hierarchies of control groups: the folder, the file of the limit, and what half a processor is in it.
GROUPS = (
    (Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us", "50000"),
    (Path("/sys/fs/cgroup"), "cpu.max", "50000 100000"),
)
# Operators' commands, each of them the start of an interpreter, and a case that restarts.
CASES = ("the-command-line-migrates-this-mailbox", "an-operator-can-look", "a-restart-forgets-no-cutoff")
LIMIT_S = 3600.0


@contextlib.contextmanager
def half_a_processor() -> Iterator[list[str]]:
    """The words before a command that let it have half of one processor: by a quota, or else beside another program."""
    cpu = max(os.sched_getaffinity(0))
    alone = ["taskset", "-c", str(cpu)]
    for root, name, limit in GROUPS:
        group = root / f"holdfast-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(limit, encoding="ascii")
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        try:
            yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *alone]
        finally:
            group.rmdir()
        return
    with crowded(cpu, 1):
        yield alone


@contextlib.contextmanager
def load() -> Iterator[list[str]]:
    """Sixteen programs that want a processor all the time."""
    with contextlib.ExitStack() as stack:
        for number in range(16):
            cpus = sorted(os.sched_getaffinity(0))
            stack.enter_context(crowded(cpus[number % len(cpus)], 1))
        yield []


def unproven(before: Sequence[str], *options: str, folder: Path) -> dict[str, str]:
    """The cases of a run of the reference that do not conform, with what is said of them."""
    with temp_folder() as temp:
        words = [*before, sys.executable, "-m", "holdfast.conformance.cli", "verify", "reference", *options]
        done = subprocess.run(
            [*words, "--evidence", "run.jsonl"],
            cwd=folder,
            env=environment(temp),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    evidence = folder / "run.jsonl"
    assert evidence.exists(), done.stderr
    lines = [json.loads(line) for line in evidence.read_text(encoding="utf-8").splitlines()]
    assert "factor" in lines[0]["environment"]["pace"]
    assert lines[0]["deadlines"]["slow"] >= 1
    verdicts = [line for line in lines if line["type"] == "verdict"]
    assert verdicts, done.stdout
    return {line["case"]: f"{line['verdict']} {line['detail']}" for line in verdicts if line["verdict"] != "conforms"}


def test_commands_of_operators_are_proven_with_half_of_one_processor(tmp_path: Path) -> None:
    with half_a_processor() as before:
        found = unproven(before, "--contract", "calyx-replay", "-k", " or ".join(CASES), folder=tmp_path)
    assert found == {}


@pytest.mark.sweep
@pytest.mark.parametrize("machine", [half_a_processor, load])
def test_a_whole_contract_is_proven_on_a_slow_machine(machine: type, tmp_path: Path) -> None:
    with machine() as before:
        assert unproven(before, "--contract", "calyx-replay", folder=tmp_path) == {}
