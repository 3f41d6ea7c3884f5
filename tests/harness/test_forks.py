"""The adapter of the reference is forked: of which command, in which environment, with which order of sets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from holdfast.conformance.adapter.forks import Forks
from holdfast.conformance.cli.target import reference_target, target_of
from holdfast.conformance.faults.recording import read
from holdfast.conformance.faults.tracer import Injection
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.settings import RunSettings
from holdfast.servers.environment import adapter_environment
from holdfast.servers.janitor import Janitor
from tests.hostile.verify import temp_folder

PROGRAM = """
import os, sys
from holdfast.servers.pace import scaled
from holdfast.servers.forkserver import serve

# As an adapter reads a limit of its own.
LIMIT = scaled(1.0)

def main(words):
    print(*words, os.getppid(), hash("text"), LIMIT, flush=True)
    return 0

if sys.argv[1] == "forkserver":
    serve(int(sys.argv[-1]), main)
else:
    main(sys.argv[1:])
"""


@pytest.fixture
def program(tmp_path: Path) -> tuple[str, ...]:
    """A program that says who started it, how it hashes, and a limit that it read when it was imported."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return (sys.executable, str(path))


@pytest.fixture
def forks(program: tuple[str, ...]) -> Iterator[Forks]:
    """Forks of the program, whose words behind its name are those of an adapter."""
    with Janitor() as janitor, Forks((*program, "forkserver"), (*program, "adapter", "a b"), janitor=janitor) as made:
        yield made


def said(forks: Forks, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What a process says of itself until it ends."""
    child = forks.start(command, environment)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    with child.stdin, child.stdout, child.stderr:
        line = child.stdout.read().decode()
    assert child.wait(timeout=60) == 0
    return line.rsplit(maxsplit=3)


def is_forked(line: Sequence[str]) -> bool:
    return line[1] != str(os.getpid())


def test_the_first_process_is_started_and_the_next_ones_are_forks(forks: Forks, program: tuple[str, ...]) -> None:
    lines = [said(forks, (*program, "adapter", "a b"), adapter_environment()) for _ in range(4)]
    assert [is_forked(line) for line in lines] == [False, True, True, True]
    assert {line[0] for line in lines} == {"adapter a b"}


def test_a_fork_and_the_next_one_hash_differently(forks: Forks, program: tuple[str, ...]) -> None:
    hashes = [said(forks, (*program, "adapter", "a b"), adapter_environment())[2] for _ in range(6)]
    assert all(one != other for one, other in pairwise(hashes))


def test_what_another_program_runs_is_started_but_for_the_tracer(
    forks: Forks, program: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    for forked, before in ((False, ["env"]), (True, Injection().argv(tmp_path / "recording", tmp_path / "work"))):
        lines = [said(forks, (*before, *program, "adapter", "a b"), adapter_environment()) for _ in range(5)]
        # The same of two fork servers has forked every other one.
        assert [line[0] for line in lines] == ["adapter a b"] * 5
        assert (lines[1][2] == lines[3][2]) is forked
    assert read(tmp_path / "recording").ending.status == 0


def test_a_fork_has_read_its_own_environment(forks: Forks, program: tuple[str, ...]) -> None:
    for slow in (1.0, 5.0):
        lines = [said(forks, (*program, "adapter", "a b"), adapter_environment(slow=slow)) for _ in range(3)]
        assert [is_forked(line) for line in lines] == [False, True, True]
        assert {float(line[3]) for line in lines} == {slow}


def test_an_engine_ends_the_forks_of_its_adapter() -> None:
    target = reference_target()
    with temp_folder() as folder, ExitStack() as pipes:
        settings = RunSettings(target.adapter, ("jcs",), "s", workdir=str(folder), forkserver=target.forkserver)
        assert msgspec.convert(json.loads(json.dumps(asdict(settings))), RunSettings) == settings
        with Engine(settings) as engine:
            children = [engine.pool.command.start(target.adapter, adapter_environment()) for _ in range(4)]
            for child in children:
                for pipe in (child.stdin, child.stdout, child.stderr):
                    assert pipe is not None
                    pipes.enter_context(pipe)
            lines = [Path(f"/proc/{child.pid}/cmdline").read_bytes().split(b"\0") for child in children]
            assert [b"forkserver" in words for words in lines] == [False, True, True, True]
            with pytest.raises(subprocess.TimeoutExpired):
                children[3].wait(timeout=0)
            # An adapter that serves already ends with 0 at a SIGTERM.
            os.killpg(children[3].pid, signal.SIGUSR1)
            assert children[3].wait(timeout=60) == -signal.SIGUSR1
        assert [child.wait(timeout=60) for child in children[1:3]] == [-signal.SIGKILL] * 2
        assert children[0].stdin is not None
        children[0].stdin.close()
        assert children[0].wait(timeout=60) == 0


def test_only_the_reference_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["holdfast", "verify", "reference"])
    assert target_of(["reference"]).forkserver
    monkeypatch.setattr(sys, "argv", ["holdfast", "verify", "--", "reference"])
    assert not target_of(["reference"]).forkserver
