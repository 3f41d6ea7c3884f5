"""Stop points inside the transactions (docs/adapter-protocol.md, "Stop points")."""

from __future__ import annotations

from enum import Enum, unique
from pathlib import Path

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.stops import AbortedError, Stops


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


class StopPoints(Stops[Point, StopFault]):
    """Those of accept, prune and migrate."""

    def __init__(self, workdir: Path, patience: Patience) -> None:
        super().__init__(workdir)
        self._patience = patience

    def reach(self, point: Point) -> None:
        """The operation is at `point`. Raises AbortedError as armed."""
        fault = self._taken(point)
        if fault is StopFault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        if fault is StopFault.HOLD:
            self._hold(point)
            self._patience.begin()
