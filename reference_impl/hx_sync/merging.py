"""Applying one object to an index, inside its transaction (source sections 3.3, 7, 8): union, less what is forgotten.

Everything here depends on the set of objects only: contents are kept side by side, each in its place, and what is
shown is decided when it is read (views.py). An event is forgotten once any of its contents lies in the window of an
applied tombstone; that never ends. Only its key is remembered, and the hashes of the blobs that its artifacts referred
to. Each function raises sqlite3.Error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from holdfast.reference_impl.hx_sync import instants, ledger
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.records import ArtifactRow, Batch, EventKey, Window
from holdfast.reference_impl.hx_sync.terms import Hex
from holdfast.reference_impl.sqlite import StoreError

_OF_EVENT = "node_id = ? AND session_id = ? AND seq = ?"
_IN_SCOPE = "(?3 IS NULL OR node_id = ?3)"
# The parameters ?1 to ?3 are the key of an event.
_IS_FORGOTTEN = "EXISTS (SELECT 1 FROM forgotten_events WHERE node_id = ?1 AND session_id = ?2 AND seq = ?3)"


def segment(connection: sqlite3.Connection, header: Header, batch: Batch) -> bool:
    """Apply the records of the segment with this header; whether a blob has to leave the cache for it."""
    bounds = _covering(_applied(connection), header.node_id)
    fresh = _forget(connection, [row[:3] for row in batch.events if _covers(bounds, row[4])])
    # Rows have been checked: only the same content again may be passed over.
    connection.executemany(
        "INSERT INTO events (node_id, session_id, seq, digest, at, kind, data) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 "
        f"WHERE NOT {_IS_FORGOTTEN} ON CONFLICT (node_id, session_id, seq, digest) DO NOTHING",
        batch.events,
    )
    _insert_artifacts(connection, batch.artifacts)
    connection.executemany(
        "INSERT INTO sessions (node_id, session_id, digest, started_at, title) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (node_id, session_id, digest) DO NOTHING",
        [row for row in batch.sessions if not _covers(bounds, row[3])],
    )
    # Whether their events are there yet or not; a pin of a forgotten event is never shown.
    connection.executemany(
        "INSERT INTO pins (node_id, session_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", batch.pins
    )
    ledger.count(connection, "forgotten_events", fresh)
    return _uncache(connection)


def _insert_artifacts(connection: sqlite3.Connection, rows: Sequence[ArtifactRow]) -> None:
    """Add those whose event is not forgotten. Of the others the blobs are known as forgotten."""
    connection.executemany(
        f"INSERT INTO forgotten_blobs (blob_hash) SELECT ?4 WHERE {_IS_FORGOTTEN} ON CONFLICT DO NOTHING",
        [(node_id, session_id, seq, blob_hash) for node_id, _, _, session_id, seq, blob_hash, _ in rows],
    )
    connection.executemany(
        "INSERT INTO artifacts (node_id, session_id, seq, artifact_id, digest, blob_hash, name) "
        f"SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT {_IS_FORGOTTEN} "
        "ON CONFLICT (node_id, artifact_id, digest) DO NOTHING",
        [
            (node_id, session_id, seq, artifact_id, digest, blob_hash, name)
            for node_id, artifact_id, digest, session_id, seq, blob_hash, name in rows
        ],
    )


def tombstone(connection: sqlite3.Connection, window: Window) -> bool:
    """Forget what lies in a window; whether a blob has to leave the cache for it."""
    scope = (window.start, window.end, window.node_id)
    keys = connection.execute(
        f"SELECT DISTINCT node_id, session_id, seq FROM events WHERE at BETWEEN ?1 AND ?2 AND {_IN_SCOPE}", scope
    ).fetchall()
    fresh = _forget(connection, keys)
    connection.execute(f"DELETE FROM sessions WHERE started_at BETWEEN ?1 AND ?2 AND {_IN_SCOPE}", scope)
    ledger.count(connection, "forgotten_events", fresh)
    return _uncache(connection)


# The windows of applied tombstones


def _applied(connection: sqlite3.Connection) -> Sequence[Window]:
    """All of them, from the database before each insert."""
    rows = connection.execute("SELECT start_ts, end_ts, node_id FROM applied_tombstones").fetchall()
    try:
        return [Window(instants.read(start), instants.read(end), node) for start, end, node in rows]
    except ValueError as error:
        raise StoreError(f"applied_tombstones holds no instants: {error}") from error


def _covering(windows: Iterable[Window], node_id: Hex) -> Sequence[tuple[int, int]]:
    """The first and last microseconds of the windows that apply to a node, in order and without overlap."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted((each.start, each.end) for each in windows if each.node_id in (None, node_id)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _covers(bounds: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether an instant lies in one of them."""
    return any(first <= at <= last for first, last in bounds)


# What is forgotten


def _forget(connection: sqlite3.Connection, keys: Sequence[EventKey]) -> int:
    """Forget events with all that goes with them; how many were not forgotten before."""
    before = connection.total_changes
    connection.executemany(
        "INSERT INTO forgotten_events (node_id, session_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", keys
    )
    fresh = connection.total_changes - before
    # The hashes of the blobs of their artifacts are remembered.
    connection.executemany(
        f"INSERT INTO forgotten_blobs (blob_hash) SELECT blob_hash FROM artifacts WHERE {_OF_EVENT} "
        "ON CONFLICT DO NOTHING",
        keys,
    )
    connection.executemany(f"DELETE FROM artifacts WHERE {_OF_EVENT}", keys)
    # Every content of the events, also one outside of all windows.
    connection.executemany(f"DELETE FROM events WHERE {_OF_EVENT}", keys)
    return fresh


def _uncache(connection: sqlite3.Connection) -> bool:
    """Hide blobs that only forgotten events referred to. Returns whether there are bytes to remove."""
    changed = connection.execute(
        "UPDATE imported_blobs SET cached = 0 WHERE cached = 1 AND blob_hash IN (SELECT blob_hash FROM "
        f"forgotten_blobs) AND NOT {ledger.LIVE_BLOB.format('imported_blobs.blob_hash')}"
    )
    return changed.rowcount > 0
