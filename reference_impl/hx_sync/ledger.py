"""The records of an index: which objects were imported, the counters, and the report of the last import.

Each function raises sqlite3.Error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from holdfast.reference_impl.hx_sync import instants
from holdfast.reference_impl.hx_sync.layout import Layout, Place
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.schema import DERIVED
from holdfast.reference_impl.hx_sync.terms import Hex, Kind

# Where the hash of an object that was imported stands.
_IMPORTED = {
    Kind.SEGMENT: "imported_segments WHERE segment_id = :id AND node_id = :node",
    Kind.TOMBSTONE: "applied_tombstones WHERE tombstone_id = :id",
    Kind.MANIFEST: "imported_manifests WHERE node_id = :id",
    Kind.BLOB: "imported_blobs WHERE blob_hash = :id",
}
# Whether an artifact of an event that is there refers to a blob.
LIVE_BLOB = (
    "EXISTS (SELECT 1 FROM artifacts a JOIN events e ON e.node_id = a.node_id AND e.session_id = a.session_id "
    "AND e.seq = a.seq WHERE a.blob_hash = {})"
)


def recorded(connection: sqlite3.Connection, place: Place) -> str | None:
    """The hash of the object in this place that was imported; None if none was. Of a blob, the first one."""
    row = connection.execute(
        f"SELECT object_hash FROM {_IMPORTED[place.kind]}", {"id": place.object_id, "node": place.node_id}
    ).fetchone()
    return None if row is None else str(row[0])


def record_segment(connection: sqlite3.Connection, place: Place, object_hash: Hex) -> None:
    """Record the import of an object for ever."""
    connection.execute(
        "INSERT INTO imported_segments (segment_id, node_id, object_hash) VALUES (?, ?, ?)",
        (place.object_id, place.node_id, object_hash),
    )
    count(connection, "imported_segments", 1)


def record_tombstone(connection: sqlite3.Connection, tombstone_id: Hex, window: Window, object_hash: Hex) -> None:
    """Record the application of a tombstone for ever."""
    start, end = instants.write(window.start), instants.write(window.end)
    connection.execute(
        "INSERT INTO applied_tombstones (tombstone_id, node_id, start_ts, end_ts, object_hash) VALUES (?, ?, ?, ?, ?)",
        (tombstone_id, window.node_id, start, end, object_hash),
    )
    count(connection, "applied_tombstones", 1)


# Manifests


def record_manifest(connection: sqlite3.Connection, node_id: Hex, keys: Sequence[str], object_hash: Hex) -> None:
    """Record which objects a node claims to have in the store, in place of its last claim.

    No import is skipped for it: it only shows what is missing.
    """
    connection.execute("DELETE FROM manifest_objects WHERE node_id = ?", (node_id,))
    connection.execute(
        "INSERT INTO imported_manifests (node_id, object_hash) VALUES (?1, ?2) "
        "ON CONFLICT (node_id) DO UPDATE SET object_hash = ?2",
        (node_id, object_hash),
    )
    connection.executemany(
        "INSERT INTO manifest_objects (node_id, object_key) VALUES (?, ?)", [(node_id, key) for key in keys]
    )


# Blobs


def available(connection: sqlite3.Connection, blob_hash: Hex) -> bool:
    """Whether it may lie in the cache: no forgotten event had it, or an event that is there has it."""
    live = LIVE_BLOB.format("?1")
    (found,) = connection.execute(
        f"SELECT NOT EXISTS (SELECT 1 FROM forgotten_blobs WHERE blob_hash = ?1) OR {live}", (blob_hash,)
    ).fetchone()
    return bool(found)


def is_cached(connection: sqlite3.Connection, blob_hash: Hex) -> bool:
    """Whether it was imported, and its bytes lie in the cache."""
    found = connection.execute("SELECT 1 FROM imported_blobs WHERE blob_hash = ? AND cached = 1", (blob_hash,))
    return found.fetchone() is not None


def record_blob(connection: sqlite3.Connection, blob_hash: Hex, object_hash: Hex, *, cached: bool) -> None:
    """Record the import of a blob. The first object that was imported stays on record."""
    connection.execute(
        "INSERT INTO imported_blobs (blob_hash, object_hash, cached) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (blob_hash) DO UPDATE SET cached = ?3",
        (blob_hash, object_hash, int(cached)),
    )


def awaited(connection: sqlite3.Connection) -> list[str]:
    """Blobs that were imported, are available, and do not lie in the cache."""
    found = connection.execute("SELECT blob_hash FROM imported_blobs WHERE cached = 0").fetchall()
    return [blob_hash for (blob_hash,) in found if available(connection, blob_hash)]


def cached(connection: sqlite3.Connection) -> set[str]:
    """Blobs whose bytes lie in the cache."""
    return {row[0] for row in connection.execute("SELECT blob_hash FROM imported_blobs WHERE cached = 1")}


# Everything


def missing(connection: sqlite3.Connection, layout: Layout, keys: set[str]) -> list[str]:
    """Keys of objects that were applied here or that a manifest lists, and that are not among `keys`."""
    expected = {row[0] for row in connection.execute("SELECT object_key FROM manifest_objects")}
    for node_id, segment_id in connection.execute("SELECT node_id, segment_id FROM imported_segments"):
        expected.add(layout.segment(node_id, segment_id))
    for (tombstone_id,) in connection.execute("SELECT tombstone_id FROM applied_tombstones"):
        expected.add(layout.tombstone(tombstone_id))
    for (blob_hash,) in connection.execute("SELECT blob_hash FROM imported_blobs"):
        expected.add(layout.blob(blob_hash))
    return sorted(expected - keys)


def told(connection: sqlite3.Connection) -> tuple[dict[str, str], list[str], list[str]]:
    """The keys that the last import of everything refused, found out of place, and missed."""
    foreign, withheld = (
        [row[0] for row in connection.execute(f"SELECT object_key FROM {table} ORDER BY object_key")]
        for table in ("foreign_objects", "withheld_objects")
    )
    return dict(connection.execute("SELECT object_key, reason FROM complaints").fetchall()), foreign, withheld


def tell(
    connection: sqlite3.Connection,
    rejected: Mapping[str, str],
    foreign: Sequence[str],
    withheld: Sequence[str],
) -> None:
    """Replace them by those of this import."""
    connection.execute("DELETE FROM complaints")
    connection.executemany("INSERT INTO complaints (object_key, reason) VALUES (?, ?)", rejected.items())
    for table, keys in (("foreign_objects", foreign), ("withheld_objects", withheld)):
        connection.execute(f"DELETE FROM {table}")
        connection.executemany(f"INSERT INTO {table} (object_key) VALUES (?)", [(key,) for key in keys])


def reset(connection: sqlite3.Connection) -> None:
    """Remove everything that is derived from objects. Tombstones and the identity of the device stay."""
    for table in DERIVED:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM counters WHERE name = 'imported_segments'")


def forgotten(connection: sqlite3.Connection) -> int:
    """How many events are forgotten."""
    (count,) = connection.execute("SELECT count(*) FROM forgotten_events").fetchone()
    return int(count)


def count(connection: sqlite3.Connection, name: str, by: int) -> None:
    """Raise a counter, in the transaction of what is counted."""
    connection.execute(
        "INSERT INTO counters (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + ?2",
        (name, by),
    )
