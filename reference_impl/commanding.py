"""The operator's command line of a reference, run as another process for the kit (provocation `command_line`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import holdfast
from holdfast.reference_impl.instants import format_instant
from holdfast.servers.pace import scaled

# docs/adapter-protocol.md: an answer that waits for a program has as long as a start, 30 s.
GIVE_UP_S = scaled(25.0)
_PACKAGE_ROOT = Path(holdfast.__file__).parents[1]


def commanded(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    with_errors: bool = True,
) -> dict[str, Any]:
    """Exit status and output of `python -m holdfast.reference_impl WORDS`. Raises OSError, SubprocessError."""
    path = [str(_PACKAGE_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.reference_impl", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_errors else None,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **(environment or {})},
        cwd=folder,
        timeout=GIVE_UP_S,
        check=False,
    )
    return {"status": done.returncode, "output": done.stdout.decode("utf-8", "replace")}


def session_words(config: Mapping[str, str], mutant: str | None, *, now: datetime | None = None) -> list[str]:
    """The options by which a command line has the config, the frozen clock and the planted bug of a session."""
    clock = [] if now is None else ["--clock", format_instant(now)]
    return ["--config", json.dumps(dict(config)), *clock, *([] if mutant is None else ["--mutant", mutant])]
