"""The operator's command line on the store of this session, as another process (provocation `command_line`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.reference_impl.commanding import commanded


class CommandLine:
    """Runs `python -m holdfast.reference_impl m5` with the session's config."""

    def __init__(self, root: Path, config: Mapping[str, str], mutant: str | None) -> None:
        self._root = root
        self._config = config
        self._mutant = mutant

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        """Exit status and standard output. Raises OSError, subprocess.SubprocessError."""
        # A file of op-append lies in the workdir.
        words = ["m5", *self.words(arguments)]
        return commanded(words, environment=environment, folder=self._root, with_errors=False)

    def words(self, arguments: Sequence[str]) -> list[str]:
        """The words of the command line."""
        planted = [] if self._mutant is None else ["--mutant", self._mutant]
        return [*arguments, "--root", str(self._root), "--config", json.dumps(dict(self._config)), *planted]
