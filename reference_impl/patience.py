"""How long one operation may wait for a store that does not answer, over all its waits."""

from __future__ import annotations

import time

from holdfast.servers.pace import scaled

# docs/adapter-protocol.md: an operation has 2 s. The machine and the pipe need a part of them.
PATIENCE_S = scaled(1.4)


class Patience:
    """A budget of seconds for the operation that began last. One for each session, shared by its connections."""

    def __init__(self, seconds: float = PATIENCE_S) -> None:
        """A budget that runs from now on."""
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """An operation begins, or goes on after it was held up on purpose: its waiting is counted from here."""
        self._ends = time.monotonic() + self._seconds

    def left(self) -> float:
        """Seconds that may still be waited; 0 when they are used up, never less."""
        return max(0.0, self._ends - time.monotonic())
