"""The failpoints of the transaction of register and compensate, wrapped around named steps of a store."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from typing import Any

from holdfast.reference_impl import failpoints
from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row, Store

Step = Callable[..., Any]


@unique
class Point(Enum):
    """Places of the transaction, in order. Before the first of them there is no transaction and no lock."""

    BEFORE_CONSUME = "before_consume"
    AFTER_NONCE_CONSUME = "after_nonce_consume"
    AFTER_REGISTRATION = "after_registration"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


@unique
class Fault(Enum):
    """What happens at an armed failpoint."""

    HOLD = "hold"
    ABORT = "abort"
    LOSE_BACKEND = "lose_backend"
    LOSE_ANSWER = "lose_answer"


AFTER_ROWS = (Point.AFTER_NONCE_CONSUME, Point.AFTER_REGISTRATION)


class AnswerLostError(Exception):
    """The answer to the commit is lost here."""


class Failpoints(failpoints.Failpoints[Point, Fault]):
    """The failpoints of one session, and the rejection by its verifier."""

    # Whether the verifier rejects the next registration (`fail_verify`).
    rejecting = False

    def reach(self, point: Point, *, cut: Callable[[], None], kill_backend: Callable[[], None]) -> None:
        """The transaction is at `point`. Raises AbortedError or AnswerLostError as armed.

        `cut` ends the connection, `kill_backend` the process at its other end.
        """
        fault = self.taken(point)
        if fault is Fault.HOLD:
            self.hold(point)
        elif fault is Fault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        elif fault is not None:
            kill_backend() if fault is Fault.LOSE_BACKEND else cut()
            # Before the commit is sent, a lost connection certainly rolls back, and the next statement shows it. Here
            # the commit is on its way, so its outcome is unknown.
            if point is Point.AFTER_COMMIT or (point is Point.BEFORE_COMMIT and fault is Fault.LOSE_ANSWER):
                raise AnswerLostError(f"{fault.value} at {point.value}")

    def watch(self, store: Store | None, registrar: Registrar) -> None:
        """Put the failpoints around the steps of a session for tests. A live surface has none."""
        wrap(registrar, "accepts", self._rejecting)
        if store is not None:
            self.watch_store(store)

    def watch_store(self, store: Store) -> None:
        """Put the failpoints around the steps of the store. Its kind says which they are."""
        raise NotImplementedError

    def reject(self) -> None:
        """The verifier is to reject the next registration."""
        self.rejecting = True

    def _rejecting(self, accepts: Step) -> Step:
        def wrapped(written: Row, durable: Row | None) -> bool:
            rejected, self.rejecting = self.rejecting, False
            return not rejected and bool(accepts(written, durable))

        return wrapped
