"""The failpoints of a delivery, wrapped around the one step in which a row is in flight."""

from __future__ import annotations

from enum import Enum, unique

from holdfast.reference_impl.failpoints import HoldOrAbort, wrap
from holdfast.reference_impl.mesh_delivery.daemon import Daemon


@unique
class Point(Enum):
    """Places of an attempt."""

    IN_FLIGHT = "in_flight"
    ANSWERED = "answered"


class DeliveryFailpoints(HoldOrAbort[Point]):
    """The failpoints of one daemon. Only holds are armed."""

    def watch(self, daemon: Daemon) -> None:
        """Put them around the step."""
        wrap(daemon, "answer_to", self.around(Point.IN_FLIGHT, Point.ANSWERED))
