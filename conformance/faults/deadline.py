"""The deadline of a whole command: after it every wait ends, and unfinished work does not count."""

from __future__ import annotations

import math
import time


class OutOfTimeError(Exception):
    """The time has ended. It says nothing of unfinished work: a trial that was cut off does not count."""


class Deadline:
    """A deadline on the monotonic clock; without seconds there is none."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds` from now on."""
        self.at = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, or 0."""
        return max(0.0, self.at - time.monotonic())

    def check(self) -> None:
        """Raises OutOfTimeError if the deadline is over."""
        if time.monotonic() >= self.at:
            raise OutOfTimeError("the time is over")
