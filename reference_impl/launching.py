"""The launcher's frame, the same for every contract: be ready, say so in one line, wait for end of file, clean up."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

# How often a launcher looks for session stores whose workdir is gone; a session of the kit lasts about this long.
SWEEP_S = 0.15


@dataclass(frozen=True, slots=True)
class Ready:
    """What the kit needs to know: the config for `open`, and what must be gone at the end even if this one dies."""

    config: Mapping[str, str]
    processes: Sequence[int]
    paths: Sequence[str]
    # Where the stores of sessions are (specs/schemas/surface.schema.json), if whoever asks may look at them.
    surface: Mapping[str, str] | None = None


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


@unique
class Stores(Enum):
    """Where the stores of sessions may lie: anywhere, or each in its session's workdir as a whole, server and all."""

    ANYWHERE = "anywhere"
    CONFINED = "confined"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the kit asks a launcher for: the contract, a folder to use, and the config of the sessions to come."""

    contract: str
    folder: Path
    config: Mapping[str, str]
    stores: Stores = Stores.ANYWHERE


class Nothing:
    """Implements `Launched` for a contract that needs nothing provisioned."""

    ready = Ready({}, (), ())

    def sweep(self) -> None:
        """See `Launched`."""

    def stop(self) -> None:
        """See `Launched`."""


@dataclass(frozen=True, slots=True)
class FolderTemplate:
    """Implements `Launched`: a folder that sessions copy into their workdirs; `key` names it in their config."""

    key: str
    folder: Path

    @property
    def ready(self) -> Ready:
        """See `Launched`."""
        return Ready({self.key: str(self.folder)}, (), (str(self.folder),))

    def sweep(self) -> None:
        """See `Launched`."""

    def stop(self) -> None:
        """See `Launched`."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _wanted(line: bytes) -> Wanted:
    try:
        asked = loads(line)
        stores = Stores.CONFINED if asked.get("confined", False) is True else Stores.ANYWHERE
        return Wanted(asked["contract"], Path(asked["dir"]), dict(asked["config"]), stores)
    except (StrictJsonError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "expected one JSON line with contract, dir and config on standard input, "
            f"got {len(line)} bytes that are none: {error}"
        ) from error


def _first_line() -> bytes:
    """One line of standard input, read byte for byte so that nothing after it is taken along."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
    return line


def run(start: Callable[[Wanted], Launched]) -> None:
    """Read what is wanted, start it, print one JSON line, wait for end of file or a signal, and take it down."""
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in ending:
        signal.signal(number, _leave)
    launched: Launched | None = None
    try:
        launched = start(_wanted(_first_line()))
        ready = launched.ready
        line: dict[str, object] = {"config": dict(ready.config)}
        line |= {"processes": list(ready.processes), "paths": list(ready.paths)}
        if ready.surface is not None:
            line["surface"] = dict(ready.surface)
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
