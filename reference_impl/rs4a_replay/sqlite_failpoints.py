"""The failpoints around the steps of a SQLite store."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.rs4a_replay.failpoints import AFTER_ROWS, AnswerLostError, Failpoints, Point, Step
from holdfast.reference_impl.rs4a_replay.store import (
    CommitUncertainError,
    Consumption,
    Insert,
    RolledBackError,
    Store,
)


class SqliteFailpoints(Failpoints):
    """The failpoints of one session on SQLite."""

    def watch_store(self, store: Store) -> None:
        """See `Failpoints`. The backend of SQLite is this process, so both ways to lose it close the connection."""
        reach = partial(self.reach, cut=store.close, kill_backend=store.close)
        wrap(store, "consume", lambda consume: self._consume(consume, reach))
        wrap(store, "insert_all", lambda insert_all: self._insert(insert_all, reach))
        wrap(store, "read_back", lambda read_back: self._read_back(read_back, reach))

    def _consume(self, consume: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(inserts: Sequence[Insert]) -> Consumption:
            try:
                reach(Point.BEFORE_CONSUME)
            except AbortedError as error:
                raise RolledBackError(str(error)) from error
            outcome: Consumption = consume(inserts)
            return outcome

        return wrapped

    def _insert(self, insert_all: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(connection: sqlite3.Connection, inserts: Sequence[Insert]) -> None:
            try:
                for each, point in zip(inserts, AFTER_ROWS[: len(inserts)], strict=True):
                    insert_all(connection, [each])
                    reach(point)
                reach(Point.BEFORE_COMMIT)
            except AbortedError as error:
                raise sqlite3.OperationalError(str(error)) from error
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error

        return wrapped

    def _read_back(self, read_back: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(connection: sqlite3.Connection, insert: Insert) -> object:
            try:
                with contextlib.suppress(AbortedError):
                    reach(Point.AFTER_COMMIT)
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error
            return read_back(connection, insert)

        return wrapped
