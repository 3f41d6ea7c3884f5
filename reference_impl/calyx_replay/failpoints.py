"""The failpoints of accept, prune and migrate, wrapped around named steps of a mailbox."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import Enum, unique
from typing import Any

from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.failpoints import AbortedError, HoldOrAbort, Step, wrap
from holdfast.reference_impl.sqlite import StoreError, UncertainError


@unique
class Point(Enum):
    """Places of a transaction, in order; see `hold_at` in methods.yaml."""

    BEFORE_INSERT = "before_insert"
    AFTER_INSERT = "after_insert"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


class Failpoints(HoldOrAbort[Point]):
    """The failpoints of one mailbox."""

    def watch(self, *, mailbox: Mailbox, pruning: Pruning, migration: Migration, store: Store) -> None:
        """Wrap the three operations and their steps. To them an abort is the same as a store that fails.

        After the commit of a prune or a migration no step is left that can fail.
        """
        wrap(mailbox, "insert", self.around(Point.BEFORE_INSERT, Point.AFTER_INSERT))
        wrap(store, "deliver", self.around(None, Point.BEFORE_COMMIT))
        wrap(mailbox, "record", lambda record: self._ended(record, self._uncertain))
        wrap(pruning, "remove", self.around(Point.BEFORE_INSERT, Point.AFTER_INSERT))
        wrap(store, "remember", self.around(None, Point.BEFORE_COMMIT))
        wrap(pruning, "run", lambda run: self._ended(run, self._harmless))
        wrap(migration, "take_over", self.around(None, Point.AFTER_INSERT))
        wrap(migration, "take_over_all", self.around(Point.BEFORE_INSERT, Point.BEFORE_COMMIT))
        wrap(migration, "write", lambda write: self._ended(write, self._harmless))

    def _ended(self, operation: Step, committed: Callable[[], None]) -> Step:
        def wrapped(*args: Any, **named: Any) -> Any:
            try:
                result = operation(*args, **named)
            except AbortedError as error:
                raise StoreError(str(error)) from error
            committed()
            return result

        return wrapped

    def _uncertain(self) -> None:
        try:
            self.reach(Point.AFTER_COMMIT)
        except AbortedError as error:
            raise UncertainError(str(error)) from error

    def _harmless(self) -> None:
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)
