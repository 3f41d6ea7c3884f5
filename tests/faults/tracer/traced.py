"""Runs small programs under the tracer and reads what it recorded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.conformance.faults import fidelity, recording
from holdfast.conformance.faults.recording import Action, Event, Named, Names, Recording
from holdfast.conformance.faults.tracer import Injection
from tests.pace import busy

PATIENCE_S = 30
# What every program may use: the work directory is its current one.
PRELUDE = """
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def make(name, data=b"", flags=0):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | flags)
    if data:
        os.write(fd, data)
    return fd
"""


@dataclass(frozen=True)
class Run:
    """What a run left: its recording, its directory, and how the tracer ended."""

    recording: Recording
    workdir: Path
    status: int
    output: bytes
    errors: str

    @property
    def actions(self) -> list[Action]:
        """Without events, and without the rights of what was made."""
        return [_bare(one.action) for one in self.recording.operations if not isinstance(one.action, Event)]

    @property
    def differences(self) -> tuple[str, ...]:
        return fidelity.differences(self.recording, self.workdir)

    def assert_whole(self) -> None:
        """The program did all of its work, and the tracer observed all of it."""
        assert self.status == 0, self.errors
        assert self.differences == ()
        assert self.recording.ending.untraced == ()
        assert not [one for one in self.recording.operations if one.call == "unseen"]


def trace(command: Sequence[str], tmp_path: Path, fault: Injection | None = None) -> Run:
    """Run a command in the folder `work` of `tmp_path`, which it makes unless it is there."""
    workdir, out = tmp_path / "work", tmp_path / "recording"
    workdir.mkdir(exist_ok=True)
    done = subprocess.run(
        (fault or Injection()).argv(out, workdir, command),
        cwd=workdir,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=busy(PATIENCE_S),
        check=False,
    )
    assert out.exists(), done.stderr.decode()
    return Run(recording.read(out), workdir, done.returncode, done.stdout, done.stderr.decode())


def _bare(action: Action) -> Action:
    if isinstance(action, Names):
        changes = (one._replace(rights=None) if isinstance(one, Named) else one for one in action.changes)
        return Names(tuple(changes))
    return action


def program(source: str) -> list[str]:
    """The command line of a program. For speed it is spared the site module, and imports that it does not use."""
    imports = "".join(f"import {name}\n" for name in ("mmap", "socket", "subprocess", "threading") if name in source)
    return [sys.executable, "-S", "-c", PRELUDE + imports + source]


def run(source: str, tmp_path: Path, fault: Injection | None = None) -> Run:
    """Run a Python program under the tracer."""
    return trace(program(source), tmp_path, fault)


def whole(source: str, tmp_path: Path, fault: Injection | None = None) -> Run:
    """The same for one that is to do all of its work."""
    done = run(source, tmp_path, fault)
    done.assert_whole()
    return done
