"""Bugs of calyx-replay at a number: how far ahead, how long, how many."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.mutants.batches import PrunedUpToLimit
from holdfast.reference_impl.calyx_replay.store import Row, Store
from holdfast.reference_impl.calyx_replay.timing import later, written
from holdfast.reference_impl.planting import Change, part

_WEEK, _LONGEST, _MOST = timedelta(days=7), 65_536, 4096
_PAGE, _CAPACITY = 2000, 10_000
_MEBIBYTE, _VARIABLES = 1 << 20, 32_766


class AheadForAWeek(Migration):
    def keep_ahead(self, connection: sqlite3.Connection, envelope: Envelope, key: str, *, now: datetime) -> None:
        timestamp = self._mailbox.timestamp(envelope, now=now)
        if timestamp > later(now, self._settings.window):
            self._store.remember_ahead(connection, key, written(min(timestamp, later(now, _WEEK))))


class ShortEnvelopes(Migration):
    def find(self, msg_id: str) -> bytes | None:
        found = super().find(msg_id)
        return None if found is None else found[:_LONGEST]


class ShortLists(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        return super().read_list(path)[:_MOST]


class ListOfAMebibyte(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        listed = super().read_list(path)
        return listed[: len(listed) * _MEBIBYTE // max(path.stat().st_size, _MEBIBYTE)]


class PrunedByVariables(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        removed = super().delete_before(connection, cutoff)
        # One for each row that goes.
        if removed > _VARIABLES:
            raise sqlite3.OperationalError("too many SQL variables")
        return removed


class OldestEvicted(Store):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        super().insert(connection, row)
        oldest = "SELECT rowid FROM replay_state ORDER BY seen_at DESC LIMIT -1 OFFSET ?"
        connection.execute(f"DELETE FROM replay_state WHERE rowid IN ({oldest})", (_CAPACITY,))


class PrunedUpToCapacity(PrunedUpToLimit):
    most = _CAPACITY


class FewShown(Store):
    def rows(self, connection: sqlite3.Connection) -> Sequence[dict[str, Any]]:
        return super().rows(connection)[:_PAGE]


BUGS: Mapping[str, Change] = {
    "ahead-for-a-week": part(migration=AheadForAWeek),
    "left-envelopes-of-64k": part(migration=ShortEnvelopes),
    "oldest-of-ten-thousand-evicted": part(store=OldestEvicted),
    "state-of-two-thousand": part(store=FewShown),
    "prune-up-to-ten-thousand": part(store=PrunedUpToCapacity),
    "list-of-a-mebibyte": part(migration=ListOfAMebibyte),
    "prune-up-to-sqlites-variables": part(store=PrunedByVariables),
    "list-of-four-thousand": part(migration=ShortLists),
}
