"""When the time of a whole command ends: what waits, waits no longer, and what was under way counts for nothing."""

from __future__ import annotations

import math
import time


class OutOfTimeError(Exception):
    """The time has ended. It says nothing of what was under way: a try that was cut off is none."""


class Deadline:
    """An end of the time, on the monotonic clock; without seconds there is none."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds` from now on."""
        self.at = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, or 0."""
        return max(0.0, self.at - time.monotonic())

    def check(self) -> None:
        """Raises OutOfTimeError if it is over."""
        if time.monotonic() >= self.at:
            raise OutOfTimeError("the time is over")
