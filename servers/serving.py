"""The launcher's side: read the request, provision, answer in one line, wait for end of file, clean up.

`launcher.Launcher` is the other side. docs/adapter-protocol.md, "Launchers"; specs/schemas/launcher.schema.json is the
published form of the answer.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

_Line = TypeVar("_Line", bound="LaunchRequest | Ready")


@unique
class Stores(Enum):
    """Where the stores of a launcher's sessions may lie.

    `CONFINED`: each in the workdir of its session as a whole, the database server included. Then the folder may be
    copied, rebuilt and opened elsewhere, and everything killed. A launcher need not support it: the kit checks.
    """

    ANYWHERE = "anywhere"
    CONFINED = "confined"


class LaunchRequest(msgspec.Struct, frozen=True, rename={"folder": "dir"}):
    """What the kit asks for: the contract, a folder to use, and the config of the sessions to come."""

    contract: str
    folder: str
    config: Mapping[str, str]
    confined: bool = False

    @property
    def stores(self) -> Stores:
        """Where the stores may lie."""
        return Stores.CONFINED if self.confined else Stores.ANYWHERE


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a launcher answers: the config for `open`, and what must be gone at the end even if it dies.

    `surface` says where the stores of sessions are (surface.schema.json), if the kit may look at them.
    """

    config: Mapping[str, str]
    processes: tuple[Annotated[int, msgspec.Meta(ge=2)], ...] = ()
    paths: tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...] = ()
    surface: Mapping[str, Any] | msgspec.UnsetType = msgspec.UNSET


def encode(line: LaunchRequest | Ready) -> bytes:
    """The line with its end."""
    return msgspec.json.encode(line) + b"\n"


def decode(data: bytes, kind: type[_Line]) -> _Line:
    """Read one line. Raises ValueError, whose text repeats no value of the line."""
    try:
        line = msgspec.json.decode(data, type=kind)
        # msgspec takes the last of two members with one name; such a line is ambiguous, so it is refused.
        json.loads(data, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return line


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member name stands twice")
    return found


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


def folder_template(parent: Path, fill: Callable[[Path], object], **config: str) -> FolderTemplate:
    """A new folder below `parent`, which `fill` fills and `template` of the config names. Raises what `fill` does."""
    folder = Path(tempfile.mkdtemp(prefix="hf-template-", dir=parent))
    template = FolderTemplate(folder, {**config, "template": str(folder)})
    try:
        fill(folder)
    except BaseException:
        template.stop()
        raise
    return template


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
