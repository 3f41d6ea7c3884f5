"""Forgotten events (source sections 3.3, 7, 8): their keys, and everything that is removed with an event.

An event is forgotten once any of its contents lies in the window of an applied tombstone; that never ends. Only its key
is remembered, and the hashes of the blobs that its artifacts referred to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.records import EventKey, Window
from holdfast.reference_impl.hx_sync.terms import Hex
from holdfast.reference_impl.sqlite import StoreError

_OF_EVENT = "node_id = ? AND session_id = ? AND seq = ?"
_IN_SCOPE = "(?3 IS NULL OR node_id = ?3)"


class Windows:
    """The windows of applied tombstones. Every method raises sqlite3.Error."""

    def __init__(self, instants: Instants) -> None:
        self._instants = instants

    def applied(self, connection: sqlite3.Connection) -> Sequence[Window]:
        """All of them, from the database each time."""
        rows = connection.execute("SELECT start_ts, end_ts, node_id FROM applied_tombstones").fetchall()
        try:
            return [Window(self._instants.read(start), self._instants.read(end), node) for start, end, node in rows]
        except ValueError as error:
            raise StoreError(f"applied_tombstones holds no instants: {error}") from error

    def bounds(self, window: Window) -> tuple[int, int]:
        """The first and the last microsecond that it covers."""
        return window.start, window.end

    def in_scope(self, window: Window, node_id: Hex) -> bool:
        """Whether it covers what this node did."""
        return window.node_id is None or window.node_id == node_id

    def covering(self, windows: Iterable[Window], node_id: Hex) -> Sequence[tuple[int, int]]:
        """The windows that apply to a node, in order and without overlap."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self.bounds(each) for each in windows if self.in_scope(each, node_id)):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return merged

    def covers(self, bounds: Sequence[tuple[int, int]], at: int) -> bool:
        """Whether an instant lies in one of them."""
        return any(first <= at <= last for first, last in bounds)


class Forgotten:
    """Forgets, and remembers that it has. Every method raises sqlite3.Error."""

    def events(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> int:
        """Forget events with all that goes with them; how many were not forgotten before."""
        before = connection.total_changes
        self.remember(connection, keys)
        fresh = connection.total_changes - before
        self.forget_blobs(connection, keys)
        self.drop_events(connection, keys)
        return fresh

    def remember(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        """Keep the keys for ever."""
        connection.executemany(
            "INSERT INTO forgotten_events (node_id, session_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", keys
        )

    def is_forgotten(self) -> str:
        """The condition that an event is, with the parameters ?1 to ?3 for its key."""
        return "EXISTS (SELECT 1 FROM forgotten_events WHERE node_id = ?1 AND session_id = ?2 AND seq = ?3)"

    def forget_blobs(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        """Remove artifacts; the hashes of their blobs are remembered."""
        connection.executemany(
            f"INSERT INTO forgotten_blobs (blob_hash) SELECT blob_hash FROM artifacts WHERE {_OF_EVENT} "
            "ON CONFLICT DO NOTHING",
            keys,
        )
        connection.executemany(f"DELETE FROM artifacts WHERE {_OF_EVENT}", keys)

    def drop_events(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        """Remove every content of the events, also one outside of all windows."""
        connection.executemany(f"DELETE FROM events WHERE {_OF_EVENT}", keys)

    def keys_within(self, connection: sqlite3.Connection, first: int, last: int, node_id: str | None) -> list[EventKey]:
        """Events with a content between two instants, both included; of one node or of all."""
        return connection.execute(
            f"SELECT DISTINCT node_id, session_id, seq FROM events WHERE at BETWEEN ?1 AND ?2 AND {_IN_SCOPE}",
            (first, last, node_id),
        ).fetchall()

    def sessions(self, connection: sqlite3.Connection, first: int, last: int, node_id: str | None) -> None:
        """Sessions that started between two instants, both included, go."""
        connection.execute(
            f"DELETE FROM sessions WHERE started_at BETWEEN ?1 AND ?2 AND {_IN_SCOPE}", (first, last, node_id)
        )

    def uncache(self, connection: sqlite3.Connection) -> bool:
        """Hide blobs that only forgotten events referred to. Returns whether there are bytes to remove."""
        changed = connection.execute(
            "UPDATE imported_blobs SET cached = 0 WHERE cached = 1 AND blob_hash IN (SELECT blob_hash FROM "
            f"forgotten_blobs) AND NOT {LIVE_BLOB.format('imported_blobs.blob_hash')}"
        )
        return changed.rowcount > 0


# Whether an artifact of an event that is there refers to a blob.
LIVE_BLOB = (
    "EXISTS (SELECT 1 FROM artifacts a JOIN events e ON e.node_id = a.node_id AND e.session_id = a.session_id "
    "AND e.seq = a.seq WHERE a.blob_hash = {})"
)
