"""Bugs of calyx-replay: what version 0 left (CALYX-MIG-*)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.terms import RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part

# What is read


class FileNameTrusted(Migration):
    def check(self, msg_id: str, raw: bytes, *, now: datetime) -> Envelope:
        with contextlib.suppress(RefusedError):
            msg_id = self._mailbox.decode(raw).msg_id
        return super().check(msg_id, raw, now=now)


# The treatment of an envelope


class AnotherCodec(Migration):
    def key(self, envelope: Envelope) -> str:
        # As version 0 wrote its files: the standard library's JSON, with blanks.
        return hashlib.sha256(json.dumps(json.loads(envelope.raw)).encode()).hexdigest()


class Refreshing(Migration):
    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        if super().take_over(connection, envelope, now=now):
            return True
        connection.execute(
            "UPDATE replay_state SET seen_at = ? WHERE replay_key = ?", (written(now), self.key(envelope))
        )
        return False


class InPieces(Migration):
    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        taken = super().take_over(connection, envelope, now=now)
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        return taken


# The treatment of an id without envelope


# The treatment of the list


BUGS: Mapping[str, Change] = {
    "migration-refreshes": part(migration=Refreshing),
    "migration-in-pieces": part(migration=InPieces),
    "migration-with-another-codec": part(migration=AnotherCodec),
    "file-name-trusted": part(migration=FileNameTrusted),
}
