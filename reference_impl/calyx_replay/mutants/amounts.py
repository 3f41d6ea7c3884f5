"""Bugs of calyx-replay at a number: how far ahead, how long, how many."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.timing import shifted, written
from holdfast.reference_impl.planting import Change, part

_WEEK, _LONGEST, _MOST = timedelta(days=7), 65_536, 4096


class AheadForAWeek(Migration):
    def keep_ahead(self, connection: sqlite3.Connection, envelope: Envelope, key: str, *, now: datetime) -> None:
        timestamp = self._mailbox.timestamp(envelope, now=now)
        if timestamp > shifted(now, self._settings.window):
            self._store.remember_ahead(connection, key, written(min(timestamp, shifted(now, _WEEK))))


class ShortEnvelopes(Migration):
    def find(self, msg_id: str) -> bytes | None:
        found = super().find(msg_id)
        return None if found is None else found[:_LONGEST]


class ShortLists(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        return super().read_list(path)[:_MOST]


BUGS: Mapping[str, Change] = {
    "ahead-for-a-week": part(migration=AheadForAWeek),
    "left-envelopes-of-64k": part(migration=ShortEnvelopes),
    "list-of-four-thousand": part(migration=ShortLists),
}
