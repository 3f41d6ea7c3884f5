"""The command line in a fork of a process that has imported it: a start costs a fifth of a fresh one.

For tests of what it does with adapters and files. How a process starts and how a signal ends it need a real start.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.pace import busy

KIT, REFERENCE = "holdfast.conformance.cli", "holdfast.reference_impl"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "holdfast.conformance.cli.commands",
        "holdfast.conformance.cli.outermost.run",
        "holdfast.conformance.cli.verify.command",
        "holdfast.conformance.cli.verify.verification",
        "holdfast.conformance.run.plugin",
        "holdfast.conformance.attacks.bench",
    ]
)


def run(words: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit: float) -> subprocess.CompletedProcess[str]:
    """Run `holdfast WORDS` to its end, in `limit` seconds of a machine of its own. Raises TimeoutExpired."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = [Path(f"/proc/{os.getpid()}/fd/{stream.fileno()}") for stream in (out, err)]
        process = _FORKS.Process(target=_holdfast, args=([*words], cwd, {**env}, *streams))
        process.start()
        process.join(busy(limit))
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([*words], limit)
        texts = [stream.read().decode(errors="replace") for stream in (out, err) if not stream.seek(0)]
    return subprocess.CompletedProcess([*words], process.exitcode, *texts)


def cold(module: str, *words: str, **more: Any) -> subprocess.CompletedProcess[Any]:
    """A module in a Python of its own, to its end. `more` is for `subprocess.run`."""
    command = [sys.executable, "-P", "-m", module, *words]
    return subprocess.run(command, **{"capture_output": True, "text": True, "check": False, **more})


def _holdfast(words: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path) -> None:
    for number, (path, flags) in enumerate([(Path(os.devnull), os.O_RDONLY), (out, os.O_WRONLY), (err, os.O_WRONLY)]):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["holdfast", *words]
    from holdfast.conformance.cli import main

    main()
