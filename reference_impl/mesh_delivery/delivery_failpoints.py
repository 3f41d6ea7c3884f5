"""The failpoints of a delivery, wrapped around the one step in which a row is in flight."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from typing import Any

from holdfast.reference_impl import failpoints
from holdfast.reference_impl.failpoints import wrap
from holdfast.reference_impl.mesh_delivery.daemon import Daemon


@unique
class Point(Enum):
    """Places of an attempt."""

    IN_FLIGHT = "in_flight"
    ANSWERED = "answered"


@unique
class Fault(Enum):
    """What happens at an armed failpoint."""

    HOLD = "hold"


class DeliveryFailpoints(failpoints.Failpoints[Point, Fault]):
    """The failpoints of one daemon."""

    def watch(self, daemon: Daemon) -> None:
        """Put them around the step."""
        wrap(daemon, "answer_to", self._around)

    def _around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            self._reach(Point.IN_FLIGHT)
            found = step(*args)
            self._reach(Point.ANSWERED)
            return found

        return wrapped

    def _reach(self, point: Point) -> None:
        if self.taken(point) is Fault.HOLD:
            self.hold(point)
