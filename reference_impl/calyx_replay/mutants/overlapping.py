"""Bugs of calyx-replay that need two at once: what is written follows from what was read before the transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.store import Row
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# As long as an export of a larger store takes.
_EXPORT_S = 0.1


class PrunedFromExport(Pruning):
    """What is kept is exported, and imported again into an empty table."""

    _exported: Sequence[Row] | None = None

    def run(self, cutoff: datetime) -> Pruned:
        with self._store.reading(Purpose.PRUNE) as connection:
            self._exported = self._store.rows(connection)
        time.sleep(_EXPORT_S)
        try:
            return super().run(cutoff)
        finally:
            self._exported = None

    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        if self._exported is None:
            return super().remove(connection, cutoff)
        kept = [row for row in self._exported if not str(row["seen_at"]) < written(cutoff)]
        connection.execute("DELETE FROM replay_state")
        for row in kept:
            self._store.insert(connection, row)
        self._store.unblock_before(connection, written(cutoff))
        return Pruned(len(self._exported) - len(kept), len(kept), 0)


class MigratedIntoExport(Migration):
    """What is there is exported, the letters of version 0 are added, and all of it is imported."""

    _exported: Mapping[str, Row] | None = None

    def migrate(self, *, now: datetime) -> Answer:
        try:
            with self._store.reading(Purpose.MIGRATE) as connection:
                self._exported = {str(row["replay_key"]): row for row in self._store.rows(connection)}
            time.sleep(_EXPORT_S)
        except StoreError:
            self._exported = None
        return super().migrate(now=now)

    def take_over_all(self, connection: sqlite3.Connection, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        exported = self._exported or {}
        gone = [row for key, row in exported.items() if not self._store.has(connection, key)]
        done = super().take_over_all(connection, left, now=now)
        for row in gone:
            if not self._store.has(connection, str(row["replay_key"])):
                self._store.insert(connection, row)
        return done

    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        key = self.key(envelope)
        is_new = self._exported is not None and key not in self._exported
        return super().take_over(connection, envelope, now=now) or is_new


BUGS: Mapping[str, Change] = {
    "pruned-from-an-export": part(pruning=PrunedFromExport),
    "migrated-into-an-export": part(migration=MigratedIntoExport),
}
