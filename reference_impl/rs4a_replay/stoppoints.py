"""Stop points inside the Phase-3 transaction (docs/adapter-protocol.md, "Stop points")."""

from __future__ import annotations

from enum import Enum, unique
from typing import Protocol

from holdfast.reference_impl.stops import AbortedError, Stops


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


class AnswerLostError(Exception):
    """The commit's answer was lost here."""


class Line(Protocol):
    """The connection that the transaction runs on, as a fault sees it."""

    def cut(self) -> None:
        """Cut the connection at once."""

    def kill_backend(self) -> None:
        """SIGKILL the process at the other end, and wait until it is gone."""


class StopPoints(Stops[Point, StopFault]):
    """Those of register and compensate. While one is armed, the transaction must run step by step."""

    def reach(self, point: Point, line: Line) -> None:
        """The transaction is at `point`. Raises AbortedError or AnswerLostError as armed."""
        fault = self._taken(point)
        if fault is None:
            return
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
