"""What an index shows: of every thing the one content that the set of objects determines, and the digest over all.

Rows are as methods.yaml has them, without `at`. Each function raises sqlite3.Error.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from holdfast.reference_impl.hx_sync import instants
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.specs.strictjson import canonical

Rows: TypeAlias = list[dict[str, Any]]

# The lists that the digest covers. Segments are left out: they are only the way to this state.
DIGESTED = ("events", "sessions", "artifacts", "pins", "blobs", "tombstones")
SHOWN = (*DIGESTED, "segments")
# Of several contents the one with the lowest digest is shown: SQLite takes the other columns from the same row.
_SHOWN_CONTENT = "min(digest)"
# The columns that make an event one event.
_EVENT_KEY = "node_id, session_id, seq"
# An event of the session is there.
_LIVE_SESSION = (
    "EXISTS (SELECT 1 FROM events WHERE events.node_id = sessions.node_id AND events.session_id = sessions.session_id)"
)


def lists(connection: sqlite3.Connection, node: Node) -> dict[str, Rows]:
    """Every list of a state, each in the order of its rows' RFC 8785 forms. Raises StoreError too."""
    found = {
        "events": _events(connection),
        "sessions": _sessions(connection),
        "artifacts": _artifacts(connection),
        "pins": _rows(connection, f"SELECT node_id, session_id, seq FROM pins WHERE {_event_of('pins')}"),
        "blobs": _blobs(connection, node),
        "tombstones": _rows(connection, "SELECT tombstone_id, node_id, start_ts, end_ts FROM applied_tombstones"),
        "segments": _rows(connection, "SELECT segment_id, node_id, object_hash FROM imported_segments"),
    }
    return {name: sorted(rows, key=canonical) for name, rows in found.items()}


def digest(shown: Mapping[str, Rows]) -> str:
    """SHA-256 over the RFC 8785 form of what converges."""
    return hashlib.sha256(canonical({name: shown[name] for name in DIGESTED})).hexdigest()


def _events(connection: sqlite3.Connection) -> Rows:
    """Events that are there, each with the content that wins."""
    found = connection.execute(
        f"SELECT node_id, session_id, seq, at, kind, data, {_SHOWN_CONTENT} FROM events GROUP BY {_EVENT_KEY}"
    )
    return [
        {
            "event_key": f"{node_id}/{session_id}/{seq}",
            "node_id": node_id,
            "session_id": session_id,
            "seq": seq,
            "ts": instants.write(at),
            "kind": kind,
            "data": json.loads(data),
        }
        for node_id, session_id, seq, at, kind, data, _ in found
    ]


def _sessions(connection: sqlite3.Connection) -> Rows:
    """Sessions of which an event is there."""
    found = connection.execute(
        f"SELECT node_id, session_id, started_at, title, {_SHOWN_CONTENT} FROM sessions "
        f"WHERE {_LIVE_SESSION} GROUP BY node_id, session_id"
    )
    return [
        {"node_id": node_id, "session_id": session_id, "started_at": instants.write(at), "title": title}
        for node_id, session_id, at, title, _ in found
    ]


def _artifacts(connection: sqlite3.Connection) -> Rows:
    """Artifacts whose event is there."""
    names = ("node_id", "artifact_id", "session_id", "seq", "blob_hash", "name")
    found = connection.execute(
        f"SELECT {', '.join(names)}, {_SHOWN_CONTENT} FROM artifacts WHERE {_event_of('artifacts')} "
        "GROUP BY node_id, artifact_id"
    )
    return [dict(zip(names, row[:-1], strict=True)) for row in found]


def _event_of(table: Literal["artifacts", "pins"]) -> str:
    """The condition that the event of such a row is there."""
    return (
        f"EXISTS (SELECT 1 FROM events WHERE events.node_id = {table}.node_id "
        f"AND events.session_id = {table}.session_id AND events.seq = {table}.seq)"
    )


def _blobs(connection: sqlite3.Connection, node: Node) -> Rows:
    """Blobs in the cache. Raises StoreError where the cache has lost one: that is not the same as none."""
    found = [row[0] for row in connection.execute("SELECT blob_hash FROM imported_blobs WHERE cached = 1")]
    for blob_hash in found:
        node.cache.check(blob_hash)
    return [{"blob_hash": blob_hash} for blob_hash in found]


def _conflicts(connection: sqlite3.Connection) -> Rows:
    """Events with more than one content."""
    found = connection.execute(
        "SELECT node_id, session_id, seq, count(*) FROM events GROUP BY node_id, session_id, seq "
        "HAVING count(*) > 1 ORDER BY node_id, session_id, seq"
    )
    return [
        {"event_key": f"{node_id}/{session_id}/{seq}", "contents": contents}
        for node_id, session_id, seq, contents in found
    ]


def status(connection: sqlite3.Connection, node: Node, told: Sequence[Any]) -> dict[str, Any]:
    """The report of `hx sync status`; `told` has what the last import refused, found out of place, and missed."""
    # What has not been counted yet is missing.
    counted: dict[str, int] = dict(connection.execute("SELECT name, value FROM counters").fetchall())
    rejected, foreign, withheld = told
    (count,) = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM events GROUP BY {_EVENT_KEY})").fetchone()
    return {
        "node_id": node.index.node_id,
        "segments": counted.get("imported_segments", 0),
        "blobs": len(_blobs(connection, node)),
        "tombstones": counted.get("applied_tombstones", 0),
        "events": count,
        "conflicts": _conflicts(connection),
        "forgotten": counted.get("forgotten_events", 0),
        "rejected": [{"key": each, "reason": reason} for each, reason in sorted(rejected.items())],
        "foreign": list(foreign),
        "withheld": list(withheld),
    }


def _rows(connection: sqlite3.Connection, statement: str) -> Rows:
    found = connection.execute(statement)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]
