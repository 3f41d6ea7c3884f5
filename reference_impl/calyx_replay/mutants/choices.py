"""Sound variants of calyx-replay: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, EnvelopeError
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.service import Service
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Hex, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import earlier, microseconds, written
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.session import OpenError


class KeptUntilItsTime(Pruning):
    """Nothing marks a row that was migrated, so every row stays whose envelope can still come."""

    def cutoff(self, retention: timedelta, *, now: datetime) -> datetime:
        self._over = microseconds(earlier(now, self._settings.window))
        return super().cutoff(retention, now=now)

    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        old = "instant(seen_at) < ? AND ifnull(instant(envelope_timestamp), 0) < ?"
        limits = (microseconds(cutoff), self._over)
        removed = connection.execute(f"DELETE FROM replay_state WHERE {old}", limits).rowcount
        self._store.unblock_before(connection, written(cutoff))
        return Pruned(removed, *self._store.counts(connection))


class AheadIsUnprovable(Mailbox):
    def guard_duplicate(self, connection: sqlite3.Connection, key: Hex) -> None:
        if not self._store.has(connection, key) and self._store.is_ahead(connection, key):
            raise RefusedError(Reason.REPLAY_UNPROVABLE, "its record is pruned")
        super().guard_duplicate(connection, key)


class PrunedIsACopy(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        pruned = "SELECT replay_key, '9999' FROM replay_state WHERE instant(seen_at) < ?"
        connection.execute(f"INSERT OR REPLACE INTO migrated_ahead {pruned}", (cutoff,))
        return super().delete_before(connection, cutoff)


class PrunedByTheBound(Pruning):
    def automatic(self, *, now: datetime) -> None:
        configured = self._settings
        self._settings = replace(configured, retention=max(configured.retention, configured.least_retention))
        super().automatic(now=now)
        self._settings = configured


class ShortRetentionRefused(Service):
    def begin(self) -> None:
        if self._parts.settings.retention < self._parts.settings.least_retention:
            raise OpenError("config retention_seconds: shorter than what can be kept")
        super().begin()


class ClaimedKeyRefused(Codec):
    def check_header(self, header: Mapping[str, Any]) -> None:
        super().check_header(header)
        if "replay_key" in header:
            raise EnvelopeError("expected no replay_key, which is the receiver's to compute")


class NothingToMigrateIsDone(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        ended = super().run(arguments, now=now)
        return {**ended, "status": 0} if Reason.NOTHING_TO_MIGRATE.value in ended["output"] else ended


BUGS: Mapping[str, Change] = {
    "choice-kept-until-its-time": part(pruning=KeptUntilItsTime),
    "choice-ahead-is-unprovable": part(mailbox=AheadIsUnprovable),
    "choice-pruned-is-a-copy": part(store=PrunedIsACopy),
    "choice-pruned-by-the-bound": part(pruning=PrunedByTheBound),
    "choice-short-retention-refused": part(service=ShortRetentionRefused),
    "choice-claimed-key-refused": part(codec=ClaimedKeyRefused),
    "choice-nothing-to-migrate-is-done": part(command_line=NothingToMigrateIsDone),
}
