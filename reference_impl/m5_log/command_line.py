"""The operator's command line on the store of this session, as another process (provocation `command_line`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import holdfast
from holdfast.servers.environment import scaled

# docs/adapter-protocol.md: the adapter has 2 s for its answer.
GIVE_UP_S = scaled(1.8)
_PACKAGE_ROOT = Path(holdfast.__file__).parents[1]


class CommandLine:
    """Runs `python -m holdfast.reference_impl m5` with the session's config."""

    def __init__(self, root: Path, config: Mapping[str, str], mutant: str | None) -> None:
        self._root = root
        self._config = config
        self._mutant = mutant

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        """Exit status and standard output. Raises OSError, subprocess.SubprocessError."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "holdfast.reference_impl", "m5", *self.words(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(_PACKAGE_ROOT), *_python_path()]),
                **environment,
            },
            # A file of op-append lies in the workdir.
            cwd=self._root,
            timeout=GIVE_UP_S,
            check=False,
        )
        return {"status": done.returncode, "output": done.stdout.decode("utf-8", "replace")}

    def words(self, arguments: Sequence[str]) -> list[str]:
        """The words of the command line."""
        planted = [] if self._mutant is None else ["--mutant", self._mutant]
        return [*arguments, "--root", str(self._root), "--config", json.dumps(dict(self._config)), *planted]


def _python_path() -> list[str]:
    return [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
