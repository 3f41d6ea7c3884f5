"""Runs the real command line against an adapter, in a temp folder of its own, and reads the evidence."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests import warm
from tests.pace import busy

HERE = Path(__file__).resolve().parent
TOY, ADAPTERS = HERE.parent / "toycontract", HERE / "adapters"
# How long what was killed may take to be gone from the process table.
GONE_S = 3.0
# No run of the toy contract takes nearly as long, with any adapter; more is a hang of the kit.
LIMIT_S = 120.0


def adapter(name: str, *words: str) -> tuple[str, ...]:
    """The command of an adapter in Python; those that are honest but for one thing are classes of one module."""
    own = ADAPTERS / f"{name}.py"
    return (sys.executable, *([str(own)] if own.exists() else [str(ADAPTERS / "flawed.py"), name]), *words)


def mine(program: str, folder: Path) -> tuple[str, ...]:
    """The command of an adapter whose `program` is written there: it knows the honest one, and may be a class of it."""
    file = folder / "adapter.py"
    begins = f"import os, sys, time\nsys.path.insert(0, {str(ADAPTERS)!r})\nfrom honest import Adapter\n"
    file.write_text(begins + textwrap.dedent(program), encoding="utf-8")
    return sys.executable, str(file)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of `holdfast verify` left behind."""

    exit: int
    stdout: str
    stderr: str
    lines: tuple[Mapping[str, Any], ...]

    @property
    def plan(self) -> tuple[str, ...]:
        """The planned cases, in order."""
        return tuple(self.lines[0]["plan"])

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict by case; the failure mode follows after a colon: `no_verdict:hang`."""
        found: dict[str, str] = {}
        for line in self.lines:
            if line["type"] == "verdict":
                assert line["case"] not in found, f"two verdicts of {line['case']}"
                silence = f":{line['silence']}" if line["silence"] else ""
                found[line["case"]] = line["verdict"] + silence
        return found

    @property
    def exchanges(self) -> tuple[Mapping[str, Any], ...]:
        """Every exchange, in order."""
        return tuple(line for line in self.lines if line["type"] == "exchange")

    @property
    def footer(self) -> Mapping[str, Any]:
        """The last line."""
        assert self.lines[-1]["type"] == "footer"
        return self.lines[-1]


@contextlib.contextmanager
def temp_folder() -> Iterator[Path]:
    """A folder on a disk: a workdir on tmpfs gets no durability verdict, and /tmp is one on many machines."""
    with tempfile.TemporaryDirectory(prefix="hostile-", dir="/var/tmp") as name:
        # A server that gives up root must be able to go there.
        Path(name).chmod(0o755)
        yield Path(name)


def environment(temp: Path) -> dict[str, str]:
    """The environment of a run: the toy contract, and a temp folder of its own, which also marks its processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "HOLDFAST_", "COV_"))}
    return {**kept, "HOLDFAST_SPECS": str(TOY), "TMPDIR": str(temp), "NO_COLOR": "1", "COLUMNS": "200"}


def holdfast(
    *words: str,
    temp: Path,
    cwd: Path,
    extra: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    limit: float = LIMIT_S,
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, within `limit` seconds, behind the words `before`."""
    env = {**environment(temp), **(extra or {})}
    if not before:
        return warm.run(words, cwd=cwd, env=env, limit=limit)
    return subprocess.run(
        [*before, sys.executable, "-m", "holdfast.conformance.cli", *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=busy(limit),
        check=False,
    )


def verify(
    adapter: Sequence[str],
    *,
    options: Sequence[str] = (),
    cwd: Path,
    contract: str = "toy",
    specs: Path = TOY,
    before: Sequence[str] = (),
    limit: float = LIMIT_S,
) -> Outcome:
    """`holdfast verify` on one contract. For every behaviour of the adapter, nothing of the run may remain."""
    evidence = cwd / "run.jsonl"
    with temp_folder() as temp:
        words = ["verify", "--contract", contract, "--evidence", str(evidence), *options, "--", *adapter]
        extra = {"HOLDFAST_SPECS": str(specs)}
        ended = holdfast(*words, temp=temp, cwd=cwd, extra=extra, before=before, limit=limit)
        assert_nothing_remains(temp)
    text = evidence.read_text(encoding="utf-8") if evidence.exists() else ""
    # A document may hold other characters that end a line for Python.
    lines = tuple(json.loads(line) for line in text.split("\n") if line)
    return Outcome(ended.returncode, ended.stdout, ended.stderr, lines)


def processes_of(temp: Path) -> list[psutil.Process]:
    """Every process that has to do with the folder: by its environment, its arguments or where it stands."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            places = [*process.cmdline(), *process.environ().values()]
            with contextlib.suppress(psutil.Error):
                places.append(process.cwd())
            if any(str(temp) in place for place in places):
                found.append(process)
    return found


def assert_nothing_remains(temp: Path, within: float = GONE_S) -> None:
    """No process and no folder; waits a moment for what is being reaped."""
    deadline = time.monotonic() + busy(within)
    while (processes_of(temp) or any(temp.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [f"{process.pid} {' '.join(process.cmdline())[:200]}" for process in processes_of(temp)]
    assert not left, f"still running: {left}"
    assert not list(temp.iterdir()), f"left in the temp folder: {sorted(map(str, temp.rglob('*')))[:20]}"
