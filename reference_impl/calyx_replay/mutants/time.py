"""Bugs of calyx-replay: the window, what a timestamp is, and clocks that go back (CALYX-ALG-6 to -9 and -12)."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import TimestampError, Window
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part

# When


class Windowless(Window):
    def admits(self, timestamp: datetime, *, now: datetime) -> bool:
        return True


class WindowLate(Mailbox):
    """The window is not looked at before the store."""

    def guard_window(self, timestamp: datetime, *, now: datetime) -> None:
        pass


class WindowAfterStore(WindowLate):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
        Mailbox.guard_window(self, timestamp, now=now)
        super().record(envelope, key, timestamp, receipt, now=now)


class WindowForKnownKeys(WindowLate):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            known = self._store.has(connection, key)
        # "Mail that was never seen may have been under way for long."
        if known:
            Mailbox.guard_window(self, timestamp, now=now)
        super().record(envelope, key, timestamp, receipt, now=now)


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


_OUTSIDE = "its envelopes are outside the window"
_HISTORY = "histories have envelopes outside the window or at its end"
_AT_THE_END = "its envelope is at the end of the window"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "window-missing",
        "Every timestamp is in the window",
        part(window=Windowless),
        # The second line of defence holds: what was pruned is unprovable.
        {"ALG-6": "fail_open", "ALG-8": "wrong_reason"},
        also(_OUTSIDE, "ALG-7"),
    ),
    mutant(
        "window-after-store",
        "The store is asked before the window",
        part(mailbox=WindowAfterStore),
        {"ALG-6": "wrong_reason"},
        also(_HISTORY, "ALG-3"),
    ),
    mutant(
        "window-truncated-to-seconds",
        "The distance to the clock is cut to whole seconds",
        part(window=InWholeSeconds),
        {"ALG-7": "fail_open"},
        also(_HISTORY, "ALG-3"),
    ),
    mutant(
        "window-one-sided",
        "Only the past is bounded",
        part(window=PastOnly),
        {"ALG-7": "fail_open"},
        also(_OUTSIDE, "ALG-6") | also(_HISTORY, "ALG-3"),
    ),
    mutant(
        "window-open-ended",
        "The ends of the window do not belong to it",
        part(window=EndsExcluded),
        {"ALG-7": "over_refusal"},
        also(_AT_THE_END, "MIG-4 PRN-7") | also(_HISTORY, "ALG-3"),
    ),
    mutant(
        "window-only-for-known-keys",
        "The window is asked only of envelopes whose key is recorded",
        part(mailbox=WindowForKnownKeys),
        # The second line of defence holds: what was pruned is unprovable.
        {"ALG-8": "wrong_reason"},
        also(_OUTSIDE, "ALG-6 ALG-7"),
    ),
    mutant(
        "unreadable-is-now",
        "A timestamp that cannot be read is taken for now",
        part(mailbox=UnreadableIsNow),
        {"ALG-9": "fail_open"},
    ),
    mutant(
        "naive-is-local",
        "A timestamp without a zone is taken for local time",
        part(window=NaiveIsLocal),
        {"ALG-9": "fail_open"},
    ),
    mutant(
        "high-water-missing",
        "Nobody asks whether the record may have been pruned",
        part(mailbox=NothingUnprovable),
        {"ALG-12": "fail_open"},
    ),
    mutant(
        "high-water-in-memory",
        "The cutoff of the last prune is only in memory",
        part(store=CutoffInMemory),
        {"ALG-12": "fail_open"},
    ),
)
