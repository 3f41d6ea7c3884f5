"""Prunes old records (source section 6): by the time of first receipt, in absolute time, in one transaction."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, Settings, check_args
from holdfast.reference_impl.calyx_replay.timing import earlier, written
from holdfast.reference_impl.instants import microseconds
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs.schema import Validator


@dataclass(frozen=True, slots=True)
class Pruned:
    """What one prune did: rows removed, rows kept, and how many of the kept have a seen_at that is no instant."""

    removed: int
    kept: int
    unreadable: int


class Pruning:
    """Decides when to prune, and which records."""

    def __init__(self, settings: Settings, store: Store, schema: Validator) -> None:
        """`schema` is that of the arguments of `prune`."""
        self._settings = settings
        self._store = store
        self._schema = schema

    def prune(self, args: Any, *, now: datetime) -> Answer:
        """Prune because an operator asks for it."""
        try:
            retention = self.retention(args)
            pruned = self.run(self.cutoff(retention, now=now))
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()
        value = {"removed": pruned.removed, "kept": pruned.kept, "unreadable": pruned.unreadable}
        return Accepted(Effect.NEW if pruned.removed else Effect.PRIOR, value)

    def retention(self, args: Any) -> timedelta:
        """How long a record is kept. Raises RefusedError."""
        hours = args.get("retention_hours") if isinstance(args, Mapping) else None
        # An operator can type them. They are no JSON, so the schema cannot judge them.
        if isinstance(hours, float) and not math.isfinite(hours):
            raise RefusedError(Reason.RETENTION_TOO_SHORT, f"expected a finite number of hours, got {hours}")
        check_args(self._schema, args)
        if "retention_hours" not in args:
            return self.long_enough(self._settings.retention)
        assert hours is not None
        try:
            return self.long_enough(timedelta(hours=hours))
        except OverflowError:
            # The retention is longer than all years of a date, in either direction.
            return -timedelta.min if hours > 0 else self.long_enough(timedelta.min)

    def long_enough(self, retention: timedelta) -> timedelta:
        """The retention, if nothing admissible is forgotten by it. Raises RefusedError."""
        least = self._settings.least_retention
        if retention < least:
            raise RefusedError(Reason.RETENTION_TOO_SHORT, f"expected at least {least}, got {retention}")
        return retention

    def cutoff(self, retention: timedelta, *, now: datetime) -> datetime:
        """A record first seen before this instant is removed; one first seen at it stays."""
        return earlier(now, retention)

    def run(self, cutoff: datetime) -> Pruned:
        """One transaction. Raises StoreError."""
        with self._store.writing(Purpose.PRUNE) as connection:
            pruned = self.remove(connection, cutoff)
            self._store.remember(connection, self.advanced(self._store.state(connection), cutoff))
        return pruned

    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        """Remove, and count what is left. Raises sqlite3.Error."""
        removed = self._store.delete_before(connection, microseconds(cutoff))
        self._store.unblock_before(connection, written(cutoff))
        kept, unreadable = self._store.counts(connection)
        return Pruned(removed, kept, unreadable)

    def advanced(self, state: MailboxState, cutoff: datetime) -> MailboxState:
        """The state with the greatest cutoff of all prunes: the clock may go back, what is pruned stays pruned."""
        return replace(state, pruned_before=max(state.pruned_before or "", written(cutoff)))

    # Automatic

    def automatic(self, *, now: datetime) -> None:
        """Prune if it is due. A failure does not delay mail: the next call tries again. Never raises."""
        with contextlib.suppress(StoreError, RefusedError):
            retention = self.long_enough(self._settings.retention)
            with self._store.reading(Purpose.PRUNE) as connection:
                due = self.due(self._store.state(connection), now=now)
            if not due:
                return
            with self._store.writing(Purpose.PRUNE) as connection:
                state = self._store.state(connection)
                # Another worker may have been faster.
                if self.due(state, now=now):
                    self.prune_automatically(connection, state, retention, now=now)

    def due(self, state: MailboxState, *, now: datetime) -> bool:
        """Whether the interval has passed; in either direction, because a clock that was wrong may be right now."""
        if state.last_automatic is None:
            return True
        return abs(now - datetime.fromisoformat(state.last_automatic)) >= self._settings.prune_interval

    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        """Prune and remember it; the first time there is nothing old, and only the interval begins."""
        if state.last_automatic is None:
            self._store.remember(connection, replace(state, last_automatic=written(now)))
            return
        cutoff = self.cutoff(retention, now=now)
        self.remove(connection, cutoff)
        counted = replace(state, last_automatic=written(now), automatic=state.automatic + 1)
        self._store.remember(connection, self.advanced(counted, cutoff))
