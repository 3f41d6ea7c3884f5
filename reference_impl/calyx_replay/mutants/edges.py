"""Bugs of calyx-replay at an edge: of a fraction, of a key's length, of the calendar, of what is remembered already."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.timing import SeenAt, earlier, written
from holdfast.reference_impl.planting import Change, part

_LONG_FRACTION = re.compile(r"\.([0-9]{7,})")


class MicrosecondsAtMost(SeenAt):
    def read_text(self, stored: str) -> int | None:
        return None if _LONG_FRACTION.search(stored) else super().read_text(stored)


class KeyOfAnyLength(Codec):
    def sender_key(self, header: Mapping[str, Any]) -> bytes:
        return self.binary("header.sender_key", header["sender_key"])


class AheadOnce(Schema):
    def migrated_ahead(self) -> str:
        return super().migrated_ahead().replace("replay_key TEXT", "replay_key TEXT PRIMARY KEY")


class BlockedWithinTheCalendar(Migration):
    def block(self, connection: sqlite3.Connection, msg_id: str, *, now: datetime) -> bool:
        try:
            until = now + self._settings.window
        except OverflowError:
            return False
        return self._store.block(connection, msg_id, written(until))


class WindowAndMore(Mailbox):
    def guard_provable(self, connection: sqlite3.Connection, timestamp: datetime) -> None:
        super().guard_provable(connection, earlier(timestamp, timedelta(microseconds=1)))


BUGS: Mapping[str, Change] = {
    "seen-at-of-microseconds-at-most": part(seen_at=MicrosecondsAtMost),
    "sender-key-of-any-length": part(codec=KeyOfAnyLength),
    "migrated-ahead-once": part(schema=AheadOnce),
    "provable-behind-the-window": part(mailbox=WindowAndMore),
    "blocked-within-the-calendar": part(migration=BlockedWithinTheCalendar),
}
