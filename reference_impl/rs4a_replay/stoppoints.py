"""Stop points inside the Phase-3 transaction (docs/adapter-protocol.md, "Stop points"). Unarmed, they do nothing."""

from __future__ import annotations

import time
from enum import Enum, unique
from pathlib import Path
from typing import Protocol

# The protocol lets an implementation give up after this long.
HOLD_GIVE_UP_S = 20.0
_POLL_S = 0.005


@unique
class Point(Enum):
    """Places of the transaction, in order. Before the first of them nothing is begun, and nothing is locked."""

    BEFORE_CONSUME = "before_consume"
    AFTER_NONCE_CONSUME = "after_nonce_consume"
    AFTER_REGISTRATION = "after_registration"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


@unique
class StopFault(Enum):
    """What happens at an armed point."""

    HOLD = "hold"
    ABORT = "abort"
    LOSE_BACKEND = "lose_backend"
    LOSE_ANSWER = "lose_answer"


class AbortedError(Exception):
    """The transaction was told to fail here."""


class AnswerLostError(Exception):
    """The commit's answer was lost here."""


class Line(Protocol):
    """The connection that the transaction runs on, as a fault sees it."""

    def cut(self) -> None:
        """Cut the connection at once."""

    def kill_backend(self) -> None:
        """SIGKILL the process at the other end, and wait until it is gone."""


class StopPoints:
    """At most one armed point of one worker."""

    def __init__(self, workdir: Path) -> None:
        self._folder = workdir / "hold"
        self._armed: tuple[Point, StopFault] | None = None

    @property
    def armed(self) -> bool:
        """Whether a point waits to be reached; then the transaction must run step by step."""
        return self._armed is not None

    def arm(self, point: Point, fault: StopFault) -> None:
        """Arm one point for the next register or compensate of this worker."""
        self._armed = (point, fault)

    def disarm(self) -> None:
        """That call is over, whether the point was reached or not."""
        self._armed = None

    def reach(self, point: Point, line: Line) -> None:
        """The transaction is at `point`. Raises AbortedError or AnswerLostError as armed."""
        if self._armed is None or self._armed[0] is not point:
            return
        fault = self._armed[1]
        self._armed = None
        if fault is StopFault.HOLD:
            self._hold(point)
        elif fault is StopFault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        else:
            line.kill_backend() if fault is StopFault.LOSE_BACKEND else line.cut()
            # Before the commit is sent, a lost connection certainly rolls back, and the next statement shows it. Here
            # the commit is on its way: whoever lost the answer cannot know.
            if point is Point.AFTER_COMMIT or (point is Point.BEFORE_COMMIT and fault is StopFault.LOSE_ANSWER):
                raise AnswerLostError(f"{fault.value} at {point.value}")

    def _hold(self, point: Point) -> None:
        self._folder.mkdir(exist_ok=True)
        (self._folder / f"{point.value}.reached").touch()
        release = self._folder / f"{point.value}.release"
        deadline = time.monotonic() + HOLD_GIVE_UP_S
        while not release.exists():
            if time.monotonic() > deadline:
                raise AbortedError(f"nobody released {point.value} in {HOLD_GIVE_UP_S:g} s")
            time.sleep(_POLL_S)
