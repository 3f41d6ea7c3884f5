"""Applying one object to an index, inside its transaction (source section 7): union, less what is forgotten.

Everything here depends on the set of objects only: contents are kept side by side, each in its place, and what is
shown is decided when it is read (views.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from holdfast.reference_impl.hx_sync.forgotten import Forgotten, Windows
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.records import ArtifactRow, Batch, EventKey, EventRow, SessionRow, Window
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError


class Merging:
    """Each method raises sqlite3.Error."""

    def __init__(self, windows: Windows, forgotten: Forgotten, ledger: Ledger) -> None:
        self._windows = windows
        self._forgotten = forgotten
        self._ledger = ledger

    # Segments

    def segment(self, connection: sqlite3.Connection, header: Header, batch: Batch) -> bool:
        """Apply the records of the segment with this header; whether a blob has to leave the cache for it."""
        bounds = self.remembered(connection, header)
        lost = [row[:3] for row in batch.events if self._windows.covers(bounds, row[4])]
        fresh = self._forgotten.events(connection, lost)
        self.insert_events(connection, batch.events)
        self.insert_artifacts(connection, batch.artifacts)
        self.insert_sessions(connection, [row for row in batch.sessions if not self._windows.covers(bounds, row[3])])
        self.insert_pins(connection, batch.pins)
        self._ledger.count(connection, "forgotten_events", fresh)
        return self._forgotten.uncache(connection)

    def remembered(self, connection: sqlite3.Connection, header: Header) -> Sequence[tuple[int, int]]:
        """The windows of applied tombstones for a segment's node: read before every insert."""
        return self._windows.covering(self._windows.applied(connection), header.node_id)

    def insert_events(self, connection: sqlite3.Connection, rows: Sequence[EventRow]) -> None:
        """Add contents of events that are not forgotten."""
        connection.executemany(self.event_statement(), rows)

    def event_statement(self) -> str:
        """Adds one content. Rows have been checked: only the same content again may be passed over."""
        return (
            "INSERT INTO events (node_id, session_id, seq, digest, at, kind, data) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 "
            f"WHERE NOT {self._forgotten.is_forgotten()} ON CONFLICT (node_id, session_id, seq, digest) DO NOTHING"
        )

    def insert_artifacts(self, connection: sqlite3.Connection, rows: Sequence[ArtifactRow]) -> None:
        """Add those whose event is not forgotten. Of the others the blobs are known as forgotten."""
        connection.executemany(
            f"INSERT INTO forgotten_blobs (blob_hash) SELECT ?4 WHERE {self._forgotten.is_forgotten()} "
            "ON CONFLICT DO NOTHING",
            [(node_id, session_id, seq, blob_hash) for node_id, _, _, session_id, seq, blob_hash, _ in rows],
        )
        connection.executemany(
            "INSERT INTO artifacts (node_id, session_id, seq, artifact_id, digest, blob_hash, name) "
            f"SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT {self._forgotten.is_forgotten()} "
            "ON CONFLICT (node_id, artifact_id, digest) DO NOTHING",
            [
                (node_id, session_id, seq, artifact_id, digest, blob_hash, name)
                for node_id, artifact_id, digest, session_id, seq, blob_hash, name in rows
            ],
        )

    def insert_sessions(self, connection: sqlite3.Connection, rows: Sequence[SessionRow]) -> None:
        """Add contents of sessions."""
        connection.executemany(
            "INSERT INTO sessions (node_id, session_id, digest, started_at, title) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (node_id, session_id, digest) DO NOTHING",
            rows,
        )

    def insert_pins(self, connection: sqlite3.Connection, rows: Sequence[EventKey]) -> None:
        """Add pins, whether their events are there yet or not; one of a forgotten event is never shown."""
        connection.executemany(
            "INSERT INTO pins (node_id, session_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows
        )

    # Tombstones

    def tombstone(self, connection: sqlite3.Connection, window: Window) -> bool:
        """Forget what lies in a window; whether a blob has to leave the cache for it."""
        first, last = self._windows.bounds(window)
        keys = self._forgotten.keys_within(connection, first, last, window.node_id)
        fresh = self._forgotten.events(connection, keys)
        self._forgotten.sessions(connection, first, last, window.node_id)
        self._ledger.count(connection, "forgotten_events", fresh)
        return self._forgotten.uncache(connection)


def replaced(key: str) -> RefusedError:
    """The refusal of an object whose id was imported with other bytes."""
    return RefusedError(Reason.OBJECT_REPLACED, "an object of this id was imported before, with other bytes", key=key)
