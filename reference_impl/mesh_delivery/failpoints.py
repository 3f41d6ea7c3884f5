"""The failpoints of the broker, wrapped around named steps of its store and its jobs."""

from __future__ import annotations

import contextlib
from enum import Enum, unique
from typing import Any

from holdfast.reference_impl.failpoints import AbortedError, HoldOrAbort, Step, wrap
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, UnavailableError


@unique
class Point(Enum):
    """Places of a transaction."""

    BEFORE_DEDUPE = "before_dedupe"
    AFTER_CONFLICT = "after_conflict"
    AFTER_DEDUPE = "after_dedupe"
    AFTER_MESSAGE = "after_message"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    BETWEEN_PRUNE = "between_prune"


# What they are armed for: one of these operations.
ARMED_FOR = ("accept", "prune")


class Failpoints(HoldOrAbort[Point]):
    """The failpoints of one session."""

    def watch(self, store: BrokerStore, jobs: Jobs) -> None:
        """Put them around the steps."""
        wrap(store, "insert_record", self._record)
        wrap(store, "select_record", self.around(Point.AFTER_CONFLICT, None))
        wrap(store, "insert_message", self.around(None, Point.AFTER_MESSAGE))
        wrap(store, "commit", self._commit)
        wrap(jobs, "delete_messages", self.around(None, Point.BETWEEN_PRUNE))

    def reach(self, point: Point) -> None:
        """The transaction is at `point`. Raises UnavailableError where it is to fail there."""
        try:
            super().reach(point)
        except AbortedError as error:
            raise UnavailableError(str(error)) from error

    def _record(self, step: Step) -> Step:
        def wrapped(*args: Any, **named: Any) -> Any:
            self.reach(Point.BEFORE_DEDUPE)
            first = step(*args, **named)
            if first:
                self.reach(Point.AFTER_DEDUPE)
            return first

        return wrapped

    def _commit(self, step: Step) -> Step:
        def wrapped(connection: Any) -> None:
            try:
                self.reach(Point.BEFORE_COMMIT)
            except UnavailableError:
                connection.execute("ROLLBACK")
                raise
            step(connection)
            # What fails after the commit has taken effect.
            with contextlib.suppress(UnavailableError):
                self.reach(Point.AFTER_COMMIT)

        return wrapped
