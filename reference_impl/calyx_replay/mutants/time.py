"""Bugs of calyx-replay: the window, what a timestamp is, and clocks that go back (CALYX-ALG-6 to -9 and -12)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import TimestampError, Window
from holdfast.reference_impl.planting import Change, part

# When


class Windowless(Window):
    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        return True


class WindowLate(Mailbox):
    """The window is not checked before the store."""

    def guard_window(self, timestamp: datetime, *, now: datetime) -> None:
        pass


class WindowAfterStore(WindowLate):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
        Mailbox.guard_window(self, timestamp, now=now)
        super().record(envelope, key, timestamp, now=now)


class WindowForKnownKeys(WindowLate):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            known = self._store.has(connection, key)
        # "Mail that was never seen may have been under way for long."
        if known:
            Mailbox.guard_window(self, timestamp, now=now)
        super().record(envelope, key, timestamp, now=now)


class InWholeSeconds(Window):
    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        return int(abs(timestamp - now).total_seconds()) <= self.width.total_seconds()


class PastOnly(Window):
    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        return now - timestamp <= self.width


class EndsExcluded(Window):
    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        return abs(timestamp - now) < self.width


# What a timestamp is


class UnreadableIsNow(Mailbox):
    def timestamp(self, envelope: Envelope, *, now: datetime) -> datetime:
        try:
            return super().timestamp(envelope, now=now)
        except RefusedError as error:
            if error.reason is Reason.TIMESTAMP_UNREADABLE:
                return now
            raise


class NaiveIsLocal(Window):
    def read(self, text: str) -> datetime:
        try:
            return super().read(text)
        except TimestampError:
            try:
                found = datetime.fromisoformat(text)
            except ValueError:
                found = None
            if found is None or found.tzinfo is not None:
                raise
            # Python takes what has no zone for local time.
            return found.astimezone(UTC)


# A clock that goes back


class NothingUnprovable(Mailbox):
    def guard_provable(self, connection: sqlite3.Connection, timestamp: datetime) -> None:
        pass


class CutoffInMemory(Store):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pruned_before: str | None = None

    def state(self, connection: sqlite3.Connection) -> MailboxState:
        return replace(super().state(connection), pruned_before=self._pruned_before)

    def remember(self, connection: sqlite3.Connection, state: MailboxState) -> None:
        self._pruned_before = state.pruned_before
        super().remember(connection, replace(state, pruned_before=None))


BUGS: Mapping[str, Change] = {
    "window-missing": part(window=Windowless),
    "window-after-store": part(mailbox=WindowAfterStore),
    "window-truncated-to-seconds": part(window=InWholeSeconds),
    "window-one-sided": part(window=PastOnly),
    "window-open-ended": part(window=EndsExcluded),
    "window-only-for-known-keys": part(mailbox=WindowForKnownKeys),
    "unreadable-is-now": part(mailbox=UnreadableIsNow),
    "naive-is-local": part(window=NaiveIsLocal),
    "high-water-missing": part(mailbox=NothingUnprovable),
    "high-water-in-memory": part(store=CutoffInMemory),
}
