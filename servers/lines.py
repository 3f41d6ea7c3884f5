"""The two lines of a launcher: what it is asked for, and what it answers when it is ready.

docs/adapter-protocol.md, "Launchers"; specs/schemas/launcher.schema.json is the published form of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, unique
from typing import Annotated, Any, TypeVar

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
