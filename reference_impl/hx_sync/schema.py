"""The tables of an index (source section 9).

Of `imported_segments` and `applied_tombstones` the contract pins the names and the columns, of `counters`,
`vault_config` and `node_config` as well. Instants are microseconds since 1970 but for those of `applied_tombstones`.
"""

from __future__ import annotations

# The tables that are derived from objects, which a rebuild makes anew. Forgotten keys are not among them.
DERIVED = (
    "imported_segments",
    "imported_blobs",
    "manifest_objects",
    "imported_manifests",
    "events",
    "sessions",
    "artifacts",
    "pins",
    "complaints",
    "foreign_objects",
    "withheld_objects",
)
# Everything that makes an empty index, in order.
STATEMENTS = (
    # One row: the vault. Its key is nowhere in the index.
    "CREATE TABLE vault_config (\n  vault_id TEXT PRIMARY KEY\n) WITHOUT ROWID",
    # One row: which device this is.
    "CREATE TABLE node_config (\n  node_id TEXT PRIMARY KEY\n) WITHOUT ROWID",
    # Imported objects, by the hash of their bytes.
    "CREATE TABLE imported_segments (\n"
    "  segment_id TEXT,\n"
    "  node_id TEXT,\n"
    "  object_hash TEXT NOT NULL,\n"
    "  PRIMARY KEY (node_id, segment_id)\n"
    ") WITHOUT ROWID",
    # Forgotten windows: this table is never emptied.
    "CREATE TABLE applied_tombstones (\n"
    "  tombstone_id TEXT PRIMARY KEY,\n"
    "  node_id TEXT,\n"
    "  start_ts TEXT NOT NULL,\n"
    "  end_ts TEXT NOT NULL,\n"
    "  object_hash TEXT NOT NULL\n"
    ") WITHOUT ROWID",
    # The counters of the status, updated in the same transactions.
    "CREATE TABLE counters (\n  name TEXT PRIMARY KEY,\n  value INTEGER NOT NULL\n) WITHOUT ROWID",
    # `cached` says whether the plain bytes lie in the cache.
    "CREATE TABLE imported_blobs (\n"
    "  blob_hash TEXT PRIMARY KEY,\n"
    "  object_hash TEXT,\n"
    "  cached INTEGER\n"
    ") WITHOUT ROWID",
    "CREATE TABLE imported_manifests (\n  node_id TEXT PRIMARY KEY,\n  object_hash TEXT\n) WITHOUT ROWID",
    "CREATE TABLE manifest_objects (\n  node_id TEXT,\n  object_key TEXT\n)",
    # Every content of every event that is not forgotten, by its digest.
    "CREATE TABLE events (\n"
    "  node_id TEXT,\n"
    "  session_id TEXT,\n"
    "  seq INTEGER,\n"
    "  digest TEXT,\n"
    "  at INTEGER,\n"
    "  kind TEXT,\n"
    "  data TEXT,\n"
    "  PRIMARY KEY (node_id, session_id, seq, digest)\n"
    ") WITHOUT ROWID",
    "CREATE INDEX events_by_instant ON events(at)",
    # The same of sessions and artifacts; pins have no content.
    "CREATE TABLE sessions (\n"
    "  node_id TEXT,\n"
    "  session_id TEXT,\n"
    "  digest TEXT,\n"
    "  started_at INTEGER,\n"
    "  title TEXT,\n"
    "  PRIMARY KEY (node_id, session_id, digest)\n"
    ") WITHOUT ROWID",
    "CREATE TABLE artifacts (\n"
    "  node_id TEXT,\n"
    "  artifact_id TEXT,\n"
    "  digest TEXT,\n"
    "  session_id TEXT,\n"
    "  seq INTEGER,\n"
    "  blob_hash TEXT,\n"
    "  name TEXT,\n"
    "  PRIMARY KEY (node_id, artifact_id, digest)\n"
    ") WITHOUT ROWID",
    "CREATE INDEX artifacts_by_event ON artifacts(node_id, session_id, seq)",
    "CREATE INDEX artifacts_by_blob ON artifacts(blob_hash)",
    "CREATE TABLE pins (\n"
    "  node_id TEXT,\n"
    "  session_id TEXT,\n"
    "  seq INTEGER,\n"
    "  PRIMARY KEY (node_id, session_id, seq)\n"
    ") WITHOUT ROWID",
    # Keys of forgotten events and hashes of their blobs, without any content.
    "CREATE TABLE forgotten_events (\n"
    "  node_id TEXT,\n"
    "  session_id TEXT,\n"
    "  seq INTEGER,\n"
    "  PRIMARY KEY (node_id, session_id, seq)\n"
    ") WITHOUT ROWID",
    "CREATE TABLE forgotten_blobs (\n  blob_hash TEXT PRIMARY KEY\n) WITHOUT ROWID",
    # The keys that the last import of everything refused, found out of place, and missed.
    "CREATE TABLE complaints (\n  object_key TEXT PRIMARY KEY,\n  reason TEXT\n) WITHOUT ROWID",
    "CREATE TABLE foreign_objects (\n  object_key TEXT PRIMARY KEY\n) WITHOUT ROWID",
    "CREATE TABLE withheld_objects (\n  object_key TEXT PRIMARY KEY\n) WITHOUT ROWID",
)
