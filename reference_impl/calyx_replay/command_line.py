"""The operator's command line on this mailbox, as another process (provocation `command_line`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.commanding import commanded


class CommandLine:
    """Runs `python -m holdfast.reference_impl calyx` with the session's frozen clock and its config."""

    def __init__(self, root: Path, config: Mapping[str, str], mutant: str | None) -> None:
        self._root = root
        self._config = config
        self._mutant = mutant

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        """Exit status and all output. Raises OSError, subprocess.SubprocessError."""
        return commanded(["calyx", *self.words(arguments, now=now)])

    def words(self, arguments: Sequence[str], *, now: datetime) -> list[str]:
        """The words of the command line."""
        planted = [] if self._mutant is None else ["--mutant", self._mutant]
        config = ["--config", json.dumps(dict(self._config))]
        return [*arguments, "--root", str(self._root), "--clock", written(now), *config, *planted]
