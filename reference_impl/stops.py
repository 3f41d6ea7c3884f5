"""Armed stop points (docs/adapter-protocol.md, "Stop points"): what they have in common in every contract."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.servers.environment import scaled

# The protocol lets an implementation give up after this long.
HOLD_GIVE_UP_S = scaled(20.0)
_POLL_S = 0.005

_Point = TypeVar("_Point", bound=Enum)
_Fault = TypeVar("_Fault", bound=Enum)


class AbortedError(Exception):
    """The operation was told to fail here."""


class Stops(Generic[_Point, _Fault]):
    """At most one armed point of one worker. Unarmed, it does nothing."""

    def __init__(self, workdir: Path) -> None:
        self._folder = workdir / "hold"
        self._armed: tuple[_Point, _Fault] | None = None

    @property
    def armed(self) -> bool:
        """Whether a point waits to be reached."""
        return self._armed is not None

    def arm(self, point: _Point, fault: _Fault) -> None:
        """Arm one point for the next operation of this worker."""
        self._armed = (point, fault)

    def disarm(self) -> None:
        """That call is over, whether the point was reached or not."""
        self._armed = None

    def _taken(self, point: _Point) -> _Fault | None:
        """What is to happen at `point`, once; None if nothing is."""
        if self._armed is None or self._armed[0] is not point:
            return None
        fault = self._armed[1]
        self._armed = None
        return fault

    def _hold(self, point: _Point) -> None:
        """Say that the point is reached, and wait until it is released. Raises AbortedError if nobody does."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / f"{point.value}.reached").touch()
        release = self._folder / f"{point.value}.release"
        deadline = time.monotonic() + HOLD_GIVE_UP_S
        while not release.exists():
            if time.monotonic() > deadline:
                raise AbortedError(f"nobody released {point.value} in {HOLD_GIVE_UP_S:g} s")
            time.sleep(_POLL_S)
