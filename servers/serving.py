"""The launcher's side: read the request, provision, answer in one line, wait for end of file, clean up.

`launcher.Launcher` is the other side.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from holdfast.servers.lines import LaunchRequest, Ready, decode, encode

# How often a launcher checks for session stores whose workdir is gone; a session of the kit lasts about this long.
SWEEP_S = 0.15


class Launched:
    """What was provisioned, which can be swept and taken down. By itself it is nothing: a contract may need nothing."""

    @property
    def ready(self) -> Ready:
        """The answer."""
        return Ready({})

    def sweep(self) -> None:
        """Remove what no session needs any more. Never raises."""

    def stop(self) -> None:
        """Take everything down. Never raises."""


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


@dataclass(frozen=True, slots=True)
class FolderTemplate(Launched):
    """A folder that sessions copy into their workdirs; `config` names it for them."""

    folder: Path
    config: Mapping[str, str]

    @property
    def ready(self) -> Ready:
        """See `Launched`."""
        return Ready(self.config, paths=(str(self.folder),))

    def stop(self) -> None:
        """See `Launched`."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _request(line: bytes) -> LaunchRequest:
    try:
        return decode(line, LaunchRequest)
    except ValueError as error:
        # It may hold a password, so its text is not repeated.
        raise ValueError(
            "expected one JSON line with contract, dir and config on standard input, "
            f"got {len(line)} bytes that are not one: {error}"
        ) from error


def _first_line() -> bytes:
    """One line of standard input, read byte for byte so that nothing after it is taken along."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
    return line


def run(start: Callable[[LaunchRequest], Launched]) -> None:
    """Read the request, start the store, print one JSON line, wait for end of file or a signal, and take it down."""
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in ending:
        signal.signal(number, _leave)
    launched: Launched | None = None
    try:
        launched = start(_request(_first_line()))
        sys.stdout.buffer.write(encode(launched.ready))
        sys.stdout.buffer.flush()
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
