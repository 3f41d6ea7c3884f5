"""Until when an assessment waits: every wait for something outside of this process asks here for how long."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

# What an assessment takes on a slow machine, several times over.
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of `time.monotonic()`. After it all waiting ends."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline that lies `seconds` from now."""
        return cls(time.monotonic() + seconds)

    def left(self, longest: float = math.inf) -> float:
        """Seconds until it, never negative, and at most `longest`."""
        return min(longest, max(0.0, self.at - time.monotonic()))

    def earlier(self, seconds: float) -> Deadline:
        """The deadline `seconds` before this one, for work that must leave time for something else."""
        return Deadline(self.at - seconds)


# For a server that is used by tests alone.
NEVER = Deadline()
