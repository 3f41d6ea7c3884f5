"""The reference on a machine that is slow, or busy with other work: nothing sound is accused or left unproven."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.hostile.test_starvation import crowded
from tests.hostile.verify import HERE, assert_nothing_remains, holdfast, temp_folder

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


def unproven(
    before: Sequence[str],
    *options: str,
    folder: Path,
    cases: Sequence[str] = (),
    target: Sequence[str] = ("reference",),
) -> dict[str, str]:
    """The cases of a run that do not conform, with what is said of them; `cases`, by the ends of their ids, or all."""
    narrowed = ["-k", " or ".join(cases)] if cases else []
    words = ["verify", *options, *narrowed, "--evidence", "run.jsonl", *target]
    with temp_folder() as temp:
        done = holdfast(*words, temp=temp, cwd=folder, before=before, limit=LIMIT_S)
        assert_nothing_remains(temp)
    evidence = folder / "run.jsonl"
    assert evidence.exists(), done.stderr
    lines = [json.loads(line) for line in evidence.read_text(encoding="utf-8").splitlines()]
    assert "factor" in lines[0]["environment"]["pace"]
    assert lines[0]["deadlines"]["slow"] >= 1
    verdicts = [line for line in lines if line["type"] == "verdict"]
    assert verdicts, done.stdout
    assert {*cases} <= {line["case"].rpartition("/")[2] for line in verdicts}
    return {line["case"]: f"{line['verdict']} {line['detail']}" for line in verdicts if line["verdict"] != "conforms"}


def test_commands_of_operators_are_proven_with_half_of_one_processor(tmp_path: Path) -> None:
    with half_a_processor() as before:
        assert unproven(before, "--contract", "calyx-replay", cases=CASES, folder=tmp_path) == {}


@pytest.mark.sweep
@pytest.mark.parametrize("machine", [half_a_processor, load])
def test_a_whole_contract_is_proven_on_a_slow_machine(machine: type, tmp_path: Path) -> None:
    with machine() as before:
        assert unproven(before, "--contract", "calyx-replay", folder=tmp_path) == {}


# An honest implementation that takes its time: what a case shows rests on facts, never on who is faster.

# Ten times what a case of two workers takes by itself, and less than any deadline.
DELAY_S = 0.15
REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl")
# Every way in which two calls meet: one loses, one waits and wins, one nonce, one compensation.
MEETINGS = (
    "the-attempt-that-waited-collides-with-the-winner",
    "the-waiting-attempt-wins-when-the-first-one-dies",
    "a-nonce-about-to-be-consumed-does-not-pay-twice",
    "of-two-compensations-at-once-one-has-an-effect",
    "two-attempts-at-once-have-one-effect",
)


@pytest.mark.sweep
def test_calls_that_meet_are_judged_alike_however_slow_the_adapter_is(tmp_path: Path) -> None:
    slow = (sys.executable, str(HERE / "adapters" / "slow_line.py"), str(DELAY_S), *REFERENCE, "adapter")
    target = ("--launcher", shlex.join((*REFERENCE, "launch")), "--", *slow)
    options = ("--contract", "rs4a-replay", "--config", "store=sqlite", "--jobs", "2")
    assert unproven((), *options, cases=MEETINGS, target=target, folder=tmp_path) == {}
