"""What the adapter needs to know about a contract's implementation, and nothing more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, unique
from pathlib import Path
from typing import Any, Protocol

from holdfast.reference_impl.answers import Answer


class OpenError(Exception):
    """A session cannot be opened; the text says what was expected, what came, and what to do."""


class OpenRefusedError(OpenError):
    """A session is refused for a reason of the contract."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@unique
class StateWanted(Enum):
    """`fresh`: a clone of the provisioned template; `existing`: what is in the workdir."""

    FRESH = "fresh"
    EXISTING = "existing"


@unique
class SurfaceWanted(Enum):
    """`ready`: a provisioned surface is configured; `absent`: none is."""

    READY = "ready"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The members of an `open` request after the adapter has read them. `now` is the frozen clock."""

    state: StateWanted
    surface: SurfaceWanted
    workdir: Path
    now: datetime
    config: Mapping[str, str]


# The folder of a provisioned template may stand in a config, besides the contract's parameters by name.
TEMPLATE_KEY = "template"
LAUNCH_ADVICE = "run `python -m holdfast.reference_impl launch` and pass the config that it prints"


@contextlib.contextmanager
def template_of(config: Mapping[str, str]) -> Iterator[Path]:
    """The folder that a fresh session copies. Raises OpenError, for an OSError of the copying too."""
    template = config.get(TEMPLATE_KEY)
    if not template or not Path(template).is_dir():
        raise OpenError(
            f"config {TEMPLATE_KEY}: expected the folder of a provisioned template, got {template!r}; {LAUNCH_ADVICE}"
        )
    try:
        yield Path(template)
    except OSError as error:
        raise OpenError(f"the template cannot be copied into the workdir: {error}; {LAUNCH_ADVICE}") from error


class Session(Protocol):
    """One open session of one contract."""

    def call(self, method: str, args: Any) -> Answer:
        """Answer one call; what it raises becomes a `fault`."""

    @property
    def place(self) -> Mapping[str, str] | None:
        """Where its store is (specs/schemas/surface.schema.json); None where the kit does not need it."""

    def set_clock(self, now: datetime) -> None:
        """Set the frozen clock."""

    def close(self) -> None:
        """Give back connections and files. Never raises for a store that is gone."""


class Implementation:
    """One contract's implementation, ready to open sessions."""

    __slots__ = ()

    def open(self, request: OpenRequest) -> Session:
        """Open a session. Raises OpenError."""
        raise NotImplementedError

    def shut_down(self) -> None:
        """The adapter ends: remove all unused state of its sessions. Most leave none. Never raises."""
