"""The launcher's frame, the same for every contract: be ready, say so in one line, wait for end of file, clean up."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn, Protocol

# How often a launcher looks for session stores whose workdir is gone; a session of the kit lasts about this long.
SWEEP_S = 0.15


@dataclass(frozen=True, slots=True)
class Ready:
    """What the kit needs to know: the config for `open`, and what must be gone at the end even if this one dies."""

    config: Mapping[str, str]
    processes: Sequence[int]
    paths: Sequence[str]


class Launched(Protocol):
    """Something provisioned that can be swept and taken down."""

    @property
    def ready(self) -> Ready:
        """What to print."""

    def sweep(self) -> None:
        """Remove what nobody needs any more. Never raises."""

    def stop(self) -> None:
        """Take everything down. Never raises."""


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def run(start: Callable[[], Launched]) -> None:
    """Start, print one JSON line, wait for end of file on standard input or for a signal, and take it down."""
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in ending:
        signal.signal(number, _leave)
    launched: Launched | None = None
    try:
        launched = start()
        ready = launched.ready
        line = {"config": dict(ready.config), "processes": list(ready.processes), "paths": list(ready.paths)}
        print(json.dumps(line), flush=True)
        while True:
            readable, _, _ = select.select([sys.stdin], [], [], SWEEP_S)
            if not readable:
                launched.sweep()
            elif not os.read(sys.stdin.fileno(), 4096):
                return
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_IGN)
        if launched is not None:
            launched.stop()
