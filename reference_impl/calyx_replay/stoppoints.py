"""Stop points inside the transactions (docs/adapter-protocol.md, "Stop points"). Unarmed, they do nothing."""

from __future__ import annotations

import time
from enum import Enum, unique
from pathlib import Path

from reference_impl.patience import Patience

# The protocol lets an implementation give up after this long.
HOLD_GIVE_UP_S = 20.0
_POLL_S = 0.005


@unique
class Point(Enum):
    """Places of a transaction, in order; see `hold_at` in methods.yaml."""

    BEFORE_INSERT = "before_insert"
    AFTER_INSERT = "after_insert"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


@unique
class StopFault(Enum):
    """What happens at an armed point."""

    HOLD = "hold"
    ABORT = "abort"


class AbortedError(Exception):
    """The operation was told to fail here."""


class StopPoints:
    """At most one armed point of one worker."""

    def __init__(self, workdir: Path, patience: Patience) -> None:
        self._folder = workdir / "hold"
        self._patience = patience
        self._armed: tuple[Point, StopFault] | None = None

    def arm(self, point: Point, fault: StopFault) -> None:
        """Arm one point for the next accept, prune or migrate of this worker."""
        self._armed = (point, fault)

    def disarm(self) -> None:
        """That call is over, whether the point was reached or not."""
        self._armed = None

    def reach(self, point: Point) -> None:
        """The operation is at `point`. Raises AbortedError as armed."""
        if self._armed is None or self._armed[0] is not point:
            return
        fault = self._armed[1]
        self._armed = None
        if fault is StopFault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        self._hold(point)
        self._patience.begin()

    def _hold(self, point: Point) -> None:
        self._folder.mkdir(exist_ok=True)
        (self._folder / f"{point.value}.reached").touch()
        release = self._folder / f"{point.value}.release"
        deadline = time.monotonic() + HOLD_GIVE_UP_S
        while not release.exists():
            if time.monotonic() > deadline:
                raise AbortedError(f"nobody released {point.value} in {HOLD_GIVE_UP_S:g} s")
            time.sleep(_POLL_S)
