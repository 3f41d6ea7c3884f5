"""Bugs of calyx-replay that show only in long histories: in pieces, up to a limit, or remembered by one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import RefusedError
from holdfast.reference_impl.calyx_replay.timing import microseconds
from holdfast.reference_impl.planting import Change, part

_BATCH, _LIMIT = 100, 1000

# In pieces, or up to a limit


class PrunedInBatches(Store):
    batch = _BATCH

    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        removed = 0
        while True:
            gone = _delete_some(connection, cutoff, self.batch)
            removed += gone
            if gone < self.batch:
                return removed
            # "The write lock is not held for long."
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")


class PrunedUpToLimit(Store):
    most = _LIMIT

    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return _delete_some(connection, cutoff, self.most)


def _delete_some(connection: sqlite3.Connection, cutoff: int, most: int) -> int:
    return connection.execute(
        "DELETE FROM replay_state WHERE rowid IN (SELECT rowid FROM replay_state WHERE instant(seen_at) < ? LIMIT ?)",
        (cutoff, most),
    ).rowcount


class MigratedInBatches(Migration):
    _taken = 0

    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        taken = super().take_over(connection, envelope, now=now)
        self._taken += 1
        if self._taken % _BATCH == 0:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
        return taken


# Which records go


class WholeSeconds(Pruning):
    def retention(self, args: Any) -> timedelta:
        return timedelta(seconds=super().retention(args) // timedelta(seconds=1))


class LastCutoff(Pruning):
    def advanced(self, state: MailboxState, cutoff: datetime) -> MailboxState:
        return super().advanced(MailboxState(state.last_automatic, state.automatic, None), cutoff)


class AgeWithoutSign(Pruning):
    """Removes what differs from now by more than the retention, in either direction."""

    def cutoff(self, retention: timedelta, *, now: datetime) -> datetime:
        self._also_after = microseconds(now + min(retention, timedelta(days=1000)))
        return super().cutoff(retention, now=now)

    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        connection.execute("DELETE FROM replay_state WHERE instant(seen_at) > ?", (self._also_after,))
        return super().remove(connection, cutoff)


# Remembered by one process


class RefusalsCached(Mailbox):
    """What is outside of the window once is outside for ever, to this process."""

    def guard_window(self, timestamp: datetime, *, now: datetime) -> None:
        outside: set[datetime] = self.__dict__.setdefault("_outside", set())
        if timestamp in outside:
            now = datetime.min.replace(tzinfo=now.tzinfo)
        try:
            super().guard_window(timestamp, now=now)
        except RefusedError:
            outside.add(timestamp)
            raise


class BlocksReadOnce(Store):
    """Reads the blocked ids once, so that it does not learn what another process migrates."""

    def blocked_until(self, connection: sqlite3.Connection, msg_id: str) -> str | None:
        blocked: dict[str, str] | None = self.__dict__.get("_blocked")
        if blocked is None:
            blocked = dict(connection.execute('SELECT msg_id, "until" FROM blocked_msg_id').fetchall())
            self.__dict__["_blocked"] = blocked
        return blocked.get(msg_id)


class CommandLineMakesStore(CommandLine):
    def run(self, arguments: Any, *, now: datetime) -> dict[str, Any]:
        location = Location(self._root, load_settings(self._config))
        if not location.database.exists():
            Provisioner(Schema()).make(location)
        return super().run(arguments, now=now)


BUGS: Mapping[str, Change] = {
    "prune-in-batches": part(store=PrunedInBatches),
    "prune-up-to-a-thousand": part(store=PrunedUpToLimit),
    "migration-in-batches": part(migration=MigratedInBatches),
    "retention-in-whole-seconds": part(pruning=WholeSeconds),
    "last-cutoff-only": part(pruning=LastCutoff),
    "age-without-sign": part(pruning=AgeWithoutSign),
    "refusals-cached": part(mailbox=RefusalsCached),
    "blocks-read-once": part(store=BlocksReadOnce),
    "command-line-makes-store": part(command_line=CommandLineMakesStore),
}
