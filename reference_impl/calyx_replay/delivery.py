"""Handing an envelope to its owner: into the inbox of the same database, in the transaction that records its key."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.terms import Hex


class Delivery:
    """The inbox. Every method raises sqlite3.Error."""

    def deliver(self, connection: sqlite3.Connection, envelope: Envelope, key: Hex) -> None:
        """Put one envelope into the inbox; it is there if and only if its key is recorded."""
        connection.execute(
            "INSERT INTO inbox (replay_key, msg_id, envelope) VALUES (?, ?, ?)",
            (key, envelope.msg_id, envelope.canonical),
        )

    def deliveries(self, connection: sqlite3.Connection) -> Sequence[dict[str, str]]:
        """The delivered envelopes, in order."""
        rows = connection.execute("SELECT replay_key, msg_id FROM inbox ORDER BY position").fetchall()
        return [{"replay_key": key, "msg_id": msg_id} for key, msg_id in rows]
