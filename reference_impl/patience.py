"""How long one operation may wait for a store that does not answer, over all its waits."""

from __future__ import annotations

import time

from holdfast.servers.environment import scaled

# docs/adapter-protocol.md: an operation has 2 s. The machine and the pipe need a part of them.
PATIENCE_S = scaled(1.4)
# The part of these that only the audit may use: after the loss of the surface the refusal is still to be recorded.
AUDIT_RESERVE_S = scaled(0.25)


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

    def short_of(self, seconds: float) -> Patience:
        """The same budget without the last seconds of it."""
        return _Shorter(self, seconds)


class _Shorter(Patience):
    """A part of another budget. It begins with that one."""

    def __init__(self, whole: Patience, seconds: float) -> None:
        self._whole, self._kept_s = whole, seconds

    def left(self) -> float:
        return max(0.0, self._whole.left() - self._kept_s)
